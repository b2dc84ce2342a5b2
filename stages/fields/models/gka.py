"""GKA, Gaussian kernel averaging with one scale (thesis equation 1.1 with its sign mended:
layers/averaging.py).

The scale, one length for each kind of axis, is chosen by a sweep and comes as arguments: weight
exp(-d^2 / length^2). Neighbours are chosen under the same scale, so those that are kept are those
that weigh most. Winds are standardised.
"""

from typing import TYPE_CHECKING

from torch import Tensor

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.averaging import kernel_mean
from stages.layers.local import weights


class GKA(FieldModel):
    """`places` neighbours of each target, weighed by their distance; lengths in km and minutes."""

    if TYPE_CHECKING:
        scale: Tensor

    context, learns = "neighbours", "nothing"
    limits = {"places": 4096}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        places: int = 64,
        horizontal_km: float = 50.0,
        vertical_km: float = 0.5,
        time_min: float = 60.0,
    ):
        super().__init__()
        self.places = places
        self.register_buffer("scale", weights(horizontal_km, vertical_km, time_min))

    def metric(self, target_x: Tensor) -> Tensor:
        """Weights (4,) of squared differences: the kernel's own, for every target (M, 4)."""
        return self.scale

    def forward(self, batch: Batch) -> Prediction:
        """Weighted mean of the context values, B T O; 0 for an empty context."""
        return Prediction(kernel_mean(batch, self.scale))
