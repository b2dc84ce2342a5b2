"""Training as document R prints it (section 2.4, appendix A): AdaBelief, in rounds of its rate.

A round ends when `patience` validations in a row were no better than the best one before; the
learning rate is then multiplied by `decay`, and training ends with the last of the `rounds`. It
goes on from the weights that it has, and the best ones are kept, as the house's loop keeps them;
what is resumed is the same to the bit, for the round follows from the validations. AdaBelief
(Zhuang et al. 2020) is that of the library pytorch-optimizer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from pytorch_optimizer.optimizer.adabelief import AdaBelief as Kept  # type: ignore[import-untyped]
from torch import Tensor

from stages.dynamics.settings import Budget
from stages.training import loop
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group


class AdaBelief:
    """The library's optimizer as the loop takes one: one parameter's state is `step`, `exp_avg`
    and, as `exp_avg_sq`, the mean square by which gradients differ from their mean."""

    def __init__(self, groups: Iterable[Mapping[str, Any]], weight_decay: float):
        self.kept = Kept([dict(group) for group in groups], weight_decay=weight_decay)
        self.param_groups = self.kept.param_groups
        self.parameters = [p for group in self.param_groups for p in group["params"]]
        for group in self.param_groups:  # the library makes none for who had no gradient at first
            group["step"] = 0
            for parameter in group["params"]:
                zeros = torch.zeros_like(parameter, memory_format=torch.preserve_format)
                self.kept.state[parameter] = {"exp_avg": zeros, "exp_avg_var": zeros.clone()}

    def state(self, parameter: Tensor) -> dict[str, Tensor]:
        """A parameter's state; all of a group are at one step."""
        known, group = self.kept.state[parameter], self._group(parameter)
        return {
            "step": torch.tensor(float(group["step"]), device=parameter.device),
            "exp_avg": known["exp_avg"],
            "exp_avg_sq": known["exp_avg_var"],
        }

    def set_state(self, parameter: Tensor, state: Mapping[str, Tensor]) -> None:
        """Go on from a state that `state` gave, wherever it lay since."""
        self._group(parameter)["step"] = int(state["step"])
        self.kept.state[parameter] = {
            name: state[told].to(parameter.device, copy=True)
            for name, told in (("exp_avg", "exp_avg"), ("exp_avg_var", "exp_avg_sq"))
        }

    def zero_grad(self) -> None:
        """Forget all gradients."""
        self.kept.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        self.kept.step()

    def _group(self, parameter: Tensor) -> dict[str, Any]:
        return next(
            group for group in self.param_groups if any(one is parameter for one in group["params"])
        )


def ended(losses: Iterable[float], patience: int) -> int:
    """How many rounds these validations ended."""
    best, waited, rounds = float("inf"), 0, 0
    for loss in losses:
        waited = 0 if loss < best else waited + 1
        best = min(best, loss)
        if waited == patience:
            rounds, waited = rounds + 1, 0
    return rounds


class Rounds(loop.Loop):
    """One run of the house's loop, by AdaBelief and in rounds."""

    def __init__(
        self,
        model: Any,
        data: loop.Data,
        settings: loop.Settings,
        budget: Budget,
        checkpoints: Checkpoints,
        group: Group,
    ):
        unending = replace(settings, patience=settings.steps + 1)  # a round's end is not the run's
        super().__init__(model, data, unending, checkpoints, group)
        assert budget.rounds is not None and budget.decay is not None
        self.rounds, self.decay, self.patience = budget.rounds, budget.decay, settings.patience
        weight_decay = budget.weight_decay or 0.0
        self.optimizer: Any = AdaBelief(self.optimizer.param_groups, weight_decay)

    def ended(self) -> int:
        """The rounds that ended so far."""
        return ended((entry["loss"] for entry in self.progress.val), self.patience)

    def _steps(self) -> Any:
        for slices in super()._steps():
            if self.ended() >= self.rounds:
                return
            yield slices

    def _step(self, slices: list[int]) -> float:
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.decay ** self.ended()
        return super()._step(slices)

    def _history(self, status: str) -> dict[str, Any]:
        return super()._history(status) | {"rounds": self.ended()}


def train(
    model: Any,
    data: loop.Data,
    settings: loop.Settings,
    budget: Budget,
    checkpoints: Checkpoints,
    group: Group = ALONE,
) -> dict[str, Any]:
    """Train a model in place. Returns its history (strict JSON), with how many rounds ended.
    DivergedError, DataError."""
    return Rounds(model, data, settings, budget, checkpoints, group).run()
