"""Persistence: the wind stays as it was measured nearest to the target, one lead ago (thesis
section 1.4.1).

wind(x) = y_k,  k = argmin_k |x - x_k| in standardised space; reports equally near share
                (stages/layers/nearest.py). Nothing is
learned or chosen: what a forecast must beat.
"""

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.nearest import nearest_mean


class Persistence(FieldModel):
    """The value of the nearest context point."""

    context, learns = "slice", "nothing"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int):
        super().__init__()

    def forward(self, batch: Batch) -> Prediction:
        """The nearest context value, B T O; 0 for an empty context."""
        return Prediction(nearest_mean(batch, 1))
