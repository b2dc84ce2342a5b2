"""The cells of experiments, as they stand beside them: one profile in all files, what a cell may
vary of its training, and how that reaches the optimizer."""

import shutil
from pathlib import Path

import pytest
import torch
from params_changed import TRUE

from stages import params, runner
from stages.errors import ParamsError
from stages.fields.train import plan as fields_plan
from stages.params.cells import GROUPS
from stages.sequences.train import plan as sequences_plan
from stages.training import cells, loop, shell
from stages.winds.train import plan as winds_plan

ROOT = Path(__file__).parents[1]
WORD = "\nrun: *mini"


def project(folder: Path, text: str) -> params.Params:
    """The example's parameters, its cells in a file of their own."""
    whole, _, own = TRUE.partition("\ncells:")
    (folder / "params.yaml").write_text(whole, encoding="utf-8")
    file = folder / "reports/wind_nowcast/cells.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    mini = "".join(
        f"{line[4:]}\n" for line in own.splitlines()[2:]
    )  # beneath `cells: wind_nowcast:`
    mini = mini.replace("mini:", "mini: &mini", 1)
    file.write_text(mini + text, encoding="utf-8")
    return params.load(folder / "params.yaml")


OTHERS = "sample: &sample {cells: {}}\nfull: &full {cells: {}}\n"


def test_the_cells_of_a_file_are_those_of_the_profile(tmp_path):
    loaded = project(tmp_path, OTHERS + WORD)
    trained = loaded.trained("wind_nowcast", "mini")
    assert list(trained.of("simulated")) == ["kernel", "msa-shared-5k-s0", "msa-gaussian-20k-s1"]
    assert not loaded.trained("wind_nowcast", "full").of("simulated")
    assert loaded.trained("elsewhere", "mini") == params.Cells()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            OTHERS + "run: *sample",
            ["two files name different profiles", "--set mini", "cells.yaml"],
        ),
        (OTHERS + "run: {cells: {}}", ["two files name different profiles", "no alias"]),
        ("sample: &sample {cells: {}}\n" + WORD, ["not told of every profile", "no full"]),
        (OTHERS, ["not told of every profile", "no run"]),
        (OTHERS + "hole: &hole {cells: {}}\n" + WORD, ["hole: there is no such profile"]),
        (OTHERS.replace("cells", "cell", 1) + WORD, ["sample.cell", "did you mean 'cells'"]),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(tmp_path, text, told):
    with pytest.raises(ParamsError) as caught:
        project(tmp_path, text)
    assert caught.value.exit_code == 2
    for words in told:
        assert words in str(caught.value)


def test_cells_twice_are_refused(tmp_path):
    (tmp_path / "params.yaml").write_text(TRUE, encoding="utf-8")
    file = tmp_path / "reports/wind_nowcast/cells.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("mini: &mini {cells: {}}\n" + OTHERS + WORD, encoding="utf-8")
    with pytest.raises(ParamsError, match="parameters stand twice"):
        params.load(tmp_path / "params.yaml")


# --- what a cell varies of its training


def asked(experiment: str, dataset: str, cell: cells.Cell, **training) -> runner.Asked:
    """A cell of the project's own, whose declaration varies its training."""
    whole = params.load(ROOT / "params.yaml")
    trained = whole.trained(experiment, "mini")
    group, key, one = next(
        told
        for told in trained.declared()
        if (told[2].dataset, told[2].name) == (dataset, cell.name)
    )
    changed = one.model_copy(update={"training": training})
    trained = trained.model_copy(update={group: getattr(trained, group) | {key: changed}})
    names = {"experiment": experiment, "profile": "mini", "dataset": dataset, **vars(cell)}
    parts = whole.cells | {experiment: whole.cells[experiment] | {"mini": trained}}
    return runner.Asked(names, whole.model_copy(update={"cells": parts}))


WIND = cells.Cell("msa", "shared", "20k", 0)


@pytest.mark.parametrize(
    ("plan", "experiment", "dataset", "cell"),
    [
        (winds_plan, "wind_nowcast", "simulated", WIND),
        (fields_plan, "sparse_fields", "poisson", cells.Cell("msa", "shared", "20k", 0)),
        (sequences_plan, "any_order", "step", cells.Cell("sigma_gpt", "random", "58k", 0)),
    ],
)
def test_a_cells_learning_rate_reaches_the_optimizer(monkeypatch, plan, experiment, dataset, cell):
    """From the declaration to the loop's settings; the loop hands them to its Adam."""
    found = []
    kept = shell.settings
    monkeypatch.setattr(shell, "settings", lambda *a, **k: found.append(kept(*a, **k)) or found[-1])
    here = asked(experiment, dataset, cell, learning_rate=0.0625, steps=7)
    task = plan(here, shell.declared(here, cell))
    assert (found[-1].learning_rate, found[-1].steps) == (0.0625, 7)
    assert task.used["training"] == {"learning_rate": 0.0625, "steps": 7}
    assert task.used["budget"]["steps"] == 7
    plain = params.load(ROOT / "params.yaml")
    task = plan(runner.Asked(here.names, plain), cell)
    assert found[-1].learning_rate != 0.0625 and "training" not in task.used


@pytest.mark.parametrize(
    ("training", "told"),
    [
        ({"step": 7}, "did you mean 'steps'"),
        ({"steps": 0}, "greater than 0"),
        ({"steps": "many"}, "valid integer"),
    ],
)
def test_what_a_budget_does_not_have_is_not_varied(training, told):
    here = asked("wind_nowcast", "simulated", WIND, **training)
    with pytest.raises(ParamsError, match=told) as caught:
        winds_plan(here, shell.declared(here, WIND))
    assert caught.value.exit_code == 2 and "cells.yaml" in str(caught.value)


def test_the_loop_hands_its_rate_to_adam():
    """The last step of the way, from the loop's settings to the optimizer's groups."""
    model = torch.nn.Linear(2, 1)
    model.rates = {}
    assert [group["lr"] for group in loop.rated(model, 0.0625)] == [0.0625]


def test_every_declared_cell_depends_on_its_own_words():
    """A stage that trains names its cell in cells.yaml among its params, so that a setting that is
    varied makes that cell stale, and no other."""
    for file in sorted(ROOT.glob("reports/*/cells.yaml")):
        text = file.with_name("dvc.yaml").read_text(encoding="utf-8")
        for group in GROUPS:
            if f"\n  {group}:" in file.read_text(encoding="utf-8"):
                assert f'"${{here}}/cells.yaml": ["${{run.profile}}.{group}.${{key}}"]' in text


def test_a_new_profile_needs_its_word_in_every_file(tmp_path):
    shutil.copytree(ROOT / "stages/params", tmp_path / "stages/params")
    for file in ROOT.glob("reports/*/cells.yaml"):
        home = tmp_path / file.relative_to(ROOT)
        home.parent.mkdir(parents=True)
        shutil.copy(file, home)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    assert params.load(tmp_path / "params.yaml").run.profile == "mini"
    for file in (tmp_path / "reports").glob("*/cells.yaml"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(WORD, "\nrun: *sample"), encoding="utf-8")
        with pytest.raises(ParamsError, match=file.parent.name):
            params.load(tmp_path / "params.yaml")
        file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("training", "told"),
    [
        ("{learning_rat: 0.1}", "learning_rat is no setting; did you mean 'learning_rate'"),
        ("{learning_rate: -0.1}", "training.learning_rate: Input should be greater than 0"),
        ("{steps: 0}", "training.steps: Input should be greater than 0"),
    ],
)
def test_what_a_cell_varies_wrongly_is_told_before_any_stage(tmp_path, training, told):
    text = f"""mini: &mini
  plain:
    mini-simulated-kernel: {{dataset: simulated, model: kernel, training: {training}}}
"""
    whole, _, _ = TRUE.partition("\ncells:")
    (tmp_path / "params.yaml").write_text(whole, encoding="utf-8")
    file = tmp_path / "reports/wind_nowcast/cells.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text + OTHERS + WORD, encoding="utf-8")
    with pytest.raises(ParamsError) as caught:
        params.load(tmp_path / "params.yaml")
    assert told in caught.value.found and str(file) in caught.value.where
