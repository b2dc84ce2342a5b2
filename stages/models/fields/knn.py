"""k nearest neighbours: the mean wind of the k context points nearest in standardised space; k = 1 is persistence (thesis 1.4.1).

k is a buffer, chosen on validation slices among the candidates by stages/training/fit.py. Points tied at the k-th distance share what is
left of the k places, so that the order of the context never matters; fewer than k points: those there are; none: 0.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from stages.batches import Batch, Prediction
from stages.neighbours.linear import chunks, square_distance


class KNN(nn.Module):
    """`neighbours` lists the candidates for k; the first is used until one is chosen."""

    context, learns = "slice", "neighbours"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int, neighbours: Sequence[int] = (1,)):
        super().__init__()
        self.candidates = tuple(neighbours)
        self.register_buffer("neighbours", torch.tensor(self.candidates[0]))

    def forward(self, batch: Batch) -> Prediction:
        """Mean of the nearest context values, B T O."""
        targets, count = batch.target_x.shape[1], batch.context_x.shape[1]
        if not count:
            return Prediction(batch.context_y.new_zeros(len(batch.target_x), targets, batch.context_y.shape[2]))
        parts = [self._mean(batch, part) for part in chunks(targets, count * len(batch.target_x))]
        return Prediction(torch.cat(parts, 1) if parts else batch.context_y.new_zeros(len(batch.target_x), 0, batch.context_y.shape[2]))

    def _mean(self, batch: Batch, part: slice) -> Tensor:
        real = batch.context_mask[:, None, :]
        square = square_distance(batch.target_x[:, part], batch.context_x).masked_fill_(~real, torch.inf)
        places = min(int(self.neighbours), square.shape[2])
        reach = square.kthvalue(places, dim=2, keepdim=True).values
        nearer, tied = (square < reach).to(square.dtype), ((square == reach) & real).to(square.dtype)
        left = places - nearer.sum(2, keepdim=True)
        weight = nearer + tied * left / tied.sum(2, keepdim=True).clamp_min(1)
        return weight @ batch.context_y / weight.sum(2, keepdim=True).clamp_min(1)
