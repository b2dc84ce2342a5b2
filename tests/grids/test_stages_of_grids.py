"""From tasks on and off the grid to their table: small sets go through every stage's work."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from stages import files, seeds
from stages.errors import DataError, InputError, ParamsError
from stages.fields.grids import acquire, claims, kept, measure, prepare, tables, validate
from stages.fields.grids.fresh import Fresh
from stages.fields.grids.layout import EXACT, EXACT_OFF, EXACT_ON, PICTURE, PRIOR, TASKS
from stages.fields.grids.settings import Budget, Coupled, Grids
from stages.fields.models import build
from stages.layers import grid as on
from stages.params import checked
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints

LINE = {"seed": 0, "process": "dual", "correlation": 0.8, "low": -0.602, "high": 0.602,
        "noise": 0.2, "axes": 1, "cells": 16, "context": 12, "targets": 10, "reach": 2.0,
        "range": 4.0, "val": 8, "test": 40}  # fmt: skip
GLOBE = {"seed": 0, "process": "globe", "axes": 2, "noise": 0.5, "cells": 6, "context": 12,
         "targets": 12, "val": 8, "test": 40}  # fmt: skip
PLANE = LINE | {"axes": 2, "cells": 8, "low": -0.301, "high": 0.301, "range": 2.0}
BUDGET = Budget(
    steps=60, validate_every=30, patience=9, learning_rate=0.01, schedule="cosine", tasks=8,
    targets=8,
)  # fmt: skip
SIZES = {
    "dual_80": {"width": 16, "heads": 2, "layers": 1, "nearest": 3},
    "globe": {"width": 16, "heads": 2, "layers": 1, "window": 3, "surface": "sphere"},
    "plane_80": {"width": 16, "heads": 2, "layers": 1, "nearest": 3},
}
TOLD = {"dual_80": LINE, "globe": GLOBE, "plane_80": PLANE}
sets = pytest.mark.parametrize("dataset", sorted(TOLD))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """raw/SET and prepared/SET."""
    home = tmp_path_factory.mktemp("grids")
    for name, made in TOLD.items():
        told = checked(Coupled, made, "made")
        for part in ("raw", "prepared"):
            (home / part / name).mkdir(parents=True)
        acquire.make(told, home / "raw" / name)
        prepare.write(home / "raw" / name, home / "prepared" / name, told)
    return home


@pytest.fixture(scope="module")
def cells(place):
    """Of every set a trained cell's folder."""
    found = {}
    for name, size in SIZES.items():
        told = checked(Coupled, TOLD[name], "made")
        data = Fresh.open(place / "prepared" / name, told, BUDGET, 0, torch.device("cpu"))
        seeds.everything(0)
        model = build("grid_tnp", {"encoder": "mhca"}, size, told.axes, 1, 1)
        settings = loop.Settings(BUDGET.steps, BUDGET.validate_every, BUDGET.patience,
                                 BUDGET.learning_rate, 4.0, 0, slices=BUDGET.tasks)  # fmt: skip
        done = loop.train(model, data, settings, Checkpoints(place / "work" / name))
        run = place / "runs" / name / "grid_tnp-mhca-tiny-s0"
        run.mkdir(parents=True)
        metadata = {"model": "grid_tnp", "arm": "mhca", "size": "tiny", "seed": 0, "i_dim": 1,
                    "o_dim": 1, "x_dim": told.axes,
                    "arguments": {"encoder": "mhca", **size}}  # fmt: skip
        (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
        files.write_json(run / "history.json", done)
        found[name] = run
    return found


def opened(place, dataset):
    told = Grids(datasets=(dataset,), training={dataset: BUDGET}, resamples=100)
    coupled = checked(Coupled, TOLD[dataset], "made")
    return measure.Data.open(place / "prepared" / dataset, coupled, told, 0)


@sets
def test_what_is_prepared_is_judged_good_and_a_wrong_law_or_a_leak_is_not(place, dataset):
    told, folder = checked(Coupled, TOLD[dataset], "made"), place / "prepared" / dataset
    files.write_json(place / "raw" / dataset / "manifest.json", {"files": {}})
    rows = validate.summed(place / "raw" / dataset, folder, {}, told)["splits"].rows
    test = next(row for row in rows if row["split"] == "test")
    assert test["tasks"] == 40 and not test["shared"] and not test["lost"]
    assert test["coverage_off"] < 0.1
    tensors = load_file(folder / TASKS)
    # six of ten targets within an interval that promises nine
    tensors["test.both_sd"] = tensors["test.both_sd"] / 2
    tensors["val.target_x"][0, 0] = tensors["test.target_x"][0, 0]
    wrong = place / "wrong" / dataset
    wrong.mkdir(parents=True)
    (wrong / TASKS).write_bytes(prepare.save(tensors))
    (wrong / "about.json").write_bytes((folder / "about.json").read_bytes())
    rows = validate.summed(place / "raw" / dataset, wrong, {}, told)["splits"].rows
    assert any(row["coverage_off"] > 0.1 for row in rows) and rows[0]["shared"] == 1


@sets
def test_kept_tasks_are_the_raw_ones_and_each_row_is_what_it_is_alone(place, dataset):
    read = kept.read(place / "prepared" / dataset, "test")
    with np.load(place / "raw" / dataset / "test.npz") as raw:
        np.testing.assert_allclose(
            read.batch.grid.values.flatten(1).numpy(), raw["grid_y"], rtol=1e-6
        )
        np.testing.assert_array_equal(read.laws["on"][0], raw["on_mean"])
    few = read.some(slice(3, 5))
    assert few.context_x.shape[0] == few.grid.values.shape[0] == 2
    assert torch.equal(few.grid.values[0], read.batch.grid.values[3])
    assert on.collate([read.some(slice(k, k + 1)) for k in (3, 4)]).grid.shape == few.grid.shape


@sets
def test_a_cell_learns_and_is_measured_between_prior_and_bound(place, cells, dataset):
    data = opened(place, dataset)
    answers = measure.companions(data)
    answers["grid_tnp-mhca-tiny-s0"] = measure.network(cells[dataset], data, 1)
    entries = {name: one.entry for name, one in answers.items()}
    level = {name: one["metrics"]["log_likelihood"]["value"] for name, one in entries.items()}
    ours = level["grid_tnp-mhca-tiny-s0"]
    assert level[PRIOR] < ours < level[EXACT]
    assert level[EXACT] > max(level[EXACT_OFF], level[EXACT_ON])
    assert entries[EXACT]["metrics"]["gap"]["value"] == 0
    z = entries[EXACT]["metrics"]["z_square"]["value"]
    assert 0.7 < z < 1.3
    measure.write(answers, data, place / "evaluated" / dataset)
    with np.load(place / "evaluated" / dataset / PICTURE) as picture:
        assert picture["grid_tnp-mhca-tiny-s0.sd"].shape == (len(picture["places"]),)
    again = measure.network(cells[dataset], data, 1).entry
    assert json.dumps(again) == json.dumps(entries["grid_tnp-mhca-tiny-s0"])
    if dataset == "globe":
        assert entries[EXACT]["metrics"]["land_over_sea"]["value"] > 1
    if dataset != "dual_80":
        figures_of(place, dataset)


def figures_of(place, dataset):
    from stages.fields.grids import figures

    told = files.read_json(place / "evaluated" / dataset / "metrics.json")
    named = {f"{dataset}/{name}": cell for name, cell in told["cells"].items()}
    content = {"cells": named, "arms": over_seeds(named), "about": {dataset: told["about"]}}
    figures.draw(place / "evaluated" / dataset, place, content, dataset)
    for name in ("learning", "task"):
        assert (place / f"{dataset}-{name}.png").stat().st_size > 5000
    table, _ = tables.results(content, dataset, {})
    unit = "K" if dataset == "globe" else "1"
    assert len(table.rows) == 5 and f"RMSE [{unit}]" in table.titles
    assert "of both sources" in tables.sentence(told["about"])


def test_claims_are_undecided_without_cells_or_spreads(place, cells, tmp_path):
    home = tmp_path / "reports/on_off_grid/mini"
    (home / "evaluated").mkdir(parents=True)
    entries = claims.check(home)
    assert [one["id"] for one in entries] == [f"E-{k}" for k in range(1, 11)]
    assert {one["verdict"] for one in entries} == {"undecided"}
    assert "201 times the multiplications, not timed" in entries[7]["why"]


def test_a_claim_is_decided_by_cells_and_the_prior_stops_what_has_not_learned(place):
    def cell(value, width=0.01):
        number = {"value": value, "low": value - width, "high": value + width, "n": 9}
        return {"metrics": {"log_likelihood": number}}

    found = {PRIOR: cell(-1.4)}
    for seed in (0, 1, 2):
        found[f"grid_tnp-plain-line-s{seed}"] = cell(-0.5 - 0.002 * seed)
        found[f"grid_tnp-mhca-line-s{seed}"] = cell(-0.49 - 0.002 * seed)
        found[f"grid_tnp-setconv-line-s{seed}"] = cell(-0.9 - 0.002 * seed)
        found[f"grid_tnp-setconv_late-line-s{seed}"] = cell(-1.5 - 0.002 * seed)
    dual = claims.PairedEvaluation("dual_80", found)
    assert claims.better(dual, "grid_tnp-mhca", "grid_tnp-plain", -0.01).verdict == "holds"
    assert claims.e2({"dual_80": dual})["verdict"] == "fails"
    late = claims.e3({"dual_80": dual})
    assert late["verdict"] == "undecided" and "untrained" in late["why"]


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"correlation": None}, "dual needs correlation"),
        ({"low": 1.0}, "is above high"),
        ({"correlation": 1.5}, "correlation"),
        ({"cells": 1}, "cells"),
    ],
)
def test_parameters_that_make_no_tasks_are_refused(wrong, what):
    with pytest.raises(ParamsError, match=what):
        checked(Coupled, LINE | wrong, "made")


def test_raw_tasks_that_are_cut_or_not_finite_are_refused_by_name(place, tmp_path):
    told = checked(Coupled, LINE, "made")
    with np.load(place / "raw/dual_80/test.npz") as raw:
        arrays = dict(raw)
    arrays["grid_y"][2, 3] = np.nan
    np.savez(tmp_path / "test.npz", **arrays)
    with pytest.raises(DataError, match=r"not finite"):
        prepare.loaded(tmp_path / "test.npz", told, 40)
    np.savez(tmp_path / "test.npz", **(arrays | {"grid_y": arrays["grid_y"][:, :9]}))
    with pytest.raises(DataError, match="another shape"):
        prepare.loaded(tmp_path / "test.npz", told, 40)
    whole = (place / "raw/dual_80/test.npz").read_bytes()
    (tmp_path / "test.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cannot be read"):
        prepare.loaded(tmp_path / "test.npz", told, 40)


def test_arguments_that_do_not_go_together_are_refused():
    for arm in (
        {"encoder": "mhca", "order": "after"}, {"encoder": "none", "coarsen": "before", "patch": 2},
        {"coarsen": "encoder"}, {"patch": 2}, {"index": "wrong"}, {"surface": "torus"},
        {"encoder": "mhca", "pooling": "sum"},
        {"encoder": "setconv", "order": "after", "pooling": "sum"},
    ):  # fmt: skip
        with pytest.raises(InputError):
            build("grid_tnp", arm, None, 2, 1, 1)


@pytest.mark.parametrize("coarsen", ["before", "after", "encoder"])
@pytest.mark.parametrize("encoder", ["mhca", "setconv"])
def test_coarsened_grids_are_read_and_every_parameter_learns(place, encoder, coarsen):
    arm = {"encoder": encoder, "coarsen": coarsen, "patch": 2, "window": 3}
    seeds.everything(0)
    model = build("grid_tnp", arm, SIZES["globe"] | {"window": 2}, 2, 1, 1)
    batch = kept.read(place / "prepared/globe", "val").some(slice(0, 4))
    model(batch).loss(batch.target_y).mean().backward()
    lost = [name for name, one in model.named_parameters() if one.grad is None]
    assert not lost


def test_cells_that_are_unknown_do_not_tell_and_points_round_the_date_line_are_the_same(place):
    seeds.everything(0)
    model = build("grid_tnp", {"encoder": "mhca"}, SIZES["globe"], 2, 1, 1).eval()
    batch = kept.read(place / "prepared/globe", "val").some(slice(0, 4))
    mask = batch.grid.mask.clone()
    mask[:, 2, 3] = False
    holed = replace(batch, grid=replace(batch.grid, mask=mask))
    values = batch.grid.values.clone()
    values[:, 2, 3] = 1e3
    other = replace(holed, grid=replace(holed.grid, values=values))
    torch.testing.assert_close(model(holed).mean, model(other).mean)
    assert (model(holed).mean - model(batch).mean).abs().max() > 1e-6
    around = torch.tensor([0.0, 360.0])
    turned = replace(batch, context_x=batch.context_x + around, target_x=batch.target_x - around)
    torch.testing.assert_close(model(turned).mean, model(batch).mean, atol=1e-4, rtol=1e-4)
