"""Laws of winds: coverage against the standard library's normal distribution, levels and how they
flow, the evaluation that tells both, its judge, and the tables that show them."""

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
import torch
from evaluated_winds import NEARBY, PREPARED
from markupsafe import Markup

from stages import files, params, seeds
from stages.fields.models import build
from stages.page.blocks import Grid
from stages.tables.gather import over_seeds
from stages.winds import measure as winds
from stages.winds.evaluation_data import EvaluationData, Settings
from stages.winds.laws import agree, coverage, flow, levels, measure, page, tables, tabulate
from stages.winds.laws.layout import COVERAGE, EXACT, LEVEL, LEVELS, MINUTES, RATIO, SLOPE, TRUE
from stages.winds.sky import simulated

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
    measure.evaluate(cells, airspace / PREPARED, airspace / HOME, SETTINGS, None)
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
        own |= {name: mine["metrics"][name] for name in flow.TOLD}
        assert mine.pop("weights") == sum(p.numel() for p in winds.load(run).parameters())
        other = theirs[run.name]
        assert mine == other | {"metrics": other["metrics"] | own}
    share = content["cells"][f"toy/{GAUSSIAN}"]["metrics"][COVERAGE]
    assert 0 <= share["value"] <= 1 and "low" not in share  # of 30 test minutes


def test_a_cell_measured_anew_is_the_published_one(evaluated, content):
    run = evaluated / "reports/wind_nowcast/mini/runs/toy" / GAUSSIAN
    anew = measure.cell(run, evaluated / PREPARED, SETTINGS, None)
    assert anew == content["cells"][f"toy/{GAUSSIAN}"]


def test_what_is_told_of_levels_is_what_flow_says_of_the_fields_that_a_model_answers(evaluated):
    """Of each of the minutes by itself, from the field that the evaluation of winds draws."""
    run = evaluated / "reports/wind_nowcast/mini/runs/toy" / PLAIN
    data, model = EvaluationData.open(evaluated / PREPARED, SETTINGS), winds.load(run)
    chosen, lead_s = levels.minutes(data), data.pairs.meta["lead_s"]
    assert len(chosen) == MINUTES and chosen[0] == data.reached[lead_s][0]
    assert chosen[-1] == data.reached[lead_s][-1]
    found = []
    for j in chosen:
        field = winds.look(model, replace(data, reached={lead_s: [j]}))
        rows = field.partition_by("lat_deg", maintain_order=True)
        u, v = (np.stack([row[name].to_numpy() for row in rows]) for name in ("u_m_s", "v_m_s"))
        lat = np.array([row["lat_deg"][0] for row in rows], np.float64)
        found.append(flow.flow(lat, rows[0]["lon_deg"].to_numpy().astype(np.float64), u, v))
    told = flow.told(levels.kept(model, data, None))
    assert told[RATIO]["value"] == pytest.approx(np.mean([one.ratio for one in found]), rel=1e-5)
    assert told[SLOPE]["value"] == pytest.approx(np.mean([one.slope for one in found]), rel=1e-4)
    assert told[RATIO]["n"] == MINUTES and RATIO + TRUE not in told


def test_the_truth_of_a_level_is_the_sky_that_was_flown_through(tmp_path):
    """At the places and times of the truth that the simulation writes."""
    plan = (
        params.load().datasets["simulated"].simulate.model_copy(update={"hours": 1, "aircraft": 20})
    )
    simulated.simulate(plan, tmp_path)
    rows = pl.read_parquet(tmp_path / "truth.parquet").sort("ts_s").head(40)
    truth = levels.Truth.of(plan)
    for row in rows.iter_slices(1):
        u, v = truth.at(row, row["ts_s"][0])
        written = row.select("u_true_m_s", "v_true_m_s").row(0)
        assert (u[0], v[0]) == pytest.approx(written, abs=2e-3)


def test_only_a_stream_function_has_no_divergence_exactly(evaluated):
    data = EvaluationData.open(evaluated / PREPARED, SETTINGS)
    sizes = {"width": 8, "heads": 2, "layers": 1}
    seeds.everything(0)
    free = build("stream_function", {"mixing": "hyper"}, sizes).eval()
    scaler = data.pairs.meta["scaler"]
    free.set_scaler(*(torch.tensor(scaler[name]) for name in ("y_mean", "y_std")))
    told = levels.exact(free, data)[EXACT]
    assert told["value"] < 1e-6 and told["n"] == MINUTES
    free.unit *= torch.tensor([1.0, 2.0])  # components of other sizes: no turned slope any more
    assert levels.exact(free, data)[EXACT]["value"] > 0.05
    assert (
        levels.exact(winds.load(evaluated / "reports/wind_nowcast/mini/runs/toy" / PLAIN), data)
        == {}
    )


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


def test_the_judge_finds_a_flow_that_levels_do_not_give(evaluated, monkeypatch):
    monkeypatch.chdir(evaluated)
    file = Path(HOME, f"{LEVELS}-{PLAIN}.parquet")
    metrics = files.read_json(Path(HOME, "metrics.json"))["cells"][PLAIN]["metrics"]
    assert list(agree.flowing(file, metrics)) == []
    other = metrics | {RATIO: metrics[RATIO] | {"value": 1.01 * metrics[RATIO]["value"]}}
    ((where, text),) = agree.flowing(file, other)
    assert where == file.as_posix() and RATIO in text
    less = {name: one for name, one in metrics.items() if name != SLOPE}
    assert [text for _, text in agree.flowing(file, less)] == [
        f"{SLOPE} stands in metrics.json or follows from it, not both"
    ]
    assert "is missing" in next(agree.flowing(file.with_name("none"), metrics))[1]


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
    flows = tables.flows(content, "toy")
    assert grids[2] == flows and "\n".join(flows.markdown()) in text
    assert {row[0] for row in flows.rows} == {PLAIN, "msa-gaussian-5k"}  # no sky, no truth
