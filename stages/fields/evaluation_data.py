"""What the evaluation of one problem on sets reads: the prepared sets, their units, and what is
asked of them (thesis 3.4).

Errors are given in the problem's unit where all components of a target share one, else of
standardised values. Shapes: S sets, C context points, T targets, I context values, O components.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stages import seeds
from stages.errors import DivergedError
from stages.fields import scores
from stages.fields.failures import MOST, spread
from stages.fields.sets import PreparedSets
from stages.params import Params
from stages.scores.shell import Machine


@dataclass(frozen=True)
class Settings:
    """Sets in a batch of training, bootstrap resamples and their seed, torch threads, device,
    whether cells are probed, and for how many updates at most."""

    batch: int
    resamples: int
    seed: int
    threads: int = 1
    device: str = "cpu"
    probed: bool = False
    most: int = MOST

    @classmethod
    def of(
        cls, parameters: Params, experiment: str, profile: str, dataset: str, machine: Machine
    ) -> "Settings":
        """As params.yaml has them."""
        plan = parameters.profiles[profile]
        return cls(
            plan.learning[dataset].batch,
            plan.evaluation.bootstrap,
            machine.seed,
            machine.threads,
            machine.device,
            experiment == "failure_modes",
        )


@dataclass(frozen=True)
class EvaluationData:
    """What all cells of a data set share."""

    sets: PreparedSets
    settings: Settings

    @classmethod
    def open(cls, prepared: Path, settings: Settings) -> "EvaluationData":
        """Read the prepared sets."""
        torch.set_num_threads(settings.threads)
        return cls(PreparedSets.open(prepared, settings.device), settings)

    @property
    def one_unit(self) -> bool:
        """Whether all components of a target are in one unit; else errors are of standardised
        values."""
        return len(set(self.sets.meta["units"]["o"])) == 1

    @property
    def unit(self) -> str:
        """The unit of errors."""
        return self.sets.meta["units"]["o"][0] if self.one_unit else "1"

    @property
    def scale(self) -> Tensor:
        """Of `unit` for a standardised one, (O,)."""
        return self.sets.unit if self.one_unit else torch.ones_like(self.sets.unit)

    @property
    def shared(self) -> list[int] | None:
        """Which context values are the targets' components; None where they are other
        quantities."""
        names, units = self.sets.meta["names"], self.sets.meta["units"]
        told = list(zip(names["i"], units["i"], strict=True))
        asked = list(zip(names["o"], units["o"], strict=True))
        return [told.index(one) for one in asked] if set(asked) <= set(told) else None

    def known(self, numbers: Tensor) -> np.ndarray:
        """The context values (S, C, O) of the targets' quantities, in the problem's units."""
        return self.real("i", self.sets.context_y[numbers])[..., self.shared]

    def numbers(self, split: str) -> Tensor:
        """The numbers of a split's sets; of the training sets as many as there are test sets at
        most, evenly spread."""
        mine = self.sets.split(split)
        return spread(mine, len(self.sets.split("test"))) if split == "train" else mine

    def real(self, key: str, values: Tensor) -> np.ndarray:
        """Standardised x, i or o values in the problem's units, float64."""
        mean, std = (
            np.asarray(self.sets.meta["scaler"][f"{key}_{part}"], np.float64)
            for part in ("mean", "std")
        )
        return values.double().cpu().numpy() * std + mean

    def answers(
        self, numbers: Tensor, predicted: Tensor, permuted: Tensor | None = None
    ) -> scores.Answers:
        """Standardised predictions (S, T, O) beside what was measured, in `unit`."""
        return scores.Answers(
            self.errors_in(predicted),
            self.errors_in(self.sets.target_y[numbers]),
            self.sets.group[numbers].cpu().numpy(),
            None if permuted is None else self.errors_in(permuted),
        )

    def errors_in(self, values: Tensor) -> np.ndarray:
        """Standardised values (S, T, O) in `unit`, float64, without the mean: errors alone
        count."""
        return (values.double() * self.scale.double()).cpu().numpy()


def shuffled(sets: PreparedSets, numbers: Tensor, seed: int) -> Tensor:
    """Context values (S, C, I) dealt anew among each set's own points, by a stream of each set."""
    count = sets.context_y.shape[1]
    order = np.stack(
        [seeds.stream(seed, "permute", number).permutation(count) for number in numbers.tolist()]
    )
    return torch.take_along_dim(
        sets.context_y[numbers], torch.as_tensor(order, device=numbers.device)[..., None], 1
    )


def finite(values: Tensor, where: str) -> Tensor:
    """The values; DivergedError when one of them is not a number."""
    if not torch.isfinite(values).all():
        raise DivergedError(
            "a prediction is not a finite number",
            where=where,
            found=f"{int((~torch.isfinite(values)).sum())} values",
        )
    return values
