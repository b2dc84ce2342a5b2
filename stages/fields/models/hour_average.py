"""Hour average: the mean wind of the hour that ended one lead before the target, [t - 1 h 30,
t - 30 min] (thesis section 1.4.1)."""

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.average import masked_mean


class HourAverage(FieldModel):
    """Mean of the context, which is the last hour known at the time of forecasting."""

    context, learns = "hour", "nothing"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int):
        super().__init__()

    def forward(self, batch: Batch) -> Prediction:
        """The same mean (B 1 I -> B T O) at every target; 0 for an empty context."""
        mean = masked_mean(batch.context_y, batch.context_mask)
        return Prediction(mean[:, None].expand(-1, batch.target_x.shape[1], -1))
