"""k nearest neighbours in space and time: the mean of the k past winds nearest to each target
(thesis section 1.4.1; k = 1 is persistence).

k and the metric, one length for each kind of axis, are chosen by a sweep and come as arguments. The
search has already chosen the k neighbours under `metric` (stages/neighbours/contract.py), so the
forecast is the mean of what it found. Winds are standardised.
"""

from typing import TYPE_CHECKING

from torch import Tensor

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.average import masked_mean
from stages.layers.local import weights


class KNNTNN(FieldModel):
    """`places` is k; lengths in km and minutes: a neighbour that far along one axis counts as
    far as one that far along another."""

    if TYPE_CHECKING:
        scale: Tensor

    context, learns = "neighbours", "nothing"
    limits = {"places": 4096}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        places: int = 16,
        horizontal_km: float = 50.0,
        vertical_km: float = 0.5,
        time_min: float = 60.0,
    ):
        super().__init__()
        self.places = places
        self.register_buffer("scale", weights(horizontal_km, vertical_km, time_min))

    def metric(self, target_x: Tensor) -> Tensor:
        """Weights (4,) of squared differences under which the neighbours of every target (M, 4)
        are chosen."""
        return self.scale

    def forward(self, batch: Batch) -> Prediction:
        """Mean of the context values, the same for every target of a set, B T O; 0 for an empty
        context."""
        mean = masked_mean(batch.context_y, batch.context_mask)
        return Prediction(mean[:, None].expand(-1, batch.target_x.shape[1], -1))
