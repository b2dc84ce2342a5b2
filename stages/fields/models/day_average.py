"""Day average: one wind for the whole target's day (thesis section 1.4.1). It sees the future
and is a yardstick, not a forecast."""

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.average import masked_mean


class DayAverage(FieldModel):
    """Mean of the context, which is every row of the target's UTC day."""

    context, learns = "day", "nothing"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int):
        super().__init__()

    def forward(self, batch: Batch) -> Prediction:
        """The same mean (B 1 I -> B T O) at every target; 0 for an empty context."""
        mean = masked_mean(batch.context_y, batch.context_mask)
        return Prediction(mean[:, None].expand(-1, batch.target_x.shape[1], -1))
