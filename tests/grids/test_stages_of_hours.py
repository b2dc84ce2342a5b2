"""A set of real hours, of which no exact law is known, through every stage's work."""

import numpy as np
import pytest
import torch
from hours_made import air, written
from safetensors.numpy import load_file, save

from stages import files, seeds
from stages.errors import DataError, ParamsError
from stages.fields.grids import claims, figures, measure, page, prepare, tables, validate
from stages.fields.grids.fresh import Fresh
from stages.fields.grids.layout import COMPANIONS, HOURS, PICTURE, PRIOR, TASKS
from stages.fields.grids.settings import Budget, Grids, Stale
from stages.fields.models import build
from stages.fields.problems.stale.rivals import RIVALS
from stages.params import checked
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints

MADE = {"seed": 0, "process": "stale", "axes": 2, "block": 3, "age_h": (2, 6), "train_h": 30,
        "val_h": 15, "test_h": 30, "gap_h": 5, "context": 20, "targets": 30, "val": 6,
        "test": 24}  # fmt: skip
TOLD = checked(Stale, MADE, "made")
BUDGET = Budget(
    steps=60, validate_every=30, patience=9, learning_rate=0.01, schedule="cosine", tasks=6,
    targets=20,
)  # fmt: skip
CELL = "grid_tnp-mhca-tiny-s0"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """raw, prepared, and a trained cell's folder below runs."""
    home = tmp_path_factory.mktemp("hours")
    files.write_json(written(home / "raw", air()) / "manifest.json", {"files": {}})
    (home / "prepared").mkdir()
    prepare.write(home / "raw", home / "prepared", TOLD)
    data = Fresh.open(home / "prepared", TOLD, BUDGET, 0, torch.device("cpu"))
    seeds.everything(0)
    size = {"width": 16, "heads": 2, "layers": 1}
    model = build("grid_tnp", {"encoder": "mhca"}, size, 2, 1, 1)
    settings = loop.Settings(BUDGET.steps, BUDGET.validate_every, BUDGET.patience,
                             BUDGET.learning_rate, 4.0, 0, slices=BUDGET.tasks)  # fmt: skip
    done = loop.train(model, data, settings, Checkpoints(home / "work"))
    run = home / "runs" / CELL
    run.mkdir(parents=True)
    metadata = {"model": "grid_tnp", "arm": "mhca", "size": "tiny", "seed": 0, "i_dim": 1,
                "o_dim": 1, "x_dim": 2, "arguments": {"encoder": "mhca", **size}}  # fmt: skip
    (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
    files.write_json(run / "history.json", done)
    return home


@pytest.fixture(scope="module")
def evaluated(place):
    """The evaluated folder."""
    told = Grids(datasets=("britain",), training={"britain": BUDGET}, resamples=100)
    data = measure.Data.open(place / "prepared", TOLD, told, 0)
    answers = measure.companions(data)
    answers[CELL] = measure.network(place / "runs" / CELL, data, 1)
    measure.write(answers, data, place / "evaluated/britain")
    return place / "evaluated/britain"


def test_values_are_standardised_by_the_hours_that_train_and_no_other_is_kept_to_train(place):
    values = load_file(place / "prepared" / HOURS)
    assert values["values"].mean() == pytest.approx(0, abs=1e-4)
    assert values["values"].std() == pytest.approx(1, abs=1e-4)
    assert len(values["values"]) == len(values["hour"]) == 50
    told, tensors = (files.read_json(place / "prepared/about.json"),
                     load_file(place / "prepared" / TASKS))  # fmt: skip
    scale, unit = told["unit"]
    kelvin = told["origin"] + scale * tensors["test.field"][0]
    begun = np.datetime64("2019-03-01T00", "h").astype(int)
    there = air()[tensors["test.now"][0] - begun, ::-1]  # rows came from the north
    np.testing.assert_allclose(kelvin, there.ravel(), atol=1e-3)
    assert unit == "K"


def test_it_is_judged_good_and_an_hour_of_two_splits_or_a_wrong_age_is_not(place, tmp_path):
    def rows(prepared):
        return validate.summed_hours(place / "raw", prepared, {}, TOLD)["splits"].rows

    for row in rows(place / "prepared"):
        assert row["tasks"] and not row["shared"] + row["hours_shared"] + row["age_off"]
    tensors = load_file(place / "prepared" / TASKS)
    train = load_file(place / "prepared" / HOURS)
    tensors["val.then"][0], tensors["test.then"][1] = train["hour"][3], tensors["test.now"][1] - 1
    tensors["val.target_x"][2, :] = tensors["test.target_x"][2]
    (tmp_path / TASKS).write_bytes(save(tensors))
    for name in (HOURS, "about.json"):
        (tmp_path / name).write_bytes((place / "prepared" / name).read_bytes())
    val, test = rows(tmp_path)
    assert val["hours_shared"] == 1 and val["shared"] == 1 and test["age_off"] == 1
    broken = [rule for rule in validate.REAL if rule.column in ("hours_shared", "age_off")]
    assert len(broken) == 2 and all(rule.high == 0 for rule in broken)


def test_tasks_of_one_unbroken_stretch_go_together_though_midnight_parts_them(place, evaluated):
    tensors = load_file(place / "prepared" / TASKS)
    assert len({*tensors["test.day"].tolist()}) > 1  # one run of 30 hours
    with np.load(evaluated / "items.npz") as kept_items:
        assert {*kept_items["group"].tolist()} == {0}
    begun = load_file(place / "prepared" / HOURS)["hour"][0]
    now = np.array([55, 84, 145, 174, 235])  # rounds of 30 + 15 + 30 hours and three gaps of 5
    (place / "rounds").mkdir()
    for name, told in ((HOURS, {"hour": np.array([begun])}), (TASKS, {"test.now": begun + now})):
        (place / "rounds" / name).write_bytes(save(told))
    assert measure.stretches(place / "rounds", TOLD).tolist() == [0, 0, 1, 1, 2]


def test_a_cell_is_measured_beside_rivals_and_without_a_bound(evaluated):
    told = files.read_json(evaluated / "metrics.json")
    level = {name: cell["metrics"]["log_likelihood"] for name, cell in told["cells"].items()}
    assert set(level) == {*RIVALS, PRIOR, CELL} and set(RIVALS) < set(COMPANIONS.values())
    assert level[PRIOR]["value"] < level[CELL]["value"]
    assert told["about"]["bound"] == {}
    for cell in told["cells"].values():
        found = cell["metrics"]
        assert "gap" not in found and found["rmse"]["unit"] == "K"
        few, many = found["rmse_few"], found["rmse_many"]
        assert few["n"] + many["n"] == found["rmse"]["n"] == 24
        both = few["n"] * few["value"] + many["n"] * many["value"]
        assert found["rmse"]["value"] == pytest.approx(both / 24)
    with np.load(evaluated / PICTURE) as picture:
        assert picture["field"].shape == picture[f"{CELL}.mean"].shape == (120,)
        assert 2 <= picture["stamps"][0] - picture["stamps"][1] <= 6


def content(evaluated):
    told = files.read_json(evaluated / "metrics.json")
    named = {f"britain/{name}": cell for name, cell in told["cells"].items()}
    return {"cells": named, "arms": over_seeds(named), "about": {"britain": told["about"]}}


def test_table_page_and_maps_say_that_no_bound_is_known(evaluated, tmp_path):
    found = content(evaluated)
    table, _ = tables.results(found, "britain", {})
    assert "RMSE [K], few points" in table.titles and tables.BELOW not in table.titles
    assert len(table.rows) == 6 and all("–" not in row[2] for row in table.rows)
    assert "No exact law is known" in tables.sentence(found["about"]["britain"])
    assert page.rank_models(found, "britain", {}).bound == "none is known"
    figures.draw(evaluated, tmp_path, found, "britain")
    for name in ("learning", "task"):
        assert (tmp_path / f"britain-{name}.png").stat().st_size > 5000


def test_an_hour_missing_in_the_raw_file_stops_preparation(tmp_path):
    raw = written(tmp_path / "raw", np.delete(air(), 9, 0), hours=np.delete(np.arange(110), 9))
    with pytest.raises(DataError, match="an hour is missing"):
        prepare.write(raw, tmp_path, TOLD)


def test_hours_that_are_gone_or_cut_short_are_told(place, tmp_path):
    (tmp_path / "about.json").write_bytes((place / "prepared/about.json").read_bytes())
    (tmp_path / TASKS).write_bytes((place / "prepared" / TASKS).read_bytes())
    for content in (None, (place / "prepared" / HOURS).read_bytes()[:500]):
        if content is not None:
            (tmp_path / HOURS).write_bytes(content)
        with pytest.raises(DataError, match="hours that train cannot be read"):
            Fresh.open(tmp_path, TOLD, BUDGET, 0, torch.device("cpu"))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"age_h": (7, 6)}, "age_h goes down"),
        ({"val_h": 6}, "no longer than the oldest"),
        ({"train_h": 23}, "24"),
        ({"axes": 1}, "2"),
        ({"cells": 4}, "cells"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(wrong, what):
    with pytest.raises(ParamsError, match=what):
        checked(Stale, {**MADE, **wrong}, "datasets.britain.made")


def test_claims_read_the_real_month_where_it_was_run(place):
    def cell(rmse, few=1.0, many=1.0):
        one = {name: {"value": value, "low": value - 0.01, "high": value + 0.01, "n": 9}
               for name, value in (("rmse", rmse), ("rmse_few", few), ("rmse_many", many),
                                   ("log_likelihood", -rmse))}  # fmt: skip
        return {"metrics": one}

    found = {PRIOR: cell(3.0)}
    for seed in (0, 1, 2):
        push = 0.002 * seed
        found[f"grid_tnp-mhca-b-s{seed}"] = cell(1.0 + push, 1.2 + push, 0.8 + push)
        found[f"grid_tnp-mhca_off-b-s{seed}"] = cell(1.5 + push, 2.0 + push, 1.0 + push)
        found[f"grid_tnp-setconv-b-s{seed}"] = cell(1.3 + push)
        for arm, error in (("plain", 1.0), ("plain_off", 1.4), ("plain_on", 1.6)):
            found[f"grid_tnp-{arm}-b-s{seed}"] = cell(error + push)
    measured = {"britain": claims.PairedEvaluation("britain", found)}
    assert claims.e6(measured)["verdict"] == "holds"
    four = claims.e4(measured)
    assert four["dataset"] == "britain" and four["verdict"] == "undecided"
    assert "holds" in {part["verdict"] for part in four["compared"].values() if "verdict" in part}
    for encoder, ways in (("mhca", (0.9, 1.2)), ("setconv", (1.8, 1.3))):
        for seed in (0, 1, 2):
            found[f"grid_tnp-{encoder}_coarse-b-s{seed}"] = cell(ways[0] + 0.002 * seed)
            for other in ("before", "after"):
                found[f"grid_tnp-{encoder}_{other}-b-s{seed}"] = cell(ways[1] + 0.002 * seed)
    assert claims.e4(measured)["verdict"] == "holds"
    found["grid_tnp-setconv_after-b-s0"] = cell(9.0)
    assert claims.e4(measured)["verdict"] == "undecided"
    seven = claims.e7(measured)
    assert seven["dataset"] == "britain" and "no trained grid_tnp-mhca_swin" in seven["why"]
    for few, many, verdict in ((0.95, 0.5, "holds"), (0.6, 0.9, "fails"), (0.5, 1.5, "fails")):
        for seed in (0, 1, 2):  # against a coarse grid that errs by 1.0 wherever
            push = 0.002 * seed
            found[f"grid_tnp-mhca_coarse-b-s{seed}"] = cell(0.9 + push, 1.0 + push, 1.0 + push)
            found[f"grid_tnp-mhca_swin-b-s{seed}"] = cell(0.8 + push, few + push, many + push)
        assert claims.e7(measured)["verdict"] == verdict
    for seed in (0, 1, 2):  # the grid takes more off where points are many
        found[f"grid_tnp-mhca_off-b-s{seed}"] = cell(1.5, 1.3, 1.7)
    assert claims.e6(measured)["verdict"] == "fails"
