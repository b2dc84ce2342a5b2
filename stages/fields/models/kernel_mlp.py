"""Gaussian kernel averaging whose scale a network answers (thesis sections 1.3.3 and C.7; equations
1.1-1.2 mended: errata, eq. 1.1 and eq. 1.2).

wind(x) = sum_k w_k y_k,  w = softmax_k( -sum_a s_a (x_a - x_ka)^2 ),
s = exp(MLP(x)), one scale an axis, `layers` hidden layers.
It averages the whole slice, where gka_mlp_tnn averages neighbours in space and time; every
prediction is a convex combination of the context's values. The exponent of s is kept within SPAN
(layers/averaging.py). Positions are standardised, so s has no unit. The softmax forgets s x^2, so
this is attention with queries (2 s x, -s) and keys (x_k, x_k^2), without a table of T x C x X.
Parameters on wind (X=3): 4,611 / 17,411 / 133,379 for (width, layers) = (64, 2), (128, 2), (256,
3).
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.attention import LANES, usable
from stages.layers.average import masked_mean
from stages.layers.averaging import blanked, bounded
from stages.layers.mlp import mlp


class KernelMLP(FieldModel):
    """`layers` hidden layers of `width`."""

    context, learns = "slice", "gradient"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int, width: int = 64, layers: int = 2):
        super().__init__()
        self.network = mlp(x_dim, *[width] * layers, x_dim)
        self.lanes = -(-2 * x_dim // LANES) * LANES  # what the fused kernel likes a head to be wide

    def scale(self, target_x: Float[Tensor, "*n X"]) -> Float[Tensor, "*n X"]:
        """Weights of squared differences at each target, above 0."""
        answer = self.network(target_x)
        return bounded(torch.zeros_like(answer, dtype=torch.float32), answer)

    def forward(self, batch: Batch) -> Prediction:
        """Weighted mean of the context values, B T O; 0 for an empty context."""
        batch = blanked(batch)  # what stands in the padding must not reach the network
        if not batch.context_x.shape[1] or not batch.target_x.shape[1]:
            return Prediction(
                batch.context_y.new_zeros(*batch.target_x.shape[:2], batch.context_y.shape[2])
            )
        scale = self.scale(batch.target_x)
        with torch.autocast(
            batch.context_x.device.type, enabled=False
        ):  # 8 bits of mantissa do not hold a squared distance
            return Prediction(self._mean(batch, scale))

    def _mean(self, batch: Batch, scale: Tensor) -> Tensor:
        # measured from the middle of the context: the products stay small and keep their digits
        middle = masked_mean(batch.context_x, batch.context_mask)[:, None]
        points, targets = batch.context_x - middle, batch.target_x - middle
        query = torch.cat((2 * scale * targets, -scale), 2)
        key = torch.cat((points, points.square()), 2)

        def lanes(x: Tensor) -> Tensor:
            return functional.pad(x, (0, self.lanes - x.shape[2]))[:, None]

        values = functional.pad(batch.context_y, (0, -batch.context_y.shape[2] % LANES))[:, None]
        mean = functional.scaled_dot_product_attention(
            lanes(query), lanes(key), values, attn_mask=usable(batch.context_mask), scale=1.0
        )
        return mean[:, 0, :, : batch.context_y.shape[2]].masked_fill(
            ~batch.context_mask.any(1)[:, None, None], 0
        )
