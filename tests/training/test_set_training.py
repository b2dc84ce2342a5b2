"""Training on sets of points: what a step sees, which loss, who learns at which rate, and that a
killed run ends with the same bits."""

import itertools
import math
import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from stages import params, seeds
from stages.batches import Prediction
from stages.errors import InputError
from stages.fields import train
from stages.fields.batches import SetData, moved
from stages.fields.models import build
from stages.fields.sets import PreparedSets, whole
from stages.files import read_json, write_json
from stages.training import loop
from stages.training.checkpoint import Checkpoints
from stages.training.loop import Loop, Settings

COUNTS = {"train": 24, "val": 7, "test": 5}
BUDGET = params.SetBudget(steps=8, validate_every=4, patience=9, batch=4, learning_rate=1e-2)


def prepared(loss="mse", unit=(1.0,)) -> PreparedSets:
    """Sets of six points in the unit square, eight targets; the answer is the mean of the
    context's values plus the first coordinate."""
    generator = seeds.torch_stream(0, "test", "sets")
    count = sum(COUNTS.values())
    x, values, targets = (
        torch.rand(count, n, d, generator=generator) for n, d in ((6, 2), (6, 1), (8, 2))
    )
    placed = torch.repeat_interleave(torch.arange(3), torch.tensor(list(COUNTS.values())))
    return PreparedSets(
        x,
        values,
        targets,
        values.mean(1, keepdim=True) + targets[..., :1],
        placed,
        torch.arange(count),
        torch.tensor(unit),
        {"loss": loss},
    )


def data(budget=BUDGET, **how) -> SetData:
    return SetData(prepared(**how), budget, seed=3)


def model(seed=0) -> nn.Module:
    seeds.everything(seed)
    return build("cnp", {"encoder": "shared"}, {"width": 8}, x_dim=2, i_dim=1, o_dim=1)


def settings(**changes) -> Settings:
    return Settings(
        **{
            "steps": 8,
            "validate_every": 4,
            "patience": 9,
            "learning_rate": 1e-2,
            "clip": 4.0,
            "seed": 3,
            "slices": 4,
        }
        | changes
    )


def test_an_epoch_shows_every_training_set_once(tmp_path):
    run = Loop(model(), data(), settings(steps=6), Checkpoints(tmp_path))
    seen, steps = [], run._steps()
    for step in range(6):
        run.progress.step = step
        seen += next(steps)
    assert sorted(seen) == list(range(24))


def test_a_step_is_one_batch_of_its_sets():
    (part,) = data().parts([5, 2, 9], step=0)
    batch = part()
    assert torch.equal(batch.context_y, prepared().context_y[[5, 2, 9]]) and torch.equal(
        batch.target_x, prepared().target_x[[5, 2, 9]]
    )
    assert batch.context_mask.all() and batch.target_mask.all()


def test_some_targets_are_drawn_by_seed_and_step_and_keep_their_answers():
    given = data(BUDGET.model_copy(update={"targets": 3}))
    first, again, later = (given.drawn([1, 4], step) for step in (0, 0, 1))
    assert torch.equal(first.target_x, again.target_x) and not torch.equal(
        first.target_x, later.target_x
    )
    torch.testing.assert_close(
        first.target_y, first.context_y.mean(1, keepdim=True) + first.target_x[..., :1]
    )
    seen = {float(x) for step in range(60) for x in given.drawn([1], step).target_x[0, :, 0]}
    assert len(seen) == 8  # all of them in the end


def test_predicting_in_groups_asks_as_many_targets_at_a_time_as_in_training():
    asked = []

    class Spy(nn.Module):
        def forward(self, batch):
            asked.append(batch.target_x.shape[1])
            return Prediction(batch.target_x[..., :1] + batch.context_y.mean(1, keepdim=True))

    sets = prepared()
    found = sets.predict(Spy(), sets.split("val"), 3)
    torch.testing.assert_close(found, sets.target_y[sets.split("val")])
    assert asked == [3, 3, 2]
    swapped = sets.predict(Spy(), sets.split("val"), None, sets.context_y[sets.split("val")] + 1)
    torch.testing.assert_close(swapped, found + 1)


def test_the_loss_is_the_mean_square_or_its_root_in_the_problems_units():
    guess = torch.zeros(3, 8, 1)
    batch = prepared().batch(torch.tensor([0, 1, 2]))
    square = float(batch.target_y.square().mean())
    assert float(data().loss(Prediction(guess), batch)) == pytest.approx(square, rel=1e-6)
    assert float(data(loss="rmse", unit=(7.0,)).loss(Prediction(guess), batch)) == pytest.approx(
        7 * math.sqrt(square), rel=1e-6
    )


def test_validation_tells_the_mean_of_batches_from_the_whole():
    given, constant = data(), nn.Module()
    constant.forward = lambda batch: Prediction(torch.zeros(*batch.target_x.shape[:2], 1))
    found = given.validate(constant)
    y = prepared().target_y[prepared().split("val")]
    assert found["mse"] == pytest.approx(float(y.square().mean()), rel=1e-6)
    assert found["loss"] == pytest.approx(
        float(y[:4].square().mean() + y[4:].square().mean()) / 2, rel=1e-6
    )  # batches of 4 and 3 sets


def test_the_eight_symmetries_are_those_of_the_square():
    corner = torch.tensor([[[0.1, 0.3]]])
    found = {
        tuple(
            round(float(v), 4)
            for v in moved(whole(corner, torch.ones(1, 1, 1), corner, None), k).target_x[0, 0]
        )
        for k in range(8)
    }
    assert found == {
        (a, b)
        for pair in ((0.1, 0.3), (0.3, 0.1))
        for a in (pair[0], round(1 - pair[0], 4))
        for b in (pair[1], round(1 - pair[1], 4))
    }
    batch = prepared().batch(torch.tensor([0, 1]))

    def apart(b):
        return torch.cdist(b.context_x, b.target_x)

    for k in range(8):
        turned = moved(batch, k)
        torch.testing.assert_close(apart(turned), apart(batch), atol=1e-6, rtol=0)
        assert torch.equal(turned.context_y, batch.context_y) and torch.equal(
            turned.target_y, batch.target_y
        )
    assert torch.equal(moved(batch, 0).context_x, batch.context_x)


def test_symmetries_are_drawn_anew_at_every_step_for_context_and_targets_alike():
    given = data(BUDGET.model_copy(update={"symmetries": True}))
    plain = prepared().batch(torch.tensor([2]))
    drawn = [given.drawn([2], step) for step in range(40)]
    assert len({tuple(batch.context_x.flatten().tolist()) for batch in drawn}) == 8
    for batch in drawn:
        torch.testing.assert_close(
            torch.cdist(batch.context_x, batch.target_x),
            torch.cdist(plain.context_x, plain.target_x),
            atol=1e-6,
            rtol=0,
        )


def test_a_cnp_learns_the_sum(tmp_path):
    given = data(BUDGET.model_copy(update={"batch": 24}))
    trivial = float(prepared().target_y[prepared().split("val")].var())
    history = train.train(
        model(),
        given,
        settings(steps=400, validate_every=100, slices=24, schedule="cosine"),
        Checkpoints(tmp_path),
    )
    assert history["best_loss"] < 0.05 * trivial and [
        entry["step"] for entry in history["val"]
    ] == [100, 200, 300, 400]


def test_cosine_goes_from_the_learning_rate_to_nearly_nothing(tmp_path, monkeypatch):
    run = Loop(model(), data(), settings(steps=8, schedule="cosine"), Checkpoints(tmp_path))
    rates, step = [], run.optimizer.step
    monkeypatch.setattr(
        run.optimizer,
        "step",
        lambda: (rates.append(run.optimizer.param_groups[0]["lr"]), step())[1],
    )
    run.run()
    np.testing.assert_allclose(
        rates, [1e-2 * (0.5 + 0.5 * math.cos(math.pi * k / 8)) for k in range(8)]
    )


def test_a_part_with_a_rate_of_its_own_learns_at_it():
    made = model()
    made.rates = {"encoder.value": 1e-5}
    groups = loop.rated(made, 1e-2)
    named = dict(made.named_parameters())
    slow = {name for name in named if name.startswith("encoder.value")}
    assert [group["lr"] for group in groups] == [1e-2, 1e-5]
    assert {id(p) for p in groups[1]["params"]} == {id(named[name]) for name in slow}
    assert sum(len(group["params"]) for group in groups) == len(named)
    assert len(loop.rated(model(), 1e-2)) == 1  # others stay in one group, in their own order


def test_what_reads_winds_near_its_target_is_refused(tmp_path):
    with pytest.raises(InputError, match="winds only"):
        train.train(build("knn"), data(), settings(), Checkpoints(tmp_path))


def test_nodes_are_placed_once_by_the_training_contexts_and_the_seed(tmp_path):
    made, given = [], data()
    given.sets.context_x[24:] = 1e9  # nothing of validation and test is looked at
    for folder in "ab":
        seeds.everything(0)
        gen = build(
            "gen",
            {"encoder": "shared", "nodes": "kmeans", "places": 5},
            {"width": 8, "steps": 2, "tied": 1},
            x_dim=2,
            i_dim=1,
            o_dim=1,
        )
        train.train(
            gen,
            SetData(replace(given.sets, target_x=given.sets.target_x.clamp(0, 1)), BUDGET, 3),
            settings(steps=1, validate_every=1),
            Checkpoints(tmp_path / folder),
        )
        made.append({name: value.clone() for name, value in gen.state_dict().items()})
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
    places = next(value for name, value in made[0].items() if value.shape == (5, 2))
    assert float(places.min()) >= 0 and float(places.max()) <= 1


# --- killed and resumed


def trained(folder) -> None:
    torch.set_num_threads(1)
    made = model()
    budget = BUDGET.model_copy(update={"targets": 5, "symmetries": True})
    history = train.train(
        made,
        data(budget),
        settings(steps=12, validate_every=5, schedule="cosine"),
        Checkpoints(folder / "checkpoints"),
    )
    write_json(
        folder / "done.json",
        {
            "history": history,
            "weights": [float(v) for p in made.parameters() for v in p.detach().flatten()],
        },
    )


def child(folder, fault="") -> bool:
    """Train in a forked child; whether it was killed."""
    folder.mkdir(exist_ok=True)
    pid = os.fork()
    if not pid:
        os.environ["FAULT"] = fault
        code = 1
        try:
            trained(folder)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    assert status == 0 or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)
    return status != 0


@pytest.mark.parametrize(
    ("point", "first", "least"),
    [
        pytest.param("after_latest", 2, 1, id="once"),
        *(
            pytest.param(point, 1, 3, id=point, marks=pytest.mark.slow_fault)
            for point in ("step", "before_latest", "after_latest")
        ),
    ],
)
@pytest.mark.fault("F4")
def test_a_run_killed_anywhere_ends_with_the_bits_of_one_that_was_not(
    tmp_path, point, first, least
):
    """From the first passage that is named to the last; in `make test` of one point."""
    assert not child(tmp_path / "whole")
    expected, killed = read_json(tmp_path / "whole/done.json"), 0
    for n in itertools.count(first):
        folder = tmp_path / f"{point}-{n}"
        if not child(folder, f"{point}:{n}"):
            break
        killed += 1
        assert not child(folder) and read_json(folder / "done.json") == expected
    assert killed >= least


# --- the command


def test_symmetries_are_refused_outside_the_unit_square():
    assert train.unit_square(prepared())
    assert not train.unit_square(replace(prepared(), target_x=prepared().target_x * 2 - 1))
    assert not train.unit_square(
        SimpleNamespace(context_x=torch.rand(2, 3, 3), target_x=torch.rand(2, 3, 3))
    )
