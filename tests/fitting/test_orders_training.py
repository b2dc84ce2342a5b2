"""Training of models of sequences: which order a step shows, what counts in the loss, and that a
killed run ends with the same bits."""

import contextlib
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
from torch import nn

from stages import code, files, params, runner, seeds
from stages.contracts import SequenceModel
from stages.errors import DataError, InputError
from stages.files import read_json, write_json
from stages.params.orders import OrderBudget, OrderEvaluation
from stages.sequences import tokens as sequences
from stages.sequences import train as command
from stages.sequences.batches import Denoised, OrderData, Ordered, Prepared, wrapped
from stages.sequences.losses import cross_entropy, nats
from stages.sequences.models.diffusion import Diffusion
from stages.sequences.models.sigma_gpt import SigmaGPT
from stages.training import cells, shell, store
from stages.training.checkpoint import Checkpoints
from stages.training.group import Group
from stages.training.loop import Settings

SIZE = {"width": 16, "keys": 8, "hidden": 32, "heads": 2, "blocks": 1}
BUDGET = OrderBudget(steps=10, validate_every=4, patience=9, batch=8, learning_rate=1e-2)


def prepared(law="product", prompt=0, length=6, train=64, held=20) -> Prepared:
    """product: bits that are 1 by 0.3; copies: fair bits, of which the second half repeats the
    first."""
    rng = np.random.default_rng(5)
    count = train + 2 * held
    tokens = (
        (rng.random((count, length)) < 0.3).astype(int)
        if law == "product"
        else rng.integers(2, size=(count, length // 2)).repeat(2, 0).reshape(count, -1)
    )
    split = np.repeat([0, 1, 2], [train, held, held])
    return Prepared(
        torch.as_tensor(tokens),
        torch.as_tensor(split),
        {"vocabulary": 2, "length": length, "prompt": prompt},
    )


def data(order="random", budget=BUDGET, seed=3, group=Group(), **how) -> OrderData:
    return OrderData(prepared(**how), budget, order, seed, group)


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


# --- the loss


def test_nats_are_those_of_the_tokens_asked_for_in_the_orders_steps():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(3, 5, 4, generator=generator)
    tokens = torch.randint(4, (3, 5), generator=generator)
    order = torch.stack([torch.randperm(5, generator=generator) for _ in range(3)])
    got = nats(logits, tokens, order, 2)
    law = logits.double().softmax(-1)
    for b, i in itertools.product(range(3), range(3)):
        assert float(got[b, i]) == pytest.approx(
            -math.log(float(law[b, i + 2, tokens[b, order[b, i + 2]]])), rel=1e-5
        )
    assert float(cross_entropy(logits, tokens, order, 2)) == pytest.approx(float(got.mean()))


# --- what a step sees


def test_an_order_is_drawn_for_every_sequence_by_seed_and_step_alone():
    first = data().drawn([0, 1, 2], 5)
    again = data().drawn([9, 8, 7], 5)
    later = data().drawn([0, 1, 2], 6)
    other = data(seed=4).drawn([0, 1, 2], 5)
    assert (
        torch.equal(first.order, again.order)
        and not torch.equal(first.order, later.order)
        and not torch.equal(first.order, other.order)
    )
    seen = {
        tuple(row)
        for step in range(40)
        for row in data().drawn(list(range(8)), step).order.tolist()
    }
    assert len(seen) > 200  # of 320 draws out of 720 orders
    assert torch.equal(first.tokens, prepared().tokens[[0, 1, 2]])


@pytest.mark.parametrize("kind", ["left_to_right", "random", "fractal", "curriculum"])
@pytest.mark.parametrize("prompt", [0, 2])
def test_every_order_is_a_permutation_with_the_prompt_in_front(kind, prompt):
    order = data(kind, prompt=prompt).drawn(list(range(8)), 4).order
    assert torch.equal(order.sort(1).values, torch.arange(6).expand(8, 6))
    assert (order[:, :prompt] == torch.arange(prompt)).all()
    plain = (order == torch.arange(6)).all(1)
    assert bool(plain.all()) == (kind == "left_to_right")


def test_the_prompt_counts_and_is_shuffled_only_where_asked():
    told = BUDGET.model_copy(update={"prompt_loss": True})
    assert data(prompt=2).first == 2 and data(prompt=2, budget=told).first == 0
    orders = torch.cat(
        [data(prompt=2, budget=told).drawn(list(range(8)), step).order for step in range(8)]
    )
    assert not (orders[:, 0] == 0).all()


def test_a_wrong_answer_in_the_prompt_costs_nothing():
    given = data("left_to_right", prompt=2)
    batch = given.drawn([0, 1], 0)
    good = torch.nn.functional.one_hot(batch.tokens, 2).float() * 40 - 20
    good[:, :2] *= -1  # certain of the wrong token wherever it is given
    assert float(given.loss(good, batch)) < 1e-6
    told = data("left_to_right", BUDGET.model_copy(update={"prompt_loss": True}), prompt=2)
    assert float(told.loss(good, told.drawn([0, 1], 0))) == pytest.approx(2 / 6 * 40, rel=1e-4)


def test_a_model_learns_nothing_from_the_prompts_answers():
    """The gradient of the loss is the same whatever the logits of given steps are."""
    batch = data(prompt=3).drawn([0, 1, 2], 0)
    logits = torch.randn(3, 6, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    data(prompt=3).loss(logits, batch).backward()
    assert (logits.grad[:, :3] == 0).all() and (logits.grad[:, 3:] != 0).all()


def test_a_curriculum_falls_linearly_from_its_share_to_none_sequence_by_sequence():
    budget = BUDGET.model_copy(update={"steps": 100, "curriculum": 0.8, "batch": 8})
    given = data("curriculum", budget, length=12)
    assert [given.share(step) for step in (0, 25, 50, 100, 120)] == pytest.approx(
        [0.8, 0.6, 0.4, 0, 0]
    )
    many = list(range(64)) * 40
    for step in (0, 50, 99):
        plain = (given.drawn(many, step).order == torch.arange(12)).all(1).float()
        assert abs(float(plain.mean()) - given.share(step)) < 4 * math.sqrt(0.25 / len(many))
    mixed = (given.drawn(list(range(64)), 30).order == torch.arange(12)).all(1)
    assert mixed.any() and not mixed.all()  # not one coin for the batch


def test_several_processes_see_the_orders_that_one_sees():
    whole = data().drawn(list(range(8)), 7)
    parts = [
        data(group=Group(rank, 2)).drawn(Group(rank, 2).share(list(range(8))), 7) for rank in (0, 1)
    ]
    for rank, part in enumerate(parts):
        assert torch.equal(part.order, whole.order[rank::2]) and torch.equal(
            part.tokens, whole.tokens[rank::2]
        )


def test_an_unknown_order_is_told_with_the_nearest():
    with pytest.raises(
        InputError, match="(?s)unknown kind of order.*did you mean 'random'"
    ) as caught:
        data("randon")
    assert caught.value.exit_code == 2


# --- validation


class Constant(SequenceModel):
    """Says `share` for every token 1, whatever it sees; keeps the orders that it was asked in."""

    def __init__(self, share):
        super().__init__()
        self.logits, self.asked = torch.tensor([1 - share, share]).log(), []

    def forward(self, tokens, order):
        self.asked.append(order)
        return self.logits.expand(*order.shape, 2)


@pytest.mark.parametrize("prompt", [0, 2])
def test_validation_is_the_mean_over_all_tokens_that_count_in_unequal_batches_too(prompt):
    given = data(prompt=prompt)
    found = given.validate(wrapped(Constant(0.2)))
    tokens = (
        prepared(prompt=prompt).tokens[64:84, prompt:].double()
    )  # 20 sequences: batches of 8, 8 and 4
    expected = -float((tokens * math.log(0.2) + (1 - tokens) * math.log(0.8)).mean())
    assert found == {
        "loss": pytest.approx(expected, rel=1e-6),
        "left_to_right": pytest.approx(expected, rel=1e-6),
    }


def test_validation_asks_in_the_own_order_and_from_left_to_right_and_alike_every_time():
    spy, given = Constant(0.2), data("curriculum", BUDGET.model_copy(update={"curriculum": 1.0}))
    given.validate(wrapped(spy))
    own, plain = torch.cat(spy.asked[::2]), torch.cat(spy.asked[1::2])
    assert (plain == torch.arange(6)).all() and len(own) == 20
    assert (
        len({tuple(row) for row in own.tolist()}) > 10
    )  # a curriculum ends at random orders, which its validation is in from the start
    before = list(spy.asked)
    given.validate(wrapped(spy))
    assert all(torch.equal(a, b) for a, b in zip(before, spy.asked[len(before) :], strict=True))


def test_what_has_a_loss_of_its_own_learns_by_it_and_its_prompt_is_given():
    seen = []

    class Own(SequenceModel):
        ordered = False

        def loss(self, tokens, generator, given=None):
            seen.append((given, torch.rand(1, generator=generator)))
            return torch.tensor(0.5)

    made = wrapped(Own())
    assert isinstance(made, Denoised) and isinstance(wrapped(Constant(0.1)), Ordered)
    given = data("left_to_right", prompt=2)
    assert given.validate(made) == {"loss": pytest.approx(0.5)}
    assert all(mask.sum(1).eq(2).all() and mask[:, :2].all() for mask, _ in seen)
    made.loss(given.drawn([0], 1)), made.loss(given.drawn([0], 1)), made.loss(given.drawn([0], 2))
    assert seen[-3][1] == seen[-2][1] != seen[-1][1]
    made.loss(data("left_to_right").drawn([0], 1))
    assert seen[-1][0] is None


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
    ("point", "name", "order"),
    [
        ("step", "sigma_gpt", "curriculum"),
        ("before_latest", "sigma_gpt", "random"),
        ("after_latest", "diffusion", "left_to_right"),
    ],
)
@pytest.mark.fault("F4")
def test_a_run_killed_anywhere_ends_with_the_bits_of_one_that_was_not(tmp_path, point, name, order):
    assert not child(tmp_path / "whole", name=name, order=order)
    expected, killed = read_json(tmp_path / "whole/done.json"), 0
    for n in itertools.count(1):
        folder = tmp_path / f"{point}-{n}"
        if not child(folder, f"{point}:{n}", name=name, order=order):
            break
        killed += 1
        assert (
            not child(folder, name=name, order=order)
            and read_json(folder / "done.json") == expected
        )
    assert killed >= 3


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
        (OrderEvaluation, {"orders": (5, 1)}),
        (OrderEvaluation, {"diffusion": (4, 4)}),
    ],
)
def test_sections_refuse_what_does_not_fit(section, wrong):
    right = BUDGET.model_dump() if section is OrderBudget else {"samples": 10}
    section(**right)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        section(**{**right, **wrong})
