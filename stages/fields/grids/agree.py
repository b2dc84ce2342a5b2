"""Whether what was prepared and evaluated on and off the grid says one thing (stages/audit/
agreeing.py): fields/bounded.py, no error below the exact law's, and what is drawn is a kept task.
No stage runs this."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from stages import params
from stages.audit import agreeing, apiece
from stages.audit.agreeing import Found
from stages.fields import bounded
from stages.fields.grids.layout import COMPANIONS, EXACT, HOURS, PICTURE, PRIOR
from stages.fields.grids.settings import FAMILY, Grids
from stages.files import read_json
from stages.scores.scores import crps

SINGLE = 1e-6  # relative: pictures are kept in float32, as what they show is
DRAWN = ("target_x", "target_y", "grid_y")


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    folder = Path("data", home.parts[2], "prepared", home.name)
    kept = bounded.Kept.open(folder, "test")
    scale, _ = kept.about["unit"]

    def scores(law: bounded.Law, y: np.ndarray) -> bounded.Arrays:
        error = np.square(y - law[0])
        return {
            "rmse": scale * np.sqrt(error.mean(1)),
            "crps": scale * crps(*law, y).mean(1),
            "z_square": (error / np.square(law[1])).mean(1),
        }

    laws = {cell: law for cell, law in COMPANIONS.items() if f"{law}_mean" in kept.arrays}
    asked = agreeing.parameters(Path.cwd() / params.WHOLE).family(home.parts[2], FAMILY, Grids)
    mean = apiece.resampled(FAMILY, asked.resamples)
    yield from bounded.evaluated(home, laws, PRIOR, scores, mean, together(folder, kept))
    cells = read_json(home / "metrics.json")["cells"]
    if EXACT in laws:
        best = cells[EXACT]["metrics"]["rmse"]
        what = "the mean of the exact law errs by"
        yield from agreeing.impossible(home, "rmse", what, best["value"], best["low"])
    where, trained = (
        (home / PICTURE).as_posix(),
        {n for n, one in cells.items() if "weights" in one},
    )
    with np.load(home / PICTURE, allow_pickle=False) as drawn:
        told = {name.removesuffix(".mean") for name in drawn if name.endswith(".mean")}
        for name in sorted(trained ^ told):
            yield where, f"{name} stands in one of it and metrics.json alone"
        if not bounded.task_of(kept, {name: drawn[name] for name in DRAWN}, SINGLE):
            yield where, "the task that is drawn is none of the prepared ones"


def together(folder: Path, kept: bounded.Kept) -> np.ndarray | None:
    """Of tasks of real hours the stretch of test that each lies in (S,): a round of runs and their
    gaps has one. None of other tasks."""
    if "now" not in kept.arrays:
        return None
    made = kept.about["made"]
    round_h = sum(made[f"{split}_h"] + made["gap_h"] for split in ("train", "val", "test"))
    found: np.ndarray = (kept.arrays["now"] - load_file(folder / HOURS)["hour"][0]) // round_h
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": bounded.prepared, "evaluated": evaluated}
    return agreeing.main("stages.fields.grids.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
