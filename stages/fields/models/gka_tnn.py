"""GKA-TNN: Gaussian kernel averaging whose scale is learned through its neighbours (thesis sections
1.3.2-1.3.3, equation 1.1 mended).

Three numbers, the shifts of log(s_xy, s_z, s_t) from the lengths at the start, follow the gradient
of the forecast's error; that gradient reads only the `places` neighbours of each target. requery =
1 chooses the neighbours anew under the scale learned so far, 0 leaves them as the project's own
metric chose them, so that they can be found beforehand. Winds are standardised.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.averaging import kernel_mean, scales
from stages.layers.local import weights


class GKATNN(FieldModel):
    """Lengths in km and minutes: where the scale starts, weight exp(-d^2 / length^2)."""

    if TYPE_CHECKING:
        start: Tensor

    context, learns = "neighbours", "gradient"
    limits = {"places": 4096}
    words = {"requery": (0, 1)}
    learning_rate = 0.03  # three logarithms, as in kernel.py

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        places: int = 64,
        requery: int = 0,
        horizontal_km: float = 50.0,
        vertical_km: float = 0.5,
        time_min: float = 60.0,
    ):
        super().__init__()
        self.places, self.requery = places, requery
        self.register_buffer("start", weights(horizontal_km, vertical_km, time_min)[1:].log())
        self.shift = nn.Parameter(torch.zeros(3))

    def metric(self, target_x: Tensor) -> Tensor | None:
        """Weights (4,) of squared differences for every target (M, 4), as learned so far; None:
        the project's own."""
        return scales(self.start, self.shift).detach() if self.requery else None

    def forward(self, batch: Batch) -> Prediction:
        """Weighted mean of the context values, B T O; 0 for an empty context."""
        return Prediction(kernel_mean(batch, scales(self.start, self.shift)))
