"""Quadratic trend: one smooth surface through the last hour's winds, the strong simple baseline
(not in the documents).

wind(x) = m + w . f(x),  f(x) = all products z_i z_j, i <= j, of z = (1, x): 10 for three axes,
m = the mean of the context,
w = (F'F/n + r I)^-1 F'(Y - m)/n,  r = RIDGE trace(F'F/n): so small that a quadratic wind comes
                                   back, large enough that one point or
many equal ones have an answer. A parabola runs away beyond its data, so each component is kept
within the range of the context's values: a prediction never leaves the box of its context.
Positions and winds are standardised; the sums are float64.
Shapes: B batch, C context points, T target points, X input dimensions, F features, O values.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.average import masked_mean

RIDGE = 1e-8


def quadratic(x: Float[Tensor, "B N X"]) -> Float[Tensor, "B N F"]:
    """1, each coordinate, and each product of two, F = (X + 1)(X + 2) / 2."""
    z = torch.cat((torch.ones_like(x[:, :, :1]), x), 2)
    first, second = torch.triu_indices(z.shape[2], z.shape[2], device=x.device)
    return z[:, :, first] * z[:, :, second]


class Trend(FieldModel):
    """Least squares on the context, which is the last hour known at the time of forecasting;
    fitted anew for every set."""

    context, learns = "hour", "nothing"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int):
        super().__init__()

    def forward(self, batch: Batch) -> Prediction:
        """The surface at every target, B T O; 0 for an empty context."""
        if not batch.context_x.shape[1]:
            return Prediction(
                batch.context_y.new_zeros(*batch.target_x.shape[:2], batch.context_y.shape[2])
            )
        mask, values = batch.context_mask, batch.context_y.double()
        mean = masked_mean(values, mask)[:, None]
        # the mean lies within the range, so the padding's zeros widen nothing
        values = (values - mean).masked_fill(~mask[:, :, None], 0)
        features = quadratic(batch.context_x.double()).masked_fill(~mask[:, :, None], 0)
        count = mask.sum(1)[:, None, None].clamp_min(1)
        moments = features.mT @ features / count
        trace = (
            moments.diagonal(dim1=1, dim2=2).sum(1).clamp_min(1)
        )  # at least 1 wherever there is a point
        ridge = (
            RIDGE
            * trace[:, None, None]
            * torch.eye(features.shape[2], dtype=moments.dtype, device=moments.device)
        )
        weight = torch.linalg.solve(moments + ridge, features.mT @ values / count)
        surface = quadratic(batch.target_x.double()) @ weight
        low, high = values.amin(1, keepdim=True), values.amax(1, keepdim=True)
        return Prediction((mean + surface.clamp(low, high)).to(batch.context_y.dtype))
