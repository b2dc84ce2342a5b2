"""From prepared slices to what a step reads, their order, and the unit of the loss.

One step sees the targets of one slice, each with the context that the model asks for
(stages/winds/contexts/given.py). Positions and winds come standardised; `unit_kn` takes a
difference of standardised winds back to knots.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from stages import seeds
from stages.batches import Batch, Prediction
from stages.training import losses
from stages.training.group import ALONE, Group

if TYPE_CHECKING:
    from stages.winds.contexts.given import Contexts

KNOT_M_S = 1852 / 3600


@dataclass(frozen=True)
class Data:
    """The slices of one data set as batches for one model."""

    word = "slice"

    contexts: "Contexts"
    model: nn.Module
    device: torch.device

    def slices(self, split: str) -> list[int]:
        """Target slices of a split."""
        return self.contexts.pairs.targets(split)

    def batch(self, slice: int) -> Batch:
        """Context and targets of one slice."""
        return self.contexts.given(slice, self.model).batch.to(self.device)

    def parts(self, slices: list[int], step: int) -> list[Callable[[], Batch]]:
        """A step's batches, each made when it is called: one a slice."""
        return [partial(self.batch, slice) for slice in slices]

    def loss(self, prediction: Prediction, batch: Batch) -> Tensor:
        """RMSE in knots, or a Gaussian head's negative log-likelihood."""
        return losses.loss_of(prediction, batch, self.unit_kn())

    def validate(self, model: nn.Module, group: Group = ALONE) -> dict[str, float]:
        """See losses.validate."""
        return losses.validate(model, self, self.unit_kn(), group)

    def unit_kn(self) -> Tensor:
        """Knots per unit of standardised wind, for east and north: (2,)."""
        return (
            torch.tensor(
                self.contexts.pairs.meta["scaler"]["y_std"], dtype=torch.float32, device=self.device
            )
            / KNOT_M_S
        )


def order(slices: list[int], seed: int, epoch: int) -> np.ndarray:
    """The slices in the order of one epoch. It depends on nothing but its arguments: a resumed
    run needs no sampler state."""
    return seeds.stream(seed, "training", "order", epoch).permutation(
        np.asarray(slices, dtype=np.int64)
    )
