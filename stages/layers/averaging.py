"""Gaussian kernel averaging in local coordinates (thesis equation 1.1, its sign mended:
errata, eq. 1.1).

wind(x) = sum_k w_k y_k,  w = softmax_k( -sum_a s_a (x_a - x_ka)^2 ),
s = (s_xy, s_xy, s_z, s_t) > 0.
As printed the weights grow with the distance. s weighs squared differences in the units of
layers/local.py; s = 1/l^2 of a length l. A learned s is s0 exp(SPAN tanh(shift / SPAN)): always
positive, s0 exp(shift) near the start, and never so large or small that float32 loses it, whatever
a network answers far outside its data. Shapes: B batch, C context points, T target points, I
values.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from stages.batches import Batch
from stages.layers.attention import usable

AXES = [0, 0, 1, 2]  # which of (s_xy, s_z, s_t) serves which axis
SPAN = (
    8.0  # |log(s / s0)| stays below: lengths l = s^(-1/2) from 1/55 to 55 times those at the start
)


def bounded(start: Float[Tensor, "*n"], shift: Float[Tensor, "*m"]) -> Tensor:
    """exp of `start` + `shift`, the shift kept within SPAN by a tanh; float32 and positive."""
    return (start + SPAN * torch.tanh(shift.float() / SPAN)).exp()


def scales(start: Float[Tensor, "3"], shift: Float[Tensor, "*n 3"]) -> Float[Tensor, "*n 4"]:
    """The scale of every axis from log(s_xy, s_z, s_t) at the start and its learned shift."""
    return bounded(start, shift)[..., AXES]


def blanked(batch: Batch) -> Batch:
    """The same with zeros for what stands in the padding: the square of a large number may
    overflow, and then no weight silences it."""

    def zero(values: Tensor, mask: Tensor) -> Tensor:
        return values if mask.all() else values.masked_fill(~mask[:, :, None], 0)

    return replace(
        batch,
        context_x=zero(batch.context_x, batch.context_mask),
        context_y=zero(batch.context_y, batch.context_mask),
        target_x=zero(batch.target_x, batch.target_mask),
    )


def kernel_mean(
    batch: Batch, scale: Float[Tensor, "4"] | Float[Tensor, "B T 4"]
) -> Float[Tensor, "B T I"]:
    """The weighted mean of each target's context values, under one scale or one a target; 0 for
    an empty context."""
    batch = blanked(batch)
    with torch.autocast(
        batch.context_x.device.type, enabled=False
    ):  # 8 bits of mantissa do not hold a squared distance
        gap = (
            batch.target_x[:, :, None] - batch.context_x[:, None]
        )  # differences first: equal points are at distance 0
        exponent = -(gap.square() @ scale[..., None])[..., 0]
        seen = usable(
            batch.context_mask
        )  # a set without one real point averages its padding, which is 0
        if seen is not None:
            exponent = exponent.masked_fill(~seen[:, 0], -torch.inf)
        return exponent.softmax(2) @ batch.context_y
