"""Training as document R prints it: AdaBelief by its equations, rounds by their validations, and a
run that is killed and goes on to the same bits."""

import math
import sys

import numpy as np
import pytest
import torch
from torch import nn

from stages import seeds
from stages.dynamics import rounds, train
from stages.dynamics.models import build
from stages.dynamics.settings import Budget
from stages.dynamics.windows import Windows
from stages.errors import InputError
from stages.training import loop
from stages.training.checkpoint import Checkpoints

TOLD = {"steps": 60, "validate_every": 5, "patience": 2, "batch": 8, "learning_rate": 0.05,
        "schedule": "constant", "window": 8, "warm": 4, "counted": 6, "noise": 0.0,
        "val_windows": 16, "rounds": 3, "decay": 0.1}  # fmt: skip
RATES, BETAS, SHRINK = (0.01, 0.002), (0.9, 0.999), 0.1


def budget(**other) -> Budget:
    return Budget(**TOLD | other)


def windows() -> Windows:
    """Four runs of three waves."""
    phase = seeds.stream(0, "waves").uniform(0, 6, (4, 1, 3))
    waves = np.sin(0.2 * np.arange(160)[None, :, None] * np.array([1.0, 1.3, 1.7]) + phase)
    about = {"parts": {"train": [0, 120], "val": [125, 155]}, "change": 0.2}
    return Windows(torch.from_numpy(waves).float(), about, budget(), 0)


def settings(told: Budget) -> loop.Settings:
    return loop.Settings(told.steps, told.validate_every, told.patience, told.learning_rate, 4.0,
                         0, slices=told.batch, schedule=told.schedule)  # fmt: skip


def fitted(told: Budget, folder) -> tuple[nn.Module, dict]:
    seeds.everything(0)
    network = build("gru", {"width": 8, "output": "change"}, 3, 0.1)
    return network, train.fit(network, windows(), told, settings(told), Checkpoints(folder))


def test_its_steps_are_the_equations_of_zhuang_et_al():
    """In double precision, at rates that change; one parameter has no gradient at first."""
    torch.manual_seed(0)
    weights = [nn.Parameter(torch.randn(4, dtype=torch.float64)) for _ in RATES]
    groups = [{"params": [w], "lr": rate} for w, rate in zip(weights, RATES, strict=True)]
    optimizer = rounds.AdaBelief(groups, SHRINK)
    ours = [weight.detach().numpy().copy() for weight in weights]
    mean, belief = ([np.zeros(4) for _ in RATES] for _ in range(2))
    for step in range(1, 9):
        optimizer.zero_grad()
        gradients = [torch.randn(4, dtype=torch.float64) for _ in RATES]
        for number, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            rate = optimizer.param_groups[number]["lr"] = RATES[number] / step
            if number == 1 and step < 3:
                continue
            weight.grad = gradient.clone()
            g, m, s, w = gradient.numpy(), mean[number], belief[number], ours[number]
            w *= 1 - rate * SHRINK
            m += (1 - BETAS[0]) * (g - m)
            s += (1 - BETAS[1]) * ((g - m) ** 2 - s) + 1e-16
            w -= rate * (m / (1 - BETAS[0] ** step)) / np.sqrt(s / (1 - BETAS[1] ** step))
        optimizer.step()
    for weight, known in zip(weights, ours, strict=True):
        np.testing.assert_allclose(weight.detach().numpy(), known, rtol=1e-12)


@pytest.mark.parametrize(
    ("losses", "patience", "count"),
    [
        ([], 2, 0),
        ([3, 2, 1, 1], 2, 0),
        ([3, 2, 2, 2], 2, 1),  # as good is no better
        ([3, 4, 4, 2, 4, 1, 4, 4, 4, 4], 2, 3),
        ([1, 2, 2, 2, 2, 2], 2, 2),  # a round begins anew, the best one stays
        ([1, 2, 0.5, 2, 2], 3, 0),
    ],
)
def test_a_round_ends_with_patience(losses, patience, count):
    assert rounds.ended(losses, patience) == count


def test_the_rate_falls_with_every_round_and_training_ends_with_the_last(tmp_path, monkeypatch):
    rates, kept = [], rounds.AdaBelief.step

    def step(self):
        rates.append(self.param_groups[0]["lr"])
        kept(self)

    monkeypatch.setattr(rounds.AdaBelief, "step", step)
    told = budget(steps=4000, learning_rate=0.3)
    _, history = fitted(told, tmp_path)
    losses = [entry["loss"] for entry in history["val"]]
    assert history["rounds"] == told.rounds == rounds.ended(losses, told.patience)
    assert history["status"] == "stopped early" and history["steps"] < told.steps
    assert rounds.ended(losses[:-1], told.patience) == told.rounds - 1
    assert (
        sorted(set(rates), reverse=True)
        == pytest.approx([0.3, 0.03, 0.003])
        == [*dict.fromkeys(rates)]
    )
    assert history["best_loss"] == min(losses) and math.isfinite(losses[-1])


def test_without_rounds_adam_trains_and_a_record_tells_of_none(tmp_path):
    plain = budget(rounds=None, decay=None)
    assert not {"rounds", "decay", "weight_decay"} & set(plain.model_dump(mode="json"))
    assert budget().model_dump(mode="json") == TOLD
    _, history = fitted(plain, tmp_path)
    assert "rounds" not in history


def test_where_the_library_is_missing_it_is_named(tmp_path, monkeypatch):
    monkeypatch.delattr("stages.dynamics.rounds")
    monkeypatch.setitem(sys.modules, "stages.dynamics.rounds", None)
    with pytest.raises(InputError, match="pytorch-optimizer") as told:
        fitted(budget(), tmp_path)
    assert ".[adabelief]" in str(told.value)


def test_a_run_that_stopped_after_a_checkpoint_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    whole, history = fitted(budget(), tmp_path / "whole")
    seen = []

    def fault(_: str) -> None:
        seen.append(1)
        if len(seen) == 23:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "fault", fault)
        fitted(budget(), tmp_path / "cut")
    again, resumed = fitted(budget(), tmp_path / "cut")
    assert resumed == history and history["steps"] > 23
    assert all(map(torch.equal, whole.state_dict().values(), again.state_dict().values()))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"rounds": None}, "decay and weight_decay are of rounds"),
        ({"decay": None}, "rounds need a decay"),
        ({"schedule": "cosine"}, "the constant schedule"),
    ],
)
def test_what_contradicts_rounds_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        budget(**other)


def test_profiles_that_train_as_printed_have_the_documents_numbers():
    """Appendix A of document R."""
    from stages.dynamics.series.settings import series_of
    from stages.dynamics.settings import dynamics_of
    from stages.params import load

    parameters = load()
    for trained, printed in (
        (dynamics_of(parameters, "full").training, (0.01, 64, 5, 10, 0.1, None)),
        (series_of(parameters, "full").training, (0.01, 64, 3, 5, 0.1, 1e-6)),
    ):
        assert {
            (b.learning_rate, b.batch, b.rounds, b.patience, b.decay, b.weight_decay)
            for b in trained.values()
        } == {printed}
