"""A real sky, of which no exact law is known, through every stage's work."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from real_skies import BUDGET, field, rough, told
from safetensors.numpy import load_file, save

from stages import files, seeds
from stages.audit import agreeing
from stages.errors import DataError
from stages.fields.models import build
from stages.scores import items, shell
from stages.tables.gather import over_seeds
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints
from stages.winds.joint import (
    agree,
    claims,
    figures,
    kept,
    measure,
    page,
    prepare,
    real,
    reanalysis,
    rivals,
    tables,
    validate,
)
from stages.winds.joint.fresh import Fresh
from stages.winds.joint.layout import ABOUT, KRIGING, MAP, OPTIMUM, PICTURE, PRIOR, SKY, TASKS
from stages.winds.joint.settings import Joint

CELL = "joint_tnp-both-w8-s0"
JOINT = Joint(datasets=("sky",), training={"sky": BUDGET}, resamples=100)
SKY_THERE = rough(field())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project's folders with prepared tasks and trained cells; the reader gives a made field."""
    home = tmp_path_factory.mktemp("real")
    patch = pytest.MonkeyPatch()
    patch.setattr(reanalysis, "read", lambda *_: SKY_THERE)
    patch.setattr(real, "EVALUATIONS", 80)
    patch.setattr(real, "FIT", 16)
    raw, prepared = (home / "data/sample" / part / "sky" for part in ("raw", "prepared"))
    raw.mkdir(parents=True)
    prepared.mkdir(parents=True)
    files.write_json(raw / "manifest.json", {"files": {}})
    prepare.write(raw, prepared, told())
    for arm, reads in {"both": "both", "aircraft": "points", "grid": "grid"}.items():
        data = Fresh.open(prepared, told(), BUDGET, 0, torch.device("cpu"))
        seeds.everything(0)
        size = {"width": 8, "heads": 2, "layers": 1}
        model = build("joint_tnp", {"reads": reads}, size, 4, 2, 2)
        settings = loop.Settings(BUDGET.steps, BUDGET.validate_every, BUDGET.patience,
                                 BUDGET.learning_rate, 4.0, 0, slices=BUDGET.tasks)  # fmt: skip
        done = loop.train(model, data, settings, Checkpoints(home / "work" / arm))
        run = home / "reports/joint/sample/runs/sky" / f"joint_tnp-{arm}-w8-s0"
        run.mkdir(parents=True)
        metadata = {"model": "joint_tnp", "arm": arm, "size": "w8", "seed": 0, "x_dim": 4,
                    "i_dim": 2, "o_dim": 2, "arguments": {"reads": reads, **size}}  # fmt: skip
        (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
        files.write_json(run / "history.json", done)
    yield home
    patch.undo()


@pytest.fixture(scope="module")
def evaluated(place):
    """The folder of the evaluation."""
    data = measure.Data.open(place / "data/sample/prepared/sky", told(), JOINT, 0)
    answers = measure.companions(data)
    for run in sorted((place / "reports/joint/sample/runs/sky").iterdir()):
        answers[run.name] = measure.network(run, data, 1)
    final = place / "reports/joint/sample/evaluated/sky"
    final.parent.mkdir(parents=True)
    measure.write(answers, data, final)
    return final


def test_what_is_prepared_is_standardised_by_what_trains_and_holds_nothing_else_to_train(place):
    prepared = place / "data/sample/prepared/sky"
    about, found = files.read_json(prepared / ABOUT), load_file(prepared / SKY)
    assert found["lon"].tolist() == list(range(-12, 1)) and np.isfinite(found["values"]).all()
    # every task's winds, back in metres per second, are those of the field there
    part, field_ = kept.read(prepared, "test"), SKY_THERE
    row = 7
    lat = part.where[row, 0] + part.tasks.target_x[row, :, 1] / reanalysis.DEGREE_KM
    wide = reanalysis.DEGREE_KM * np.cos(np.radians(lat))
    lon = part.where[row, 1] + part.tasks.target_x[row, :, 0] / wide
    hour = part.where[row, 2] + part.tasks.target_x[row, :, 3] / 60
    there = field_.at(0, hour[None], lat[None], lon[None], part.tasks.target_x[row, :, 2][None])[0]
    mine = np.array(about["mean_m_s"]) + about["unit"][0] * part.tasks.target_true[row]
    np.testing.assert_allclose(mine, there, atol=1e-9)
    assert about["bound"] == {"val": {}, "test": {}} and about["unit"][1] == "m/s"


def test_what_blows_in_the_test_strips_moves_nothing_that_trains_or_selects(place, tmp_path):
    changed = SKY_THERE.values.copy()
    changed[:, :, :, SKY_THERE.lon > 1] *= -3.0
    changed[:, :, :, SKY_THERE.lon > 18] = SKY_THERE.values[:, :, :, SKY_THERE.lon > 18]
    other = reanalysis.Field(*(getattr(SKY_THERE, name) for name in ("hour", "up", "lat", "lon")),
                             changed)  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reanalysis, "read", lambda *_: other)
        real.write(place, tmp_path, told())
    first = place / "data/sample/prepared/sky"
    assert (first / SKY).read_bytes() == (tmp_path / SKY).read_bytes()
    assert files.read_json(first / ABOUT) == files.read_json(tmp_path / ABOUT)
    one, two = (load_file(home / TASKS) for home in (first, tmp_path))
    for name, array in one.items():
        same = np.array_equal(array, two[name])
        assert same == (not name.startswith("test.") or name.partition(".")[2] in
                        ("context_x", "real", "age", "target_x", "where", "linear_sd",
                         "increments_sd", "winds_sd")), name  # fmt: skip


def test_it_is_judged_good_and_what_leaks_is_not(place, tmp_path):
    raw, prepared = (place / "data/sample" / part / "sky" for part in ("raw", "prepared"))

    def rows(home):
        return validate.summed_real(raw, home, {}, told())["splits"].rows

    for row in rows(prepared):
        assert row["tasks"] and not any(row[name] for name in ("shared", "early", "outside",
                                                               "trained"))  # fmt: skip
    tensors, sky = load_file(prepared / TASKS), load_file(prepared / SKY)
    tensors["test.where"][3, 1] = 1.0
    tensors["val.age"][0] = 0.2
    tensors["val.target_x"][2] = tensors["test.target_x"][2]
    sky["lon"][:2] = (25.0, 5.0)
    (tmp_path / TASKS).write_bytes(save(tensors))
    (tmp_path / SKY).write_bytes(save(sky))
    (tmp_path / ABOUT).write_bytes((prepared / ABOUT).read_bytes())
    val, test = rows(tmp_path)
    assert (val["early"], val["shared"], val["trained"], val["outside"]) == (1, 1, 1, 0)
    assert (test["outside"], test["trained"], test["shared"]) == (1, 1, 1)
    assert {rule.column for rule in validate.REAL} >= {"outside", "trained", "shared", "early"}


def test_rivals_of_real_skies_are_kriging_of_both_and_of_the_aircraft_alone(place):
    prepared = place / "data/sample/prepared/sky"
    part, about = kept.read(prepared, "val"), files.read_json(prepared / ABOUT)["fitted"]
    assert set(part.laws) == {"linear", "increments", "winds"}
    tasks, row = part.tasks, 1
    real_ones = tasks.real[row]
    x, targets = tasks.context_x[row, real_ones], tasks.target_x[row]

    def covariance(a, b):
        gap = a[:, None] - b[None]
        far = sum((gap[..., k] / about[f"winds_{name}"]) ** 2 for k, name in
                  enumerate(("horizontal", "horizontal", "vertical")))  # fmt: skip
        decay = np.exp(-far / 2 - np.abs(gap[..., 3]) / about["winds_time"])
        return about["winds_level"] ** 2 + about["winds_sd"] ** 2 * decay

    inside = covariance(x, x) + about["winds_nugget"] ** 2 * np.eye(len(x))
    weights = np.linalg.solve(inside, covariance(x, targets))
    mean, sd = part.laws["winds"]
    np.testing.assert_allclose(mean[row], weights.T @ tasks.context_y[row, real_ones], atol=1e-8)
    left = covariance(targets, targets).diagonal() - (weights * covariance(x, targets)).sum(0)
    np.testing.assert_allclose(sd[row] ** 2, left + about["winds_nugget"] ** 2, atol=1e-8)
    assert rivals.law_of(np.zeros(6))[0] == 1.0


def test_middles_of_one_block_of_a_strip_go_together_and_its_width_is_not_cut():
    made = told(
        latitudes_deg=(37.0, 54.0),
        strips_deg={"train": ((-12.0, 0.0),), "val": ((19.0, 30.0),),
                    "test": ((2.0, 17.0), (32.0, 47.0))},
        group_km=400.0,
    )  # fmt: skip
    lat = np.array([37.1, 45.4, 45.6, 53.9, 37.1, 53.9, 41.0])  # 1,890 km: two blocks of 945
    lon = np.array([8.0, 11.0, 8.0, 11.0, 38.0, 38.0, 11.0])
    where = np.stack((lat, lon, np.zeros(7)), 1)
    found = kept.together(SimpleNamespace(where=where), made)
    assert found.tolist() == [0, 0, 1, 1, 2, 3, 0]


def test_cells_are_measured_beside_rivals_over_blocks_and_without_an_optimum(place, evaluated):
    found = files.read_json(evaluated / "metrics.json")
    cells, groups = found["cells"], found["about"]["groups"]
    assert OPTIMUM not in cells and {KRIGING, "increments", "kalman", PRIOR, CELL} < set(cells)
    assert found["about"]["bound"] == {} and groups == 4
    level = {name: one["metrics"]["rmse"]["value"] for name, one in cells.items()}
    assert level["increments"] < level["grid_linear"] < level[PRIOR]
    assert level["kalman"] < 1.3 * level["increments"] and level[CELL] < level[PRIOR]
    for one in cells.values():
        assert "gap" not in one["metrics"] and "over_optimum" not in one["metrics"]
        assert list(agree.rooted(one)) == []
    assert cells["increments"]["metrics"]["over_increments"]["value"] == 1.0
    assert cells["increments"]["metrics"]["gain"]["value"] == 0.0
    assert len(np.unique(items.read(evaluated).group)) == groups
    again = measure.Data.open(place / "data/sample/prepared/sky", told(), JOINT, 0)
    run = place / "reports/joint/sample/runs/sky" / CELL
    assert json.loads(json.dumps(measure.network(run, again, 1).entry)) == cells[CELL]


def test_the_plane_that_is_drawn_is_of_the_task_with_the_most_reports(place, evaluated):
    with np.load(evaluated / PICTURE) as found:
        told_of = {name: found[name] for name in found}
    part = kept.read(place / "data/sample/prepared/sky", "test")
    assert len(told_of["reports"]) == part.tasks.real.sum(1).max()
    assert {f"{CELL}.mean", f"{CELL}.sd", "increments.mean", "grid_linear.mean"} < set(told_of)
    lat = told_of["where"][0] + told_of["x"][:, 1] / reanalysis.DEGREE_KM
    wide = reanalysis.DEGREE_KM * np.cos(np.radians(lat))
    lon = told_of["where"][1] + told_of["x"][:, 0] / wide
    hour = np.full_like(lat, told_of["where"][2] + 0.5)
    there = SKY_THERE.at(0, *(one[None] for one in (hour, lat, lon, told_of["x"][:, 2])))[0]
    np.testing.assert_allclose(told_of["true"], there, atol=1e-9)


def test_claims_tables_page_and_figures_say_that_no_optimum_is_known(evaluated, tmp_path):
    found = {one["id"]: one for one in claims.check(evaluated.parents[1])}
    assert found["O2-2"]["verdict"] == "undecided" and "no exact law" in found["O2-2"]["why"]
    assert any(KRIGING in name for name in found["O2-1"]["compared"])
    assert "one day" in found["O2-1"]["why"] and "strips that train" in found["O2-3"]["why"]
    content = files.read_json(evaluated / "metrics.json")
    named = {f"sky/{name}": cell for name, cell in content["cells"].items()}
    whole = {"cells": named, "arms": over_seeds(named), "about": {"sky": content["about"]}}
    table = tables.results(whole, "sky")
    assert len(table.rows) == 8 and "over that of increments by kriging" in table.titles
    assert "No exact law is known" in tables.sentence(content["about"])
    assert "Simulated are the aircraft" in tables.sentence(content["about"])
    shown = page.rank_models(whole, "sky", {})
    assert shown.bound == "none is known" and len(shown.levels) == 1
    figures.draw(evaluated, tmp_path, whole, "sky")
    for name in ("by_lead", "by_distance", "learning", "map"):
        assert (tmp_path / f"sky-{name}.png").stat().st_size > 5000


def test_the_judge_draws_tasks_again_and_sees_what_is_forged(place, evaluated, monkeypatch):
    monkeypatch.chdir(place)
    asked = SimpleNamespace(training=SimpleNamespace(seed=0), family=lambda *_: JOINT)
    monkeypatch.setattr(agreeing, "parameters", lambda _: asked)
    prepared = (place / "data/sample/prepared/sky").relative_to(place)
    folder = evaluated.relative_to(place)
    assert [*agree.prepared(prepared), *agree.evaluated(folder)] == []

    def said(file, name, change):
        held = (prepared / file).read_bytes()
        tensors = load_file(prepared / file)
        tensors[name] = change(tensors[name])
        (prepared / file).write_bytes(save(tensors))
        found = " ".join(text for _, text in agree.prepared(prepared))
        (prepared / file).write_bytes(held)
        return found

    assert "target_true" in said(TASKS, "test.target_true", lambda one: 0.9 * one)
    assert "grid_y" in said(TASKS, "val.grid_y", lambda one: one + 0.01)
    assert "strips that train" in said(SKY, "values", lambda one: one + 1)
    held = (folder / "metrics.json").read_bytes()
    forged = files.read_json(folder / "metrics.json")
    forged["cells"][KRIGING]["metrics"]["mse"]["value"] /= 2
    files.write_json(folder / "metrics.json", forged)
    text = " ".join(text for _, text in agree.evaluated(folder))
    (folder / "metrics.json").write_bytes(held)
    assert "the prepared tasks give its law mse" in text


@pytest.mark.parametrize("file,what", [(SKY, "sky that trains"), (MAP, "plane that is drawn")])
def test_what_is_gone_or_cut_short_is_told(place, tmp_path, file, what):
    for name in (ABOUT, TASKS, SKY, MAP):
        (tmp_path / name).write_bytes((place / "data/sample/prepared/sky" / name).read_bytes())
    for content in (b"", None):
        (tmp_path / file).unlink() if content is None else (tmp_path / file).write_bytes(content)
        with pytest.raises(DataError, match=what):
            (real.opened(tmp_path, told()) if file == SKY else kept.plane(tmp_path))
