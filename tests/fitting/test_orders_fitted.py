"""Models of sequences trained: what they learn, that a killed run ends with the same bits, what a
cell writes."""

import contextlib
import dataclasses
import itertools
import json
import math
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from small_orders import BUDGET, data, prepared
from torch import nn

from stages import code, files, params, runner, seeds
from stages.errors import DataError, InputError
from stages.files import read_json, write_json
from stages.params.orders import OrderBudget, OrderEvaluation
from stages.sequences import tokens as sequences
from stages.sequences import train as command
from stages.sequences.batches import Prepared
from stages.sequences.models.diffusion import Diffusion
from stages.sequences.models.sigma_gpt import SigmaGPT
from stages.training import cells, loop, shell, store
from stages.training.checkpoint import Checkpoints
from stages.training.group import Group
from stages.training.loop import Settings

SIZE = {"width": 16, "keys": 8, "hidden": 32, "heads": 2, "blocks": 1}


def model(seed=0, name="sigma_gpt", length=6, dropout=0.1) -> nn.Module:
    seeds.everything(seed)
    return {"sigma_gpt": SigmaGPT, "diffusion": Diffusion}[name](2, length, dropout=dropout, **SIZE)


def settings(budget=BUDGET, seed=3) -> Settings:
    return Settings(
        steps=budget.steps,
        validate_every=budget.validate_every,
        patience=budget.patience,
        learning_rate=budget.learning_rate,
        clip=4.0,
        seed=seed,
        slices=budget.batch,
        schedule=budget.schedule,
    )


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """These networks are too small for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- learning


@pytest.mark.parametrize("kind", ["left_to_right", "random"])
def test_the_product_law_is_learned_to_its_entropy(tmp_path, kind):
    budget = BUDGET.model_copy(
        update={"steps": 120, "validate_every": 40, "batch": 64, "schedule": "cosine"}
    )
    given = data(kind, budget, train=2000, held=1000)
    history = command.train(model(), given, settings(budget), Checkpoints(tmp_path))
    entropy = -(0.3 * math.log(0.3) + 0.7 * math.log(0.7))
    assert abs(history["best_loss"] - entropy) < 0.02
    assert all(abs(entry["left_to_right"] - entropy) < 0.03 for entry in history["val"][-1:])


def test_what_repeats_costs_nothing_the_second_time_in_a_random_order(tmp_path):
    """Fair bits told twice: half of them are free, and by the chain rule the mean is the same in
    any order."""
    budget = BUDGET.model_copy(
        update={"steps": 400, "validate_every": 100, "batch": 64, "schedule": "cosine"}
    )
    history = command.train(
        model(dropout=0.0),
        data("random", budget, law="copies", train=4000, held=500),
        settings(budget),
        Checkpoints(tmp_path),
    )
    last = history["val"][-1]
    assert history["best_loss"] == pytest.approx(math.log(2) / 2, abs=0.02) and last[
        "left_to_right"
    ] == pytest.approx(math.log(2) / 2, abs=0.02)


# --- killed and resumed


def trained(folder: Path, name="sigma_gpt", order="curriculum") -> None:
    torch.set_num_threads(1)
    made = model(name=name)
    history = command.train(
        made, data(order, prompt=1), settings(), Checkpoints(folder / "checkpoints")
    )
    write_json(
        folder / "done.json",
        {
            "history": history,
            "weights": [float(v) for p in made.parameters() for v in p.detach().flatten()],
        },
    )


def child(folder: Path, fault: str = "", **how) -> bool:
    """Train in a forked child; whether it was killed."""
    folder.mkdir(exist_ok=True)
    pid = os.fork()
    if not pid:
        os.environ["FAULT"] = fault
        code = 1
        try:
            trained(folder, **how)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    assert status == 0 or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)
    return status != 0


@pytest.mark.parametrize(
    ("point", "name", "order", "first", "least"),
    [
        pytest.param("before_latest", "sigma_gpt", "random", 2, 1, id="once"),
        *(
            pytest.param(*each, 1, 3, id=each[0], marks=pytest.mark.slow_fault)
            for each in (
                ("step", "sigma_gpt", "curriculum"),
                ("before_latest", "sigma_gpt", "random"),
                ("after_latest", "diffusion", "left_to_right"),
            )
        ),
    ],
)
@pytest.mark.fault("F4")
def test_a_run_killed_anywhere_ends_with_the_bits_of_one_that_was_not(
    tmp_path, point, name, order, first, least
):
    """From the first passage that is named to the last; in `make test` of one point."""
    assert not child(tmp_path / "whole", name=name, order=order)
    expected, killed = read_json(tmp_path / "whole/done.json"), 0
    for n in itertools.count(first):
        folder = tmp_path / f"{point}-{n}"
        if not child(folder, f"{point}:{n}", name=name, order=order):
            break
        killed += 1
        assert (
            not child(folder, name=name, order=order)
            and read_json(folder / "done.json") == expected
        )
    assert killed >= least


@pytest.mark.parametrize("name", ["sigma_gpt", "diffusion"])
def test_dropout_goes_on_where_it_was_and_early_validations_draw_none_of_it(
    tmp_path, name, monkeypatch
):
    """Stopped after step 7 and gone on with; validated often or once: the same last weights."""
    budget = BUDGET.model_copy(update={"select": "last", "steps": 12, "validate_every": 12})
    often = budget.model_copy(update={"per_doubling": 2})

    def last(how, folder, stop=0):
        passed, made = 0, model(name=name)

        def stopped(point):
            nonlocal passed
            passed += point == "step"
            if passed == stop and point == "step":
                raise KeyboardInterrupt

        monkeypatch.setattr(loop, "fault", stopped)
        given = dataclasses.replace(settings(how), select=how.select, per_doubling=how.per_doubling)
        command.train(made, data("random", how), given, Checkpoints(tmp_path / folder))
        return torch.cat([p.detach().flatten() for p in made.parameters()])

    whole = last(budget, "whole")
    with pytest.raises(KeyboardInterrupt):
        last(often, "often", stop=7)
    seeds.everything(99)  # as a new process would have it
    assert torch.equal(last(often, "often"), whole)


def test_another_seed_gives_other_weights(tmp_path):
    found = []
    for seed in (3, 3, 4):
        made = model()
        command.train(
            made, data(seed=seed), settings(seed=seed), Checkpoints(tmp_path / str(len(found)))
        )
        found.append(torch.cat([p.detach().flatten() for p in made.parameters()]))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


# --- the command


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A project's root with prepared sequences, and a cell of them."""
    home = Path.cwd()
    made = prepared(prompt=1)
    folder = tmp_path / "data/mini/prepared/product"
    folder.mkdir(parents=True)
    zeros = np.zeros(len(made.tokens), int)
    sequences.write(
        sequences.Sequences(
            "product",
            made.tokens.numpy(),
            made.split.numpy(),
            zeros,
            zeros,
            ("made.npy",),
            2,
            1,
            {"share": 0.3},
            group=np.arange(len(zeros)),
        ),
        folder,
        {},
    )
    (tmp_path / "stages").symlink_to(home / "stages")
    monkeypatch.chdir(tmp_path)

    monkeypatch.setattr(
        files, "guard", lambda name: contextlib.nullcontext()
    )  # this process is not to die with its parent
    monkeypatch.setenv("TRADEWIND_DEVICE", "cpu")

    def of(arm="random", **arguments):
        names = dict(zip(shell.NAMES, ("any_order", "mini", "product", "sigma_gpt"), strict=True))
        parameters = SimpleNamespace(
            profiles={"mini": SimpleNamespace(profile="mini", learning_orders={"product": BUDGET})},
            models={
                "sigma_gpt": SimpleNamespace(
                    arms={arm: {"order": "random", **arguments}}, sizes={"tiny": SIZE}
                )
            },
            training=params.Training(seed=0, learning_rate=1e-3, clip=4.0, threads=1),
            trained=lambda experiment, profile: params.Cells(),
        )
        return runner.Asked({**names, "arm": arm, "size": "tiny", "seed": 1}, parameters)

    return of


def work(one: runner.Asked) -> runner.Work:
    return shell.planned_work("stages.sequences.train", command.plan, [], one)


def task(one: runner.Asked) -> shell.Task:
    return command.plan(one, cells.Cell("sigma_gpt", one["arm"], "tiny", 1))


def metadata(one: runner.Asked) -> dict:
    return dict(task(one).open(torch.device("cpu"), Group()).metadata)


def test_a_cell_is_written_with_its_record_and_repeats_byte_for_byte(asked):
    one, folder = asked(), Path("reports/any_order/mini/runs/product/sigma_gpt-random-tiny-s1")
    shell.run(work(one))
    first = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert set(first) == {"weights.safetensors", "history.json", "code.json"}
    record = files.read_json(
        "reports/any_order/mini/records/product.sigma_gpt-random-tiny-s1.train.json"
    )
    assert set(record["inputs"]) == {
        f"data/mini/prepared/product/sequences.{ending}" for ending in ("json", "safetensors")
    }
    assert (
        record["seed"] == 1
        and record["params"]["arguments"]["order"] == "random"
        and record["params"]["budget"]["prompt_loss"] is False
    )
    assert {
        "stages/training/loop.py",
        "stages/sequences/batches.py",
        "stages/sequences/models/sigma_gpt.py",
    } <= set(record["code"]["files"])
    assert not any("sets.py" in name or "sampling" in name for name in record["code"]["files"])
    assert not list(Path(".work/training").iterdir())
    shell.run(work(one))
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == first


def test_the_folder_tells_what_its_models_code_means_and_no_others(asked):
    shell.run(work(asked()))
    told = read_json("reports/any_order/mini/runs/product/sigma_gpt-random-tiny-s1/code.json")
    model = "stages.sequences.models.sigma_gpt"
    assert told == {"modules": [model], "digest": code.recorded([model])["digest"]}
    assert told["digest"] != code.recorded(["stages.sequences.models.diffusion"])["digest"]


def test_an_arms_own_curriculum_stands_for_the_budgets_and_is_no_argument_of_the_network(asked):
    one = asked("curriculum", order="curriculum", curriculum=0.5)
    used, told = task(one).used, metadata(one)
    assert used["budget"] == {**BUDGET.model_dump(mode="json"), "curriculum": 0.5}
    assert told["order"] == "curriculum" and told["arguments"] == SIZE
    assert task(asked()).used["budget"] == BUDGET.model_dump(mode="json")
    with pytest.raises(InputError, match=r"sigma_gpt\.arms\.random\.curriculum"):
        task(asked(curriculum=1.5))


def test_a_budgets_dropout_stands_for_the_arms_and_what_it_leaves_out_is_told_as_before(asked):
    one = asked(dropout=0.3)
    assert metadata(one)["arguments"]["dropout"] == 0.3
    budgets = one.parameters.profiles["mini"].learning_orders
    assert {"dropout", "select", "per_doubling"}.isdisjoint(task(one).used["budget"])
    budgets["product"] = BUDGET.model_copy(update={"dropout": 0.1, "select": "last"})
    assert metadata(one)["arguments"]["dropout"] == 0.1
    assert task(one).used["arguments"]["dropout"] == 0.1
    assert task(one).used["budget"] == {
        **BUDGET.model_dump(mode="json"),
        "dropout": 0.1,
        "select": "last",
    }


@pytest.mark.parametrize(
    ("law", "axes"), [({"rows": 2, "columns": 1}, [3, 2, 1]), ({"share": 0.3}, [6])]
)
def test_positions_on_a_grid_take_the_data_s_axes_and_the_weights_say_which(asked, law, axes):
    one = asked(positions="grid")
    place = Path("data/mini/prepared/product/sequences.json")
    write_json(place, read_json(place) | {"law": law})
    shell.run(work(one))
    folder = Path("reports/any_order/mini/runs/product/sigma_gpt-random-tiny-s1")
    with safe_open(str(folder / "weights.safetensors"), "pt") as file:
        told = json.loads(file.metadata()[store.ENTRY])
        shape = file.get_tensor("positions.table.weight").shape
    assert told["arguments"] == {**SIZE, "positions": "grid", "axes": axes} and shape == (
        1 + sum(axes),
        8,
    )
    assert metadata(asked(positions="learned"))["arguments"] == {**SIZE, "positions": "learned"}


@pytest.mark.parametrize("damage", ["gone", "junk", "other"])
def test_prepared_sequences_that_are_none_are_a_data_error(asked, damage):
    file = asked().data("prepared") / "sequences.safetensors"
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(b"junk" if damage == "junk" else (8).to_bytes(8, "little") + b"{}      ")
    with pytest.raises(DataError, match="prepared sequences"):
        Prepared.open(asked().data("prepared"))


@pytest.mark.parametrize(
    ("section", "wrong"),
    [
        (OrderBudget, {"curriculum": 1.1}),
        (OrderBudget, {"batch": 0}),
        (OrderBudget, {"order": "x"}),
        (OrderBudget, {"dropout": 1.0}),
        (OrderBudget, {"select": "first"}),
        (OrderEvaluation, {"each": 0}),
        (OrderEvaluation, {"orders": (5, 1)}),
        (OrderEvaluation, {"diffusion": (4, 4)}),
    ],
)
def test_sections_refuse_what_does_not_fit(section, wrong):
    right = BUDGET.model_dump() if section is OrderBudget else {"samples": 10}
    section(**right)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        section(**{**right, **wrong})
