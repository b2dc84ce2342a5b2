"""From prepared slices to what a step reads, their order, and the unit of the loss.

One step sees the targets of one slice, each with the context that the model asks for (stages/contexts/given.py). Positions and winds
come standardised; `unit_kn` takes a difference of standardised winds back to knots.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from stages import seeds
from stages.batches import Batch

if TYPE_CHECKING:
    from stages.contexts.given import Contexts

KNOT_M_S = 1852 / 3600


@dataclass(frozen=True)
class Data:
    """The slices of one data set as batches for one model."""

    contexts: "Contexts"
    model: nn.Module
    device: torch.device

    def slices(self, split: str) -> list[int]:
        """Target slices of a split."""
        return self.contexts.pairs.targets(split)

    def batch(self, slice: int) -> Batch:
        """Context and targets of one slice."""
        return self.contexts.given(slice, self.model).batch.to(self.device)

    def unit_kn(self) -> Tensor:
        """Knots per unit of standardised wind, for east and north: (2,)."""
        return torch.tensor(self.contexts.pairs.meta["scaler"]["y_std"], dtype=torch.float32, device=self.device) / KNOT_M_S


def order(slices: list[int], seed: int, epoch: int) -> np.ndarray:
    """The slices in the order of one epoch. It depends on nothing but its arguments: a resumed run needs no sampler state."""
    return seeds.stream(seed, "training", "order", epoch).permutation(np.asarray(slices, dtype=np.int64))
