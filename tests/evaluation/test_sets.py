"""Evaluation of cells on sets: the numbers recomputed by hand, companions that are known,
probes, records, mistakes and bad cells."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import declared_cells
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn
from toy_sets import COUNTS, POINTS, SETTINGS, cell, heat_again, read, toy

from stages import files, params
from stages.batches import Prediction
from stages.errors import DataError, DivergedError, InputError
from stages.fields import evaluate as command
from stages.fields import evaluation_data
from stages.fields import measure as evaluation
from stages.fields import problem as preparation
from stages.fields.evaluation_data import EvaluationData, Settings
from stages.fields.sets import PreparedSets
from stages.scores import pool, shell
from stages.training import store


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Prepared copies and heat, cells of both, and what evaluation writes of them."""
    root = tmp_path_factory.mktemp("sets")
    for name, copies in (("copies", True), ("heat", False)):
        prepared = root / "prepared" / name
        prepared.mkdir(parents=True)
        made = toy(copies)
        preparation.check(made, name)
        preparation.write(made, prepared, {})
        dims = PreparedSets.open(prepared).dimensions
        for model, seed, targets in (("cnp", 0, None), ("msa", 0, 4)):
            cell(root / "runs" / name, model, seed, targets, **dims)
        settings = Settings(8, 200, 0, probed=copies, most=20)
        with pytest.MonkeyPatch.context() as patch:
            if copies:  # one core: no further process
                patch.setattr(pool.os, "sched_getaffinity", lambda pid: {0})
            cells = shell.trained(root / "runs" / name)
            evaluation.evaluate(cells, prepared, root / "evaluated" / name, settings)
    return root


@pytest.mark.parametrize("run", ["cnp-shared-20k-s0", "msa-shared-20k-s0"])
def test_errors_are_those_of_each_set_asked_alone_as_many_targets_as_in_training(project, run):
    predicted, measured = heat_again(project, run)
    entry = read(project, "heat")["cells"][run]
    got = entry["metrics"]
    assert (
        got["mse"]["value"] == pytest.approx(((predicted - measured) ** 2).mean(), rel=1e-5)
        and got["mse"]["unit"] == "K²"
    )
    assert (
        got["rmse"]["value"] == pytest.approx(got["mse"]["value"] ** 0.5)
        and got["rmse"]["unit"] == "K"
    )
    batches = [
        ((predicted - measured)[first : first + 8] ** 2).mean() ** 0.5 for first in (0, 8, 16)
    ]
    assert got["rmse_batch_mean"]["value"] == pytest.approx(np.mean(batches), rel=1e-5)
    assert got["mse"]["n"] == 210 and got["mse_val"]["n"] == 120
    assert entry["parameters"] == sum(
        v.numel()
        for v in store.load(str(project / "runs/heat" / run / "weights.safetensors"))[
            0
        ].parameters()
    )
    assert entry["history"] == {"val": [[50, 0.5], [100, 0.25]]} and "probes" not in entry


def test_training_errors_are_of_as_many_training_sets_as_there_are_test_sets_evenly_spread(project):
    held = PreparedSets.open(project / "prepared/heat")
    numbers, tested = held.split("train"), len(held.split("test"))
    assert len(numbers) > tested
    numbers = numbers[[k * len(numbers) // tested for k in range(tested)]]
    model, _ = store.load(str(project / "runs/heat/cnp-shared-20k-s0/weights.safetensors"))
    error = (held.predict(model, numbers, 10) - held.target_y[numbers]).numpy() * files.read_json(
        project / "prepared/heat/sets.json"
    )["scaler"]["o_std"]
    got = read(project, "heat")["cells"]["cnp-shared-20k-s0"]["metrics"]
    assert (
        got["mse_train"]["value"] == pytest.approx((error**2).mean(), rel=1e-4)
        and got["mse_train"]["n"] == got["mse"]["n"]
    )
    assert got["mse_train"]["value"] != pytest.approx(got["mse"]["value"], rel=1e-3)


def test_a_batch_of_targets_matters_to_a_model_whose_targets_see_each_other(project):
    """Negative control of the test above: asking all ten at once gives other numbers."""
    held = PreparedSets.open(project / "prepared/heat")
    model, _ = store.load(str(project / "runs/heat/msa-shared-20k-s0/weights.safetensors"))
    numbers = held.split("test")
    assert (held.predict(model, numbers, 4) - held.predict(model, numbers, 10)).abs().max() > 1e-4


def test_companions_are_what_they_say(project):
    made = toy(False)
    error = made.target_y[made.split == 2] - made.target_y[made.split == 0].mean()
    cells = read(project, "heat")["cells"]
    assert (
        cells["mean"]["metrics"]["mse"]["value"] == pytest.approx((error**2).mean(), rel=1e-4)
        and cells["mean"]["parameters"] == 0
    )
    assert "nearest" not in cells  # heat is no temperature
    copies = read(project, "copies")["cells"]
    assert (
        copies["nearest"]["metrics"]["mse"]["value"] == 0
        and copies["nearest"]["metrics"]["r2"]["value"] == 1
    )
    assert (
        abs(copies["mean"]["metrics"]["r2"]["value"]) < 0.05
        and "mse_permuted" not in copies["mean"]["metrics"]
    )


def test_the_nearest_point_is_found_in_the_problems_units_and_the_values_unit(tmp_path):
    """Axes of very different spread, standardised apart: the nearest by metres is not the
    nearest by standard deviations."""
    made = toy(True)
    stretched = {name: getattr(made, name) * [1.0, 40.0] for name in ("context_x", "target_x")}
    targets = stretched["target_x"] + np.random.default_rng(3).normal(
        size=stretched["target_x"].shape
    )
    made = preparation.Sets(
        **{
            **vars(made),
            "context_x": stretched["context_x"],
            "target_x": targets,
            "context_y": 5 + 3 * made.context_y,
            "target_y": 5 + 9 * made.target_y,
            "standardise": True,
        }
    )
    preparation.write(made, tmp_path, {})
    held = EvaluationData.open(tmp_path, SETTINGS)
    numbers = held.sets.split("test")
    got = held.real("o", evaluation.nearest(held, numbers))
    for row, number in enumerate(numbers.tolist()):
        distance = np.linalg.norm(targets[number][:, None] - made.context_x[number][None], axis=2)
        assert got[row] == pytest.approx(
            made.context_y[number][distance.argmin(1)], rel=1e-4, abs=1e-4
        )


def test_permuted_contexts_keep_their_values_and_do_not_know_the_other_sets(project):
    held = PreparedSets.open(project / "prepared/copies")
    numbers = held.split("test")
    got = evaluation_data.shuffled(held, numbers, 0)
    assert torch.equal(
        got.sort(1).values, held.context_y[numbers].sort(1).values
    ) and not torch.equal(got, held.context_y[numbers])
    assert torch.equal(evaluation_data.shuffled(held, numbers[5:], 0), got[5:]) and not torch.equal(
        evaluation_data.shuffled(held, numbers, 1), got
    )


def test_what_a_model_that_reads_places_loses_by_permuted_values(project):
    """A model that copies its nearest value: right without permuting, and wrong by two variances
    on average with it."""

    class Copy(nn.Module):
        def forward(self, batch):
            nearest = torch.cdist(
                batch.target_x, batch.context_x, compute_mode="donot_use_mm_for_euclid_dist"
            ).argmin(2)
            return Prediction(torch.take_along_dim(batch.context_y, nearest[..., None], 1))

    held = EvaluationData.open(project / "prepared/copies", SETTINGS)
    entry, shown = evaluation.measure(
        Copy(), {"model": "copy", **held.sets.dimensions, "targets": None}, held, "copy"
    )
    assert (
        entry["metrics"]["mse"]["value"] == 0 == entry["metrics"]["mse_val"]["value"]
        and entry["metrics"]["hull_share"]["value"] == 0
    )
    values = held.sets.context_y[held.sets.split("test")].double()
    expected = 2 * (values - values.mean(1, keepdim=True)).square().mean()  # over all orders
    assert entry["metrics"]["mse_permuted"]["value"] == pytest.approx(float(expected), rel=0.2)
    torch.testing.assert_close(
        torch.from_numpy(shown), held.sets.target_y[held.sets.split("test")][[0, 5, 10, 15]]
    )


def test_probes_of_a_failure_cell_are_metrics_in_their_ranges(project):
    cells = read(project, "copies")["cells"]
    # no model of these has learned anything: no error is planted where answers err
    assert set(cells["cnp-shared-20k-s0"]["probes"]) == {"overlap", "tightness", "inputs"}
    probed = cells["msa-shared-20k-s0"]["probes"]
    assert probed["latents"]["count"]["value"] == 4  # targets at a time
    assert (
        probed["latents"]["effective"]["value"]
        == pytest.approx(1)
        == probed["latents"]["largest_share"]["value"]
    )
    assert set(probed["overlap"]) == {"0", "25", "50", "75", "100"}
    assert (
        probed["tightness"]["0-0.5"]["n"]
        + sum(probed["tightness"][name]["n"] for name in probed["tightness"] if name != "0-0.5")
        == 21 * 4
    )
    assert (
        1 <= probed["inputs"]["effective"]["value"] <= POINTS
        and 0 <= probed["inputs"]["nearest_share"]["value"] <= 1
    )
    leaves = [leaf for group in probed.values() for leaf in group.values()]
    assert all({"value", "unit", "n"} <= leaf.keys() for leaf in leaves)


def test_predictions_of_shown_sets_are_in_the_problems_units(project):
    tensors = load_file(project / "evaluated/heat/predictions.safetensors")
    made, shown = toy(False), read(project, "heat")["shown"]
    assert len(shown) == 4 and set(made.split[shown]) == {2}
    for name in ("context_x", "context_y", "target_x", "target_y"):
        assert tensors[name] == pytest.approx(getattr(made, name)[shown], rel=1e-4, abs=1e-3)
    predicted, _ = heat_again(project, "msa-shared-20k-s0")
    assert tensors["msa-shared-20k-s0"] == pytest.approx(predicted[np.array(shown) - 42], rel=1e-5)
    assert set(tensors) - {"context_x", "context_y", "target_x", "target_y"} == set(
        read(project, "heat")["cells"]
    )


def test_one_cell_alone_gives_the_same_numbers_and_one_process_the_same_bytes_as_two(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda pid: {0})
    alone = evaluation.cell(
        project / "runs/copies/msa-shared-20k-s0",
        project / "prepared/copies",
        Settings(8, 200, 0, probed=True, most=20),
    )
    assert json.loads(json.dumps(alone)) == read(project, "copies")["cells"]["msa-shared-20k-s0"]
    evaluation.evaluate(
        shell.trained(project / "runs/heat"),
        project / "prepared/heat",
        tmp_path / "again",
        SETTINGS,
    )
    for file in (project / "evaluated/heat").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_metrics_are_strict_json_with_counts_of_sets_and_groups(project):
    assert not re.search(r"NaN|Infinity", (project / "evaluated/copies/metrics.json").read_text())
    assert read(project, "copies")["sets"] == COUNTS and read(project, "copies")["groups"] == {
        "train": 10,
        "val": 4,
        "test": 7,
    }


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [("nan", DivergedError, "broken, test sets"), ("dims", DataError, "x_dim 2")],
)
def test_a_bad_cell_stops_with_its_name(project, bad, error, says):
    class Broken(nn.Module):
        def forward(self, batch):
            return Prediction(torch.full((*batch.target_x.shape[:2], 1), torch.nan))

    held = EvaluationData.open(project / "prepared/copies", SETTINGS)
    meta = {"model": "broken", **held.sets.dimensions} | ({"x_dim": 3} if bad == "dims" else {})
    with pytest.raises(error, match=says):
        evaluation.measure(Broken(), meta, held, "broken")


def test_no_cells_and_no_sets_are_plain_errors(project, tmp_path):
    with pytest.raises(InputError, match="no trained cell"):
        shell.trained(tmp_path / "none")
    with pytest.raises(DataError, match="the prepared sets are missing"):
        evaluation.evaluate(
            shell.trained(project / "runs/heat"), tmp_path / "none", tmp_path / "out", SETTINGS
        )
    assert not (tmp_path / "out").exists()


def test_a_cell_without_its_history_is_an_error_and_nothing_is_written(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda pid: {0})
    shutil.copytree(project / "runs/heat", tmp_path / "runs")
    (tmp_path / "runs/cnp-shared-20k-s0/history.json").unlink()
    with pytest.raises(DataError, match="history.json"):
        evaluation.evaluate(
            shell.trained(tmp_path / "runs"), project / "prepared/heat", tmp_path / "out", SETTINGS
        )
    assert not (tmp_path / "out").exists()


@pytest.fixture
def planned(project, tmp_path, monkeypatch):
    """A project's root with the toy sets, and parameters whose mini profile has them."""
    home = Path.cwd()
    for name in ("prepared", "runs"):
        place = (
            tmp_path
            / {"prepared": "data/mini/prepared", "runs": "reports/failure_modes/mini/runs"}[name]
        )
        shutil.copytree(project / name, place)
    (tmp_path / "reports/failure_modes/dvc.yaml").touch()
    (tmp_path / "stages").symlink_to(home / "stages")
    everything = params.load(home / "params.yaml")
    mini = everything.profiles["mini"]
    budget = params.SetBudget(steps=10, validate_every=5, patience=2, batch=8, learning_rate=1e-3)
    mini = mini.model_copy(
        update={
            "learning": {"copies": budget, "heat": budget},
            "evaluation": mini.evaluation.model_copy(update={"bootstrap": 200}),
        }
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRADEWIND_DEVICE", "cpu")
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda pid: {0})
    of = Settings.of
    monkeypatch.setattr(Settings, "of", staticmethod(lambda *told: replace(of(*told), most=20)))
    runs = tmp_path / "reports/failure_modes/mini/runs"
    trained = declared_cells.of(runs / "heat", "cnp-shared-20k-s1")
    changed = everything.model_copy(
        update={
            "profiles": {**everything.profiles, "mini": mini},
            "cells": {"failure_modes": {"mini": trained}},
        }
    )
    monkeypatch.setattr(params, "load", lambda: changed)
    return tmp_path


def test_the_stage_on_sets_writes_its_outputs_and_a_record_of_them(planned, project):
    assert command.main(["failure_modes", "mini", "heat"]) == 0
    final = planned / "reports/failure_modes/mini/evaluated/heat"
    record = files.read_json(planned / "reports/failure_modes/mini/records/heat.evaluate.json")
    assert set(record["outputs"]) == {
        f"reports/failure_modes/mini/evaluated/heat/{name}"
        for name in ("metrics.json", "predictions.safetensors")
    }
    assert (
        record["params"]["batch"] == 8
        and record["params"]["probed"]
        and "stages/fields/probes.py" in record["code"]["files"]
    )
    assert "data/mini/prepared/heat/sets.safetensors" in record["inputs"]
    told = files.read_json(final / "metrics.json")["cells"]
    assert "probes" in told["cnp-shared-20k-s0"] and set(told) == {
        "cnp-shared-20k-s0",
        "msa-shared-20k-s0",
        "mean",
    }
    before = read(project, "heat")["cells"]["cnp-shared-20k-s0"]["metrics"]
    assert told["cnp-shared-20k-s0"]["metrics"] == before


def test_a_cell_that_params_do_not_know_is_refused_by_name(planned, capsys):
    runs = planned / "reports/failure_modes/mini/runs/heat"
    (runs / "cnp-shared-20k-s0").rename(runs / "cnp-shared-20k-s1")
    assert command.main(["failure_modes", "mini", "heat"]) == 1
    assert "its checkpoint is that of cnp-shared-20k-s0" in capsys.readouterr().err


def test_a_wrong_data_set_ends_with_2_and_the_nearest_name(planned, capsys):
    assert command.main(["failure_modes", "mini", "heats"]) == 2
    assert (
        "heat" in capsys.readouterr().err
        and not (planned / "reports/failure_modes/mini/evaluated").exists()
    )
