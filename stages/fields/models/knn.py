"""k nearest neighbours: the mean wind of the k context points nearest in standardised space (thesis
section 1.4.1).

k is a buffer, chosen on validation slices among the candidates by stages/winds/fitting.py; k = 1 is
the model `persistence`. Ties and sets of fewer than k points: stages/layers/nearest.py.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.nearest import nearest_mean


class KNN(FieldModel):
    """`neighbours` lists the candidates for k; the first is used until one is chosen."""

    if TYPE_CHECKING:
        neighbours: torch.Tensor

    context, learns = "slice", "neighbours"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int, neighbours: Sequence[int] = (1,)):
        super().__init__()
        self.candidates = tuple(neighbours)
        self.register_buffer("neighbours", torch.tensor(self.candidates[0]))

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """Every candidate is a count."""
        found = given.get("neighbours", (1,))
        if found and all(type(k) is int and k >= 1 for k in found):
            return super().problems(given)
        return [f"neighbours must be whole numbers of at least 1, not {found!r}"]

    def forward(self, batch: Batch) -> Prediction:
        """Mean of the nearest context values, B T O."""
        return Prediction(nearest_mean(batch, int(self.neighbours)))
