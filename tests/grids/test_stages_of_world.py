"""A set of the whole globe, of which no exact law is known, through every stage's work."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save
from world_made import MADE, filed

from stages import files, seeds
from stages.errors import DataError, ParamsError
from stages.fields.grids import claims, figures, full_map, measure, page, prepare, tables, validate
from stages.fields.grids import world as stage
from stages.fields.grids.fresh import Fresh
from stages.fields.grids.layout import GLOBE, KRIGING, MAP, PERSISTENCE, PRIOR, TASKS, WORLD
from stages.fields.grids.settings import Budget, Grids, Whole
from stages.fields.models import build
from stages.fields.problems.stale import world
from stages.fields.problems.stale.rivals import RIVALS
from stages.params import checked
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints

TOLD = checked(Whole, MADE, "made")
BUDGET = Budget(
    steps=30, validate_every=15, patience=9, learning_rate=0.01, schedule="cosine", tasks=4,
    targets=20,
)  # fmt: skip
ARGUMENTS = {"encoder": "mhca", "surface": "sphere", "equivariance": "exact", "window": 4}
SIZE = {"width": 16, "heads": 2, "layers": 1}
CELL = "grid_tnp-mhca-tiny-s0"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """raw, prepared, and a trained cell's folder below runs."""
    home = tmp_path_factory.mktemp("world")
    files.write_json(filed(home / "raw") / "manifest.json", {"files": {}})
    (home / "prepared").mkdir()
    prepare.write(home / "raw", home / "prepared", TOLD)
    data = Fresh.open(home / "prepared", TOLD, BUDGET, 0, torch.device("cpu"))
    seeds.everything(0)
    model = build("grid_tnp", ARGUMENTS, SIZE, 2, 1, 1)
    settings = loop.Settings(BUDGET.steps, BUDGET.validate_every, BUDGET.patience,
                             BUDGET.learning_rate, 4.0, 0, slices=BUDGET.tasks)  # fmt: skip
    done = loop.train(model, data, settings, Checkpoints(home / "work"))
    run = home / "runs" / CELL
    run.mkdir(parents=True)
    metadata = {"model": "grid_tnp", "arm": "mhca", "size": "tiny", "seed": 0, "i_dim": 1,
                "o_dim": 1, "x_dim": 2, "arguments": ARGUMENTS | SIZE}  # fmt: skip
    (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
    files.write_json(run / "history.json", done)
    return home


@pytest.fixture(scope="module")
def data(place):
    told = Grids(datasets=("world",), training={"world": BUDGET}, resamples=100)
    return measure.Data.open(place / "prepared", TOLD, told, 0)


@pytest.fixture(scope="module")
def evaluated(place, data):
    """The evaluated folder."""
    answers = measure.companions(data)
    answers[CELL] = measure.network(place / "runs" / CELL, data, 1)
    full = full_map.drawn({CELL: place / "runs" / CELL}, answers, data)
    measure.write(answers, data, place / "evaluated/world", full.entry, full.arrays)
    return place / "evaluated/world"


def test_values_are_standardised_by_the_strips_that_train_and_no_other_node_is_kept_to_train(place):
    found, about = load_file(place / "prepared" / WORLD), files.read_json(
        place / "prepared/about.json")  # fmt: skip
    area = np.cos(np.radians(about["lat"]))[:, None] * np.ones_like(found["values"])
    mean = np.average(found["values"], weights=area)
    assert mean == pytest.approx(0, abs=1e-5)
    assert np.average((found["values"] - mean) ** 2, weights=area) == pytest.approx(1, abs=1e-5)
    assert found["lon"].tolist() == [*range(-150, -59, 5)] and len(found["cells"]) == 288
    opened = stage.opened(place / "prepared", TOLD, 20)
    other = ~world.inside(opened.field.lon, TOLD.strips_deg.train)
    assert np.isnan(opened.field.values[:, other]).all() and opened.window == 8


def test_it_is_judged_good_and_a_place_outside_of_its_strips_is_not(place, tmp_path):
    def rows(prepared):
        return validate.summed_strips(place / "raw", prepared, {}, TOLD)["splits"].rows

    for row in rows(place / "prepared"):
        assert row["tasks"] and not row["shared"] + row["outside"] + row["train_too"]
    tensors = load_file(place / "prepared" / TASKS)
    tensors["val.target_x"][0, 0, 1], tensors["test.context_x"][1, 0, 1] = -100.0, -50.0
    tensors["val.target_x"][2] = tensors["test.target_x"][2]
    (tmp_path / TASKS).write_bytes(save(tensors))
    (tmp_path / WORLD).write_bytes((place / "prepared" / WORLD).read_bytes())
    val, test = rows(tmp_path)
    assert val["train_too"] == 1 and val["outside"] == 21 and val["shared"] == 1
    assert test["outside"] == 1 and test["train_too"] == 0
    strict = [rule for rule in validate.GLOBAL if rule.column in ("outside", "train_too")]
    assert len(strict) == 2 and all(rule.high == 0 for rule in strict)


def test_tasks_of_one_block_of_latitude_of_a_strip_go_together(place, data):
    tensors = load_file(place / "prepared" / TASKS)
    np.testing.assert_array_equal(data.test.group, tensors["test.block"])
    lon = tensors["test.target_x"][..., 1].mean(1)
    np.testing.assert_array_equal(data.test.group >= 5, lon > 120)
    assert 2 < len({*data.test.group.tolist()}) <= 10


def test_a_cell_is_measured_beside_rivals_and_without_a_bound(evaluated):
    told = files.read_json(evaluated / "metrics.json")
    level = {name: cell["metrics"]["log_likelihood"] for name, cell in told["cells"].items()}
    assert set(level) == {*RIVALS[:3], PRIOR, CELL}
    assert level[PRIOR]["value"] < min(level[name]["value"] for name in RIVALS[:3])
    for cell in told["cells"].values():
        assert "gap" not in cell["metrics"] and cell["metrics"]["rmse"]["unit"] == "K"
        assert cell["metrics"]["rmse"]["low"] < cell["metrics"]["rmse"]["high"]


def test_the_map_answers_at_every_node_the_same_in_chunks_and_errs_as_brute_force_says(
    place, data, evaluated
):
    told = files.read_json(evaluated / "metrics.json")["about"]["map"]
    assert told["cell"] == CELL and told["points"] == 60 and told["nodes"] == 37 * 72
    with np.load(evaluated / MAP) as found:
        full = {name: found[name] for name in found}
    assert full["mean"].shape == full["sd"].shape == full["field"].shape == (37, 72)
    model, _ = store.load(str(place / "runs" / CELL / shell.WEIGHTS))
    globe = load_file(place / "prepared" / GLOBE)
    whole = full_map.task(globe, load_file(place / "prepared" / WORLD)["cells"], data.about)
    mean, _ = full_map.streamed(model, whole, data.about, 100)
    np.testing.assert_allclose(mean, full["mean"].ravel(), atol=1e-5)
    scale, points = data.about["unit"][0], {*full["points"].tolist()}
    error, area = [], []
    plain = dict(zip(globe["nodes"].tolist(), globe["persistence_mean"].tolist(), strict=True))
    linear = []
    for row, lat in enumerate(range(-90, 91, 5)):
        for column, lon in enumerate(range(-180, 180, 5)):
            node = row * 72 + column
            tests = 30 <= lon <= 90 or lon >= 150 or lon <= -160
            assert tests == (node in plain)
            if tests and node not in points:
                error.append((full["mean"][row, column] - full["field"][row, column]) ** 2)
                linear.append((plain[node] - full["field"][row, column]) ** 2)
                area.append(np.cos(np.radians(lat)))
    ours = {name: one["rmse"] for name, one in told["measured"].items()}
    for name, squares in ((CELL, error), (PERSISTENCE, linear)):
        expected = scale * np.sqrt(np.average(squares, weights=area))
        assert ours[name]["value"] == pytest.approx(expected, rel=1e-4)
        assert ours[name]["low"] < ours[name]["value"] < ours[name]["high"]
        assert ours[name]["n"] == sum(one > 1e-9 for one in area)
    ratio = told["measured"][KRIGING]["over_grid"]["value"]
    assert ratio == pytest.approx(ours[KRIGING]["value"] / ours[PERSISTENCE]["value"])


def test_a_model_that_knows_no_place_says_the_same_of_a_globe_that_is_turned(place, data):
    model, _ = store.load(str(place / "runs" / CELL / shell.WEIGHTS))
    globe = load_file(place / "prepared" / GLOBE)
    cells = load_file(place / "prepared" / WORLD)["cells"]
    whole = full_map.task(globe, cells, data.about)
    turn = 4  # cells, as many as a window has: 60 degrees
    turned = np.roll(cells.reshape(12, 24), turn, 1).ravel()
    moved = full_map.task(globe, turned, data.about)
    for x in (moved.context_x, moved.target_x):
        x[..., 1] += 60.0  # beyond 180 degrees, where longitudes go on
    one, other = (full_map.streamed(model, task, data.about) for task in (whole, moved))
    np.testing.assert_allclose(one[0], other[0], atol=1e-4)
    np.testing.assert_allclose(one[1], other[1], atol=1e-4)


def test_the_cell_that_draws_is_that_of_least_validation_loss_whatever_it_does_on_test():
    def answer(*losses):
        history = {"val": [[k, loss] for k, loss in enumerate(losses)]}
        return measure.Answer({"history": history, "metrics": {}}, {})

    answers = {"grid_tnp-a-s0": answer(3.0, 1.0, 2.0), "grid_tnp-b-s0": answer(1.5),
               "linear_interpolation-plain-s0": answer(0.1),
               KRIGING: measure.Answer({"metrics": {}}, {})}  # fmt: skip
    assert full_map.chosen(answers) == "grid_tnp-a-s0"
    assert full_map.chosen({KRIGING: answers[KRIGING]}) is None


def test_table_page_and_map_tell_it_and_no_claim_rests_on_it(evaluated, tmp_path):
    told = files.read_json(evaluated / "metrics.json")
    named = {f"world/{name}": cell for name, cell in told["cells"].items()}
    found = {"cells": named, "arms": over_seeds(named), "about": {"world": told["about"]}}
    table, _ = tables.results(found, "world", {})
    assert "RMSE [K], few points" in table.titles and len(table.rows) == 5
    words = tables.sentence(found["about"]["world"])
    assert "37 x 72 nodes" in words and "The map at all 2,664 nodes reads 60 points" in words
    assert page.rank_models(found, "world", {}).bound == "none is known"
    figures.draw(evaluated, tmp_path, found, "world")
    for name in ("learning", "map"):
        assert (tmp_path / f"world-{name}.png").stat().st_size > 5000
    only = {"world": claims.PairedEvaluation("world", told["cells"])}
    both = only | {"globe": claims.PairedEvaluation("globe", {})}
    assert claims.real(both, "globe").dataset == "globe"


def test_a_globe_that_is_gone_or_cut_short_is_told(place, tmp_path):
    for name in ("about.json", TASKS):
        (tmp_path / name).write_bytes((place / "prepared" / name).read_bytes())
    for content in (None, (place / "prepared" / WORLD).read_bytes()[:500]):
        if content is not None:
            (tmp_path / WORLD).write_bytes(content)
        with pytest.raises(DataError, match="globe's field cannot be read"):
            Fresh.open(tmp_path, TOLD, BUDGET, 0, torch.device("cpu"))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"window_deg": 61.0}, "narrower than a window"),
        ({"strips_deg": MADE["strips_deg"] | {"val": ((-59.5, 20.0),)}}, "not a degree apart"),
        ({"strips_deg": MADE["strips_deg"] | {"test": ((150.0, 211.0),)}}, "not a degree apart"),
        ({"cells": 4}, "cells"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(wrong, what):
    with pytest.raises(ParamsError, match=what):
        checked(Whole, {**MADE, **wrong}, "datasets.world.made")
