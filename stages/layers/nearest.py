"""The mean of a set's nearest values: what k nearest neighbours and persistence predict (thesis
section 1.4.1).

Points tied at the last place share what is left of the places, so that the order of the context
never matters; fewer points than places: those there are; none: 0, the mean of the training rows in
standardised units. Exact, in chunks (stages/layers/distances.py).
Shapes: B batch, C context points, T target points, X input dimensions, I context values.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from stages.batches import Batch
from stages.layers.distances import chunks, square_distance


def nearest_mean(batch: Batch, places: int) -> Float[Tensor, "B T I"]:
    """Mean value of the `places` >= 1 context points nearest to each target, in the units of
    `context_y`."""
    (sets, targets), (count, width) = batch.target_x.shape[:2], batch.context_y.shape[1:]
    if not count or not targets:
        return batch.context_y.new_zeros(sets, targets, width)
    return torch.cat(
        [_mean(batch, part, min(places, count)) for part in chunks(targets, count * sets)], 1
    )


def _mean(batch: Batch, part: slice, places: int) -> Tensor:
    real = batch.context_mask[:, None, :]
    square = square_distance(batch.target_x[:, part], batch.context_x).masked_fill_(
        ~real, torch.inf
    )
    reach = square.kthvalue(places, dim=2, keepdim=True).values
    nearer, tied = (square < reach).to(square.dtype), ((square == reach) & real).to(square.dtype)
    left = places - nearer.sum(2, keepdim=True)
    weight = nearer + tied * left / tied.sum(2, keepdim=True).clamp_min(1)
    return weight @ batch.context_y / weight.sum(2, keepdim=True).clamp_min(1)
