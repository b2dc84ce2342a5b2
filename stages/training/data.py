"""From prepared pairs to tensors, their order, and the unit of the loss.

One step sees one pair of slices: a context set and a target set of any length. Positions and winds come standardised; `unit_kn` takes
a difference of standardised winds back to knots. Shapes: C context, T target points.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from stages import seeds
from stages.batches import Batch, single

if TYPE_CHECKING:
    from stages.preparation.pairs import Pairs

KNOT_M_S = 1852 / 3600


@dataclass(frozen=True)
class Data:
    """Pairs of one data set as batches of one set each, for a model that reads `context`."""

    pairs: "Pairs"
    context: str
    device: torch.device

    def slices(self, split: str) -> list[int]:
        """Target slices of a split."""
        return self.pairs.targets(split)

    def batch(self, slice: int) -> Batch:
        """Context (1 C X, 1 C I) and target (1 T X, 1 T O) of one target slice."""
        pair = self.pairs.pair(slice, self.context)
        arrays = (pair.context_x, pair.context_y, pair.target_x, pair.target_y)
        return single(*(torch.tensor(array, device=self.device) for array in arrays))

    def unit_kn(self) -> Tensor:
        """Knots per unit of standardised wind, for east and north: (2,)."""
        return torch.tensor(self.pairs.meta["scaler"]["y_std"], dtype=torch.float32, device=self.device) / KNOT_M_S


def order(slices: list[int], seed: int, epoch: int) -> np.ndarray:
    """The slices in the order of one epoch. It depends on nothing but its arguments: a resumed run needs no sampler state."""
    return seeds.stream(seed, "training", "order", epoch).permutation(np.asarray(slices, dtype=np.int64))
