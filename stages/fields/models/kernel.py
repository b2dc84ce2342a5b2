"""Gaussian kernel averaging: thesis equation 1.1 with its sign mended (errata, eq. 1.1).

wind(x) = sum_k w_k y_k,  w = softmax_k( -s_xy [(x-x_k)^2 + (y-y_k)^2] - s_z (z-z_k)^2 ),
s = exp(log_scale) > 0 (errata, eq. 1.2).
As printed the weights grow with the distance. Positions are standardised, so s has no unit; time is
not an input here.
|x - x_k|^2 = |x|^2 - 2 x.x_k + |x_k|^2 and the softmax forgets |x|^2: this is attention with
queries (2 s x, 1) and keys (x_k, -s|x_k|^2), so the fused kernel computes it without a table of T x
C weights. Trained by gradient descent on two numbers.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.attention import LANES, usable


class Kernel(FieldModel):
    """One scale for the first two axes together (the horizontal), one for each further axis."""

    context, learns = "slice", "gradient"
    # two logarithms, far from their optimum at the start: the thesis' 3e-4 is meant for networks
    learning_rate = 0.03

    def __init__(self, x_dim: int, i_dim: int, o_dim: int):
        super().__init__()
        self.axes = [max(0, axis - 1) for axis in range(x_dim)]  # which scale serves which axis
        self.log_scale = nn.Parameter(torch.zeros(self.axes[-1] + 1))

    def forward(self, batch: Batch) -> Prediction:
        """Weighted mean of the context values, B T O; 0 for an empty context."""
        if not batch.context_x.shape[1] or not batch.target_x.shape[1]:
            return Prediction(
                batch.context_y.new_zeros(*batch.target_x.shape[:2], batch.context_y.shape[2])
            )
        with torch.autocast(
            batch.context_x.device.type, enabled=False
        ):  # 8 bits of mantissa do not hold a squared distance
            return Prediction(self._mean(batch))

    def _mean(self, batch: Batch) -> Tensor:
        scale = self.log_scale.exp()[self.axes]
        mask = batch.context_mask
        # measured from the middle of the context: the products stay small and keep their digits
        middle = (batch.context_x * mask[:, :, None]).sum(1, keepdim=True) / mask.sum(1)[
            :, None, None
        ].clamp_min(1)
        points, targets = batch.context_x - middle, batch.target_x - middle
        query = torch.cat((2 * scale * targets, torch.ones_like(targets[:, :, :1])), 2)
        key = torch.cat((points, -(scale * points.square()).sum(2, keepdim=True)), 2)

        def lanes(x: Tensor) -> Tensor:
            return functional.pad(x, (0, LANES - x.shape[2]))[:, None]

        mean = functional.scaled_dot_product_attention(
            lanes(query), lanes(key), lanes(batch.context_y), attn_mask=usable(mask), scale=1.0
        )
        return mean[:, 0, :, : batch.context_y.shape[2]] * mask.any(1)[:, None, None]
