"""Stream function: a transformer neural process whose wind has no divergence
(layers/stream_head.py; our own).

TNP predicts the stream function, with a mixing that is linear in the points. Reads the reports of
the last WINDOW_S seconds, all of them for every target, so that its field is one function of the
place. The linear mixing's elu has no curvature at 0; the hyper one is smooth throughout.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.fields.models.tnp import TNP
from stages.layers import stream_head
from stages.layers.heads import Gaussian

WINDOW_S = 600.0


class StreamFunction(FieldModel):
    """mixing: of the TNP, "linear" or "hyper"; the head gives each component's spread."""

    if TYPE_CHECKING:
        unit: Tensor

    context, learns, head = "recent", "gradient", "gaussian"
    window_s = WINDOW_S
    words = {"mixing": ("linear", "hyper")}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        mixing: str = "hyper",
        width: int = 32,
        heads: int = 4,
        layers: int = 2,
    ):
        super().__init__()
        model = TNP(x_dim, i_dim, o_dim, mixing, "gaussian", width, heads, layers)
        self.stream = stream_head.smooth(model)
        self.register_buffer("unit", torch.ones(2))

    def set_scaler(self, y_mean: Tensor, y_std: Tensor, altitude_km: float = 0.0) -> None:
        """Standard deviations (2,) of the training rows' winds: a slope of 1 is their mean. A
        mean wind has no divergence, so it need not be known."""
        std = torch.as_tensor(y_std)
        self.unit.copy_(std.mean() / std)

    def forward(self, batch: Batch) -> Prediction | Gaussian:
        """The law of every component, B T 2; an empty context gives what the place alone
        suggests."""
        return stream_head.wind(self.stream, batch, self.unit)
