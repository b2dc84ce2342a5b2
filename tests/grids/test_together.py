"""Which tasks of real hours the audit takes to go together, beside which the evaluation does."""

import numpy as np
from safetensors.numpy import save_file

from stages.fields import bounded
from stages.fields.grids import agree, measure
from stages.fields.grids.layout import HOURS, TASKS
from stages.fields.grids.settings import Stale

MADE = {"process": "stale", "seed": 0, "axes": 2, "block": 4, "age_h": (3, 12), "context": 8,
        "targets": 8, "val": 4, "test": 6, "train_h": 30, "val_h": 20, "test_h": 25,
        "gap_h": 12}  # fmt: skip


def test_the_hours_of_one_stretch_go_together(tmp_path):
    """Rounds of 30 + 20 + 25 hours and three gaps of 12: the tests begin at 74, 185 and 296."""
    now = np.array([74, 98, 185, 190, 209, 296]) + 1000
    save_file({"hour": np.arange(1000, 1400)}, tmp_path / HOURS)
    save_file({"test.now": now}, tmp_path / TASKS)
    kept = bounded.Kept({"now": now}, {"made": MADE}, "test")
    found = agree.together(tmp_path, kept)
    assert found.tolist() == [0, 0, 1, 1, 1, 2]
    assert found.tolist() == measure.stretches(tmp_path, Stale(**MADE)).tolist()
    assert agree.together(tmp_path, bounded.Kept({}, {}, "test")) is None
