"""GKA-MLP-TNN: Gaussian kernel averaging whose scale varies in space (thesis section 1.3.3,
equations 1.1-1.2 mended: errata, eq. 1.1 and eq. 1.2).

(s_xy, s_z, s_t) = s0 exp(MLP(x, y, z)) at the target's place: short lengths where much was measured
or the wind changes quickly, long ones elsewhere. As printed the MLP's answer is the scale itself,
which may be negative; the exponential makes it a metric. The MLP has `layers` linear maps with ReLU
between them (the text: a few); it starts near 0, so that learning begins with the one scale of
gka_tnn. requery = 1 chooses each target's neighbours under its own scale, 0 as the project's metric
does. Winds are standardised.
"""

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.averaging import blanked, kernel_mean, scales
from stages.layers.local import weights
from stages.layers.mlp import mlp

# of the last map's weights at the start: not 0, or no gradient would reach the maps before it
SMALL = 0.01


class GKAMLPTNN(FieldModel):
    """Lengths in km and minutes: the scale s0 before anything is learned, weight exp(-d^2 /
    length^2)."""

    if TYPE_CHECKING:
        start: Tensor
        network: Any

    context, learns = "neighbours", "gradient"
    limits = {"places": 4096}
    words = {"requery": (0, 1)}
    learning_rate = (
        3e-3  # the last map learns logarithms of lengths: the thesis' 3e-4 takes ten times as long
    )

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        places: int = 64,
        requery: int = 0,
        width: int = 32,
        layers: int = 3,
        horizontal_km: float = 50.0,
        vertical_km: float = 0.5,
        time_min: float = 60.0,
    ):
        super().__init__()
        self.places, self.requery = places, requery
        self.register_buffer("start", weights(horizontal_km, vertical_km, time_min)[1:].log())
        self.network = mlp(3, *[width] * (layers - 1), 3)
        with torch.no_grad():
            self.network[-1].weight.mul_(SMALL)
            self.network[-1].bias.zero_()

    def scale(self, target_x: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n 4"]:
        """Weights of squared differences at each target."""
        return scales(self.start, self.network(target_x[..., :3]))

    def metric(self, target_x: Tensor) -> Tensor | None:
        """Weights (M, 4) of squared differences, one row for each target (M, 4), as learned so
        far; None: the project's own."""
        return self.scale(target_x).detach() if self.requery else None

    def forward(self, batch: Batch) -> Prediction:
        """Weighted mean of the context values, B T O; 0 for an empty context."""
        batch = blanked(batch)  # what stands in the padding must not reach the network
        return Prediction(kernel_mean(batch, self.scale(batch.target_x)))
