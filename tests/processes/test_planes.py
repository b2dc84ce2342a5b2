"""A Gaussian process of the plane from its tasks to its picture; memory beside printed numbers."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from stages import files, seeds
from stages.batches import single
from stages.fields.models import build
from stages.fields.processes import acquire, drawn, figures, many, measure, prepare
from stages.fields.processes.laws import Peak
from stages.fields.processes.layout import BANDS
from stages.fields.processes.settings import Functions, Processes
from stages.params import checked
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.training import store

ROOT = Path(__file__).parents[2]
MADE = {"seed": 0, "process": "gaussian", "law": "eq", "low": -0.2, "high": 0.0, "noise": 0.1,
        "axes": 2, "context": 60, "targets": 16, "reach": 2.0, "range": 2.5, "val": 8,
        "test": 12}  # fmt: skip
ASKED = {"shift": 6.0, "turn_deg": 45.0, "contexts": (10, 40), "targets": (5,), "resamples": 100}
SIZE = {"width": 16, "heads": 2, "hidden": 4, "layers": 1}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory) -> Path:
    """An evaluated folder of one network that learned nothing."""
    home = tmp_path_factory.mktemp("plane")
    functions = checked(Functions, MADE, "datasets.eq.made")
    for name in ("raw/eq", "prepared/eq"):
        (home / name).mkdir(parents=True)
    acquire.make(functions, home / "raw/eq")
    prepare.write(home / "raw/eq", home / "prepared/eq", functions)
    run = home / "runs/eq/tetnp-post-w16-s0"
    run.mkdir(parents=True)
    seeds.everything(0)
    metadata = {"model": "tetnp", "arm": "post", "size": "w16", "seed": 0, "x_dim": 2, "i_dim": 1,
                "o_dim": 1, "arguments": SIZE}  # fmt: skip
    model = build("tetnp", SIZE, None, 2, 1, 1)
    (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
    files.write_json(run / "history.json", {"val": [{"step": 1, "loss": 1.0}]})
    told = checked(Processes, {"datasets": ("eq",), "asked": ASKED}, "families.processes")
    data = measure.Data.open(home / "prepared/eq", functions, told, 0)
    found = measure.companions(data) | {run.name: measure.network(run, data, 1)}
    measure.write(found, data, home / "evaluated/eq")
    return home / "evaluated/eq"


def test_a_plane_is_told_inside_and_beyond_its_contexts_and_turned(evaluated):
    told = files.read_json(evaluated / "metrics.json")["cells"]["tetnp-post-w16-s0"]["metrics"]
    assert {"log_likelihood_near", "log_likelihood_far", "lost_turned"} <= told.keys()
    assert abs(told["lost_shifted"]["value"]) < 1e-4


def test_the_exact_law_on_the_grid_passes_by_the_points_of_the_context(evaluated):
    truth = files.read_json(evaluated / BANDS)["truth"]
    places, points = (np.reshape(truth[name], (-1, 2)) for name in ("x", "context_x"))
    assert truth["axes"] == 2 and len(places) == len(truth["mean"]) == drawn.SIDE**2
    assert places[0].tolist() == [-2.5, -2.5] and places[1, 0] > places[0, 0], "x runs first"
    nearest = ((places[:, None] - points) ** 2).sum(2).argmin(0)
    off = np.abs(np.array(truth["mean"])[nearest] - truth["context_y"])
    sds = np.array(truth["sd"])
    assert np.median(off) < 0.2 and np.median(sds[nearest]) < 0.5 < sds.max()


def test_a_plane_is_drawn(evaluated, tmp_path):
    told = files.read_json(evaluated / "metrics.json")
    cells = {f"eq/{name}": cell for name, cell in told["cells"].items()}
    content = {"cells": cells, "arms": over_seeds(cells), "about": {"eq": told["about"]}}
    figures.draw(evaluated, tmp_path, content, "eq")
    assert {file.name for file in tmp_path.iterdir()} == {"eq-learning.png", "eq-plane.png"}


# --- memory


def test_memory_stands_beside_what_the_document_prints_and_grows_as_it_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = many.tables("processes")
    assert {*found} == {1, 2} and all(len(row) == 9 for one in found.values() for row in one.rows)
    rows = {row[0]: row for row in found[2].rows}
    place = found[2].titles.index("5,000 / 1,000 [MB]")
    assert rows["TETNP"][place].endswith("(24,083)")
    assert rows["ConvCNP"][found[2].titles.index("10 / 1,000 [MB]")].endswith("(224 or 268)")
    held = pl.read_csv(many.counted("processes"))
    assert held.filter(model="tetnp-post", contexts=5000)["mb"].max() < 1000, "as was asked"
    assert many.tables("of no such name") == {}


@pytest.mark.parametrize("layers", [1, 2])
def test_what_was_counted_is_counted_again_in_any_number_of_layers(layers, monkeypatch):
    monkeypatch.chdir(ROOT)
    size = {"mixing": "linear", "width": 128, "heads": 8, "layers": layers}
    generator = seeds.torch_stream(0, "counted")
    points = (torch.rand(1000, 2, generator=generator), torch.rand(1000, 1, generator=generator))
    network = build("tnp", size, None, 2, 1, 1)  # whose weights do not count
    with torch.no_grad(), Peak() as peak:
        network(single(*points, points[0][:10]))
    (row,) = pl.read_csv(many.counted("processes")).filter(
        model="tnp-linear", axes=2, contexts=1000, targets=10
    ).iter_rows(named=True)  # fmt: skip
    assert peak.most / 1e6 == pytest.approx(row["mb"], rel=0.01)
