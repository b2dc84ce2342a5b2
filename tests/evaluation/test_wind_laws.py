"""Laws of winds: coverage against the standard library's normal distribution, the evaluation that
tells it, its judge, and the table that shows it."""

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from evaluated_winds import NEARBY, PREPARED
from markupsafe import Markup

from stages import files
from stages.page.blocks import Grid
from stages.tables.gather import over_seeds
from stages.winds import measure as winds
from stages.winds.evaluation_data import Settings
from stages.winds.laws import agree, coverage, measure, page, tables, tabulate
from stages.winds.laws.layout import COVERAGE, LEVEL

SETTINGS = Settings(leads_min=(10.0,), seed=0, contexts=NEARBY)
HOME = "reports/wind_processes/mini/evaluated/toy"
GAUSSIAN, PLAIN = "msa-gaussian-5k-s0", "kernel"


def predictions(mean, scale, measured) -> pl.DataFrame:
    """A table of predictions: each argument (N, 2), m/s; scale None: no spread."""
    parts = {"_pred": mean, "_scale": np.full(mean.shape, np.nan) if scale is None else scale}
    columns = {
        f"{axis}{name}_m_s": pl.Series(values[:, i], dtype=pl.Float32).fill_nan(None)
        for name, values in (parts | {"": measured}).items()
        for i, axis in enumerate("uv")
    }
    return pl.DataFrame(columns)


def test_a_wind_is_covered_just_within_the_quartiles_of_its_law():
    """Each component for itself: of two winds at the quartiles, one is moved outside in one."""
    half = NormalDist(0, 2).inv_cdf(0.5 + LEVEL / 2)
    mean, scale = np.array([[1.0, -3.0], [1.0, -3.0]]), np.full((2, 2), 2.0)
    table = predictions(mean, scale, mean + [[0.999 * half, -0.999 * half], [half * 1.001, 0]])
    assert coverage.covered(table).tolist() == [1.0, 0.5]


def test_half_of_the_winds_of_a_law_lie_within_its_interval_and_fewer_of_a_narrower_one():
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(0, 10, (20_000, 2)), rng.uniform(1, 5, (20_000, 2))
    measured = mean + scale * rng.standard_normal(mean.shape)
    shares = [coverage.covered(predictions(mean, c * scale, measured)).mean() for c in (1, 0.5)]
    narrow = 2 * NormalDist().cdf(0.5 * NormalDist().inv_cdf(0.75)) - 1
    assert shares == pytest.approx([0.5, narrow], abs=0.01)


def test_a_model_without_a_spread_has_no_coverage():
    assert coverage.covered(predictions(np.zeros((3, 2)), None, np.zeros((3, 2)))) is None


def test_the_interval_is_over_slices_and_absent_of_one():
    inside, slices = np.array([1.0, 1.0, 1.0, 0.0] * 6), np.repeat(np.arange(0, 240, 10), 1)
    found = measure.share_of(inside, slices)
    assert (found["value"], found["n"], found["low"], found["high"]) == (0.75, 24, 0.75, 0.75)
    uneven = measure.share_of(np.sort(inside), slices)
    assert (uneven["value"], uneven["high"]) == (0.75, 1.0) and 0 < uneven["low"] < 0.75
    alone = measure.share_of(inside, np.zeros(24))
    assert alone == {"value": 0.75, "unit": "1", "n": 24}


@pytest.fixture(scope="module")
def evaluated(airspace):
    cells = [airspace / "reports/wind_nowcast/mini/runs/toy" / cell for cell in (GAUSSIAN, PLAIN)]
    measure.evaluate(cells, airspace / PREPARED, airspace / HOME, SETTINGS)
    return airspace


@pytest.fixture
def content(evaluated):
    told = files.read_json(evaluated / HOME / "metrics.json")["cells"]
    cells = {f"toy/{cell}": entry for cell, entry in told.items()}
    return {"cells": cells, "arms": over_seeds(cells)}


def test_an_evaluation_is_that_of_winds_with_coverage_and_weights(evaluated, content):
    plain = evaluated / "plain"
    runs = [evaluated / "reports/wind_nowcast/mini/runs/toy" / cell for cell in (GAUSSIAN, PLAIN)]
    winds.evaluate(runs, evaluated / PREPARED, plain, SETTINGS)
    theirs = files.read_json(plain / "metrics.json")["cells"]
    for run in runs:
        mine = content["cells"][f"toy/{run.name}"]
        own = {COVERAGE: mine["metrics"][COVERAGE]} if run.name == GAUSSIAN else {}
        assert mine.pop("weights") == sum(p.numel() for p in winds.load(run).parameters())
        other = theirs[run.name]
        assert mine == other | {"metrics": other["metrics"] | own}
    share = content["cells"][f"toy/{GAUSSIAN}"]["metrics"][COVERAGE]
    assert 0 <= share["value"] <= 1 and "low" not in share  # of 30 test minutes


def test_a_cell_measured_anew_is_the_published_one(evaluated, content):
    run = evaluated / "reports/wind_nowcast/mini/runs/toy" / GAUSSIAN
    assert measure.cell(run, evaluated / PREPARED, SETTINGS) == content["cells"][f"toy/{GAUSSIAN}"]


def test_the_judge_finds_a_coverage_that_predictions_do_not_give(evaluated, monkeypatch):
    monkeypatch.chdir(evaluated)
    assert list(agree.evaluated(Path(HOME))) == []
    told = files.read_json(Path(HOME, "metrics.json"))
    original = Path(HOME, "metrics.json").read_bytes()
    try:
        for change in (lambda one: one[COVERAGE].update(value=0.5), lambda one: one.pop(COVERAGE)):
            metrics = dict(told["cells"][GAUSSIAN]["metrics"])
            metrics[COVERAGE] = dict(metrics[COVERAGE])
            change(metrics)
            entry = told["cells"][GAUSSIAN] | {"metrics": metrics}
            edited = told | {"cells": told["cells"] | {GAUSSIAN: entry}}
            files.write_json(Path(HOME, "metrics.json"), edited)
            found = list(agree.evaluated(Path(HOME)))
            assert f"predictions-{GAUSSIAN}.parquet" in {Path(path).name for path, _ in found}
    finally:
        Path(HOME, "metrics.json").write_bytes(original)


def test_the_table_shows_laws_last_and_their_weights(content):
    table = tables.laws(content, "toy")
    (plain, gaussian), titles = table.rows, table.titles
    assert (plain[0], gaussian[0], table.best) == (PLAIN, "msa-gaussian-5k", 1)
    assert plain[titles.index("CRPS [kn]")] == "–" != gaussian[titles.index("CRPS [kn]")]
    told = content["arms"]["toy/msa-gaussian-5k"]["metrics"][COVERAGE]
    expected = f"{100 * told['mean']:.1f} %"
    assert gaussian[titles.index("within 50 % interval")] == expected
    assert gaussian[-1] == f"{content['cells'][f'toy/{GAUSSIAN}']['weights']:,}"


def test_the_page_and_the_text_show_the_laws(content, monkeypatch):
    for one in (tabulate, page.winds):
        monkeypatch.setattr(one, "companions", lambda _: {})
    monkeypatch.setattr(page.winds, "lineage", lambda *_: Markup(""))
    laws = tables.laws(content, "toy")
    text = tabulate.table("wind_processes", "mini", content)
    assert "\n".join(laws.markdown()) in text and tables.NOTES in text
    blocks = page.part("wind_processes", "mini", content).sections[0].blocks
    grids = [block.table for block in blocks if isinstance(block, Grid)]
    assert grids[1] == laws and replace(grids[0], rows=()).name == "results on toy"
