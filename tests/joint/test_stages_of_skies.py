"""From skies to the joint nowcast's table: a small set goes through every stage's work."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save
from skies import BUDGET, told

from stages import files, seeds
from stages.audit import agreeing
from stages.errors import DataError, ParamsError
from stages.fields.models import build
from stages.params import checked
from stages.scores import items, shell
from stages.tables.gather import over_seeds
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints
from stages.winds.joint import (
    acquire,
    agree,
    bands,
    claims,
    kept,
    measure,
    prepare,
    rivals,
    tables,
    validate,
)
from stages.winds.joint.batches import Batches
from stages.winds.joint.fresh import Fresh
from stages.winds.joint.layout import OPTIMUM, OPTIMUM_AIRCRAFT, OPTIMUM_GRID, PRIOR, TASKS
from stages.winds.joint.settings import Joint

READS = {"both": "both", "aircraft": "points", "grid": "grid"}
CELL = "joint_tnp-both-w8-s0"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project's folders with raw and prepared tasks and trained cells."""
    home = tmp_path_factory.mktemp("joint")
    for part in ("raw", "prepared"):
        (home / "data/mini" / part / "sky").mkdir(parents=True)
    raw, prepared = (home / "data/mini" / part / "sky" for part in ("raw", "prepared"))
    acquire.make(told(), raw)
    files.write_json(raw / "manifest.json", {"files": {}})
    prepare.write(raw, prepared, told())
    for arm, reads in READS.items():
        for seed in range(2 if arm == "both" else 1):
            train(home, prepared, arm, reads, seed)
    return home


def train(home, prepared, arm, reads, seed):
    data = Fresh.open(prepared, told(), BUDGET, seed, torch.device("cpu"))
    seeds.everything(seed)
    size = {"width": 8, "heads": 2, "layers": 1}
    model = build("joint_tnp", {"reads": reads}, size, 4, 2, 2)
    settings = loop.Settings(BUDGET.steps, BUDGET.validate_every, BUDGET.patience,
                             BUDGET.learning_rate, 4.0, seed, slices=BUDGET.tasks)  # fmt: skip
    done = loop.train(model, data, settings, Checkpoints(home / "work" / f"{arm}{seed}"))
    run = home / "reports/joint/mini/runs/sky" / f"joint_tnp-{arm}-w8-s{seed}"
    run.mkdir(parents=True)
    metadata = {"model": "joint_tnp", "arm": arm, "size": "w8", "seed": seed, "x_dim": 4,
                "i_dim": 2, "o_dim": 2, "arguments": {"reads": reads, **size}}  # fmt: skip
    (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
    files.write_json(run / "history.json", done)


JOINT = Joint(datasets=("sky",), training={"sky": BUDGET}, resamples=100)


def opened(place):
    return measure.Data.open(place / "data/mini/prepared/sky", told(), JOINT, 0)


@pytest.fixture(scope="module")
def evaluated(place):
    """The folder of the evaluation."""
    data = opened(place)
    answers = measure.companions(data)
    for run in sorted((place / "reports/joint/mini/runs/sky").iterdir()):
        answers[run.name] = measure.network(run, data, 1)
    final = place / "reports/joint/mini/evaluated/sky"
    final.parent.mkdir(parents=True)
    measure.write(answers, data, final)
    return final


def level(evaluated, name="rmse"):
    cells = files.read_json(evaluated / "metrics.json")["cells"]
    return {cell: one["metrics"][name]["value"] for cell, one in cells.items()}


def test_both_sources_beat_each_and_nothing_beats_the_optimum(evaluated):
    found = level(evaluated)
    assert found[OPTIMUM] < min(found[OPTIMUM_AIRCRAFT], found[OPTIMUM_GRID]) < found[PRIOR]
    assert found[OPTIMUM] == min(found.values())
    # trained for seconds: every arm is better than the mean wind, both than the aircraft alone
    cells = [CELL, *(f"joint_tnp-{arm}-w8-s0" for arm in ("aircraft", "grid"))]
    assert all(found[OPTIMUM] < found[cell] < found[PRIOR] for cell in cells)
    assert found[CELL] < found[cells[1]]
    assert found["increments"] < found["grid_linear"]
    assert found["kalman"] < 1.1 * found["increments"]
    gaps = level(evaluated, "gap")
    assert gaps[OPTIMUM] == 0 and all(gap >= 0 for gap in gaps.values())
    # measured values scatter about the exact law as it says
    assert abs(level(evaluated, "coverage_90")[OPTIMUM] - 0.9) < 0.03


def test_a_cell_measured_again_gives_the_same_entry(place, evaluated):
    again = measure.network(place / "reports/joint/mini/runs/sky" / CELL, opened(place), 1).entry
    cells = files.read_json(evaluated / "metrics.json")["cells"]
    assert json.loads(json.dumps(again)) == cells[CELL]


def test_errors_of_a_breakdown_make_up_the_whole(evaluated):
    for cell in files.read_json(evaluated / "metrics.json")["cells"].values():
        assert {name for name in cell if name.startswith("by_")} == set(tables.BY)
        assert list(agree.rooted(cell)) == []


def test_distance_is_to_the_nearest_report_and_labels_hold_their_values(place):
    tasks = kept.read(place / "data/mini/prepared/sky", "test").tasks
    far = bands.nearest_km(tasks)
    by_hand = min(
        float(np.linalg.norm(tasks.target_x[3, 2, :3] - report[:3]))
        for report in tasks.context_x[3, tasks.real[3]]
    )
    assert far[3, 2] == pytest.approx(by_hand)
    names = bands.labels(np.array([5.0, 14.9, 15.0, 119.0, 120.0]), [5, 15, 120], "min")
    assert names.tolist() == ["005-015 min"] * 2 + ["015-120 min"] * 3


def test_the_grid_between_cells_is_the_models_and_the_rivals_alike(place):
    from stages.fields.models.linear_interpolation import between

    made, tasks = told(), kept.read(place / "data/mini/prepared/sky", "val").tasks
    batch = Batches.of(made).batch(tasks)
    ours = rivals.interpolated(tasks.grid_y, made.law.axes, tasks.target_x)
    theirs = between(batch.grid, batch.target_x[..., :3])
    np.testing.assert_allclose(theirs[..., :2].numpy(), ours, atol=1e-5)
    np.testing.assert_allclose(theirs[..., 2], np.broadcast_to(tasks.age[:, None] / 3, (8, 12)),
                               rtol=1e-5)  # fmt: skip


def test_an_ablation_does_not_read_what_it_must_not(place):
    made, part = told(), kept.read(place / "data/mini/prepared/sky", "val")
    batch = Batches.of(made).batch(part.tasks)
    other = Batches.of(made).batch(
        kept.Tasks.of({**vars(part.tasks), "answers": {}, "grid_y": part.tasks.grid_y + 1})
    )
    moved = Batches.of(made).batch(
        kept.Tasks.of({**vars(part.tasks), "answers": {}, "context_y": part.tasks.context_y + 1})
    )
    for reads, told_grid, told_points in (
        ("both", False, False), ("points", True, False), ("grid", False, True)
    ):  # fmt: skip
        seeds.everything(0)
        model = build("joint_tnp", {"reads": reads}, {"width": 8, "heads": 2}, 4, 2, 2)
        with torch.no_grad():
            mean = model(batch).mean
            assert torch.equal(mean, model(other).mean) == told_grid
            assert torch.equal(mean, model(moved).mean) == told_points


def test_the_network_knows_differences_of_places_alone():
    model = build("joint_tnp", {}, {"width": 8, "heads": 2}, 4, 2, 2)
    sky = told().sky.drawn(4, 6, seeds.stream(0, "test"), exact=False)
    batch = Batches.of(told()).batch(sky)
    shift = torch.tensor([0.3, -0.2, 0.1])
    grid = batch.grid
    axes = tuple(axis + by for axis, by in zip(grid.axes, shift, strict=True))
    x, t = batch.context_x.clone(), batch.target_x.clone()
    x[..., :3] += shift
    t[..., :3] += shift
    moved = type(batch)(x, batch.context_y, batch.context_mask, t, batch.target_mask,
                        batch.target_y, type(grid)(axes, grid.values, grid.mask))  # fmt: skip
    with torch.no_grad():
        torch.testing.assert_close(model(batch).mean, model(moved).mean, atol=1e-5, rtol=1e-5)


def test_what_is_prepared_is_judged_good_and_a_wrong_law_a_leak_or_the_future_is_not(place):
    raw, prepared = (place / "data/mini" / part / "sky" for part in ("raw", "prepared"))
    rows = validate.summed(raw, prepared, {}, told())["splits"].rows
    test = next(row for row in rows if row["split"] == "test")
    assert test["tasks"] == 60 and not test["shared"] and not test["early"] and not test["lost"]
    assert test["coverage_off"] < 0.06
    wrong = place / "wrong"
    shutil.copytree(prepared, wrong)
    tensors = load_file(prepared / TASKS)
    tensors["test.both_sd"] = tensors["test.both_sd"] / 2
    tensors["val.target_x"][0] = tensors["test.target_x"][0]
    tensors["test.age"][:3] = 0.1
    (wrong / TASKS).write_bytes(save(tensors))
    rows = validate.summed(raw, wrong, {}, told())["splits"].rows
    test = next(row for row in rows if row["split"] == "test")
    assert test["coverage_off"] > 0.1 and test["early"] == 3 and test["shared"] == 1


def test_raw_tasks_that_know_the_future_or_are_broken_are_refused(place, tmp_path):
    with np.load(place / "data/mini/raw/sky/val.npz") as found:
        arrays = dict(found)

    def refused(what, **others):
        np.savez(tmp_path / "val.npz", **(arrays | others))
        with pytest.raises(DataError, match=what):
            prepare.loaded(tmp_path / "val.npz", told(), 8)

    refused("grids are not of the times", age=arrays["age"] - 1)
    x = arrays["context_x"].copy()
    x[..., 3] += 30 * arrays["real"]
    refused("reports are not of the times", context_x=x)
    refused("another shape", grid_y=arrays["grid_y"][:, 1:])
    refused("not finite", target_y=np.full_like(arrays["target_y"], np.nan))
    (tmp_path / "val.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read"):
        prepare.loaded(tmp_path / "val.npz", told(), 8)


@pytest.mark.parametrize(
    "others,what",
    [
        ({"lead_min": (120.0, 5.0)}, "lead_min goes from 120 to 5"),
        ({"every_min": 60.0}, "longer than memory_min"),
        ({"parts": ()}, "parts"),
    ],
)
def test_settings_that_do_not_fit_are_told(others, what):
    with pytest.raises(ParamsError, match=what):
        told(**others)
    with pytest.raises(ParamsError, match="training: sky is missing"):
        checked(Joint, {"datasets": ("sky",)}, "joint")


def test_the_crps_is_that_of_samples_and_its_parts_make_the_whole(place, evaluated):
    data = measure.Data.open(place / "data/mini/prepared/sky", told(), JOINT, 0)
    mean, sd = data.test.laws["both"]
    rng = seeds.stream(0, "crps")
    drawn = mean[None] + sd[None, ..., None] * rng.standard_normal((400, *mean.shape))
    other = mean[None] + sd[None, ..., None] * rng.standard_normal((400, *mean.shape))
    expected = data.scale * (np.abs(drawn - data.y).mean() - 0.5 * np.abs(drawn - other).mean())
    entry = files.read_json(evaluated / "metrics.json")["cells"]["optimum"]
    assert abs(entry["metrics"]["crps"]["value"] / expected - 1) < 0.01
    entry["by_lead"]["005-015 min"]["crps"]["value"] *= 1.1
    assert ["by_lead" in text for text in agree.rooted(entry)] == [True]


def test_claims_rest_on_the_evaluation_and_tables_and_figures_show_it(place, evaluated, tmp_path):
    from stages.winds.joint import figures

    found = {one["id"]: one for one in claims.check(evaluated.parents[1])}
    assert set(found) == {"O2-1", "O2-2", "O2-3"}
    parts = found["O2-1"]["compared"]
    assert any("aircraft" in name for name in parts) and any("grid" in name for name in parts)
    content = files.read_json(evaluated / "metrics.json")
    named = {f"sky/{name}": cell for name, cell in content["cells"].items()}
    whole = {"cells": named, "arms": over_seeds(named), "about": {"sky": content["about"]}}
    table = tables.results(whole, "sky")
    assert len(table.rows) == 10 and table.rows[-3][0].startswith("the exact law of both")
    lead = tables.breakdown(whole, "sky", "by_lead")
    assert lead.titles[1] == "005-015 min" and len(lead.rows) == 10
    ranked = tables.breakdown(whole, "sky", "by_lead", "crps")
    assert ranked.titles[0] == "CRPS [m/s] by lead time" and ranked.rows != lead.rows
    assert "8 m/s over 400 km" in tables.sentence(content["about"])
    figures.draw(evaluated, tmp_path, whole, "sky")
    for name in ("by_lead", "by_distance", "learning"):
        assert (tmp_path / f"sky-{name}.png").stat().st_size > 5000


def test_what_is_not_learned_leaves_a_claim_undecided(place, evaluated, tmp_path):
    home = tmp_path / "reports/joint/mini"
    shutil.copytree(evaluated, home / "evaluated/sky")
    told_of = files.read_json(home / "evaluated/sky/metrics.json")
    prior = told_of["cells"][PRIOR]["metrics"]["mse"]["value"]
    told_of["cells"]["joint_tnp-aircraft-w8-s0"]["metrics"]["mse"]["value"] = prior + 1
    files.write_json(home / "evaluated/sky/metrics.json", told_of)
    first = claims.check(home)[0]
    assert first["verdict"] == "undecided" and "untrained" in first["why"]


def test_the_judge_agrees_and_sees_what_is_forged(place, evaluated, monkeypatch):
    monkeypatch.chdir(place)
    asked = SimpleNamespace(training=SimpleNamespace(seed=0), family=lambda *_: JOINT)
    monkeypatch.setattr(agreeing, "parameters", lambda _: asked)
    prepared, folder = (place / "data/mini/prepared/sky").relative_to(place), evaluated
    folder = folder.relative_to(place)
    assert [*agree.prepared(prepared), *agree.evaluated(folder)] == []
    whole = files.read_json(folder / "metrics.json")
    forged = json.loads(json.dumps(whole))
    for one in (
        forged["cells"][CELL]["metrics"]["rmse"],
        forged["cells"][OPTIMUM]["metrics"]["mse"],
    ):
        one.update({key: one[key] / 2 for key in ("value", "low", "high")})
    files.write_json(folder / "metrics.json", forged)
    told_of = " ".join(text for _, text in agree.evaluated(folder))
    files.write_json(folder / "metrics.json", whole)
    assert "not the root of its mse" in told_of and "better than is possible" in told_of
    assert "the prepared tasks give its law mse" in told_of
    scores = (folder / items.FILE).read_bytes()
    with np.load(folder / items.FILE) as found:
        swapped = {name: found[name] for name in found}
    swapped[f"{CELL}.gap"] = np.sort(swapped[f"{CELL}.gap"])
    np.savez(folder / items.FILE, **swapped)
    told_of = " ".join(text for _, text in agree.evaluated(folder))
    (folder / items.FILE).write_bytes(scores)
    assert "the interval of its gap" in told_of
    tensors = load_file(prepared / TASKS)
    kept_bytes = (prepared / TASKS).read_bytes()
    tensors["test.both_mean"] = tensors["test.both_mean"] + 0.01
    (prepared / TASKS).write_bytes(save(tensors))
    told_of = " ".join(text for _, text in agree.prepared(prepared))
    (prepared / TASKS).write_bytes(kept_bytes)
    assert "both_mean is not that of the raw tasks" in told_of and "0.01 off" in told_of
