"""GNG, "GEN no graph": graph element network without a common graph, hence without a bottleneck
(thesis section 3.5.1, figure 3.4).

The context points themselves are the nodes, each joined to its `nearest` nearest others, both ways;
`steps` steps of message passing with one step's weights run over that graph, and a target reads the
points with weights softmax over POINTS of -exp(s) |x - x_c|^2. Neighbours tied in distance are
chosen by position, then by value, never by the order in which they came (layers/graphs.py).
Shapes: B sets, C context, T targets, X position axes, I and O values, H width.

Parameters at X=2, I=O=1, traditional encoder: 9,136 for H=32 and 34,640 for H=64, as the authors'
public code has them.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.encoders import ENCODERS
from stages.layers.graphs import canonical, joined, nearest_edges
from stages.layers.messages import MESSAGES, Passing, proximity
from stages.layers.mlp import mlp


class GNG(FieldModel):
    """encoder: "traditional" (the reference) or "shared", as in GEN."""

    if TYPE_CHECKING:
        position: Any

    context, learns, outputs = "slice", "gradient", "any"
    limits = {"steps": 256, "nearest": 64}
    words = {"encoder": tuple(ENCODERS), "message": MESSAGES, "tied": (0, 1)}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "traditional",
        width: int = 32,
        steps: int = 13,
        nearest: int = 3,
        message: str = "linear",
        tied: int = 1,
    ):
        super().__init__()
        self.nearest, self.shared = nearest, encoder == "shared"
        self.strength = nn.Parameter(torch.zeros(1))  # s
        self.value = mlp(
            i_dim if self.shared else x_dim + i_dim, width, width, width
        )  # nu, or varphi of position and value
        self.position = mlp(x_dim, width, width, width) if self.shared else None  # phi
        self.passing = Passing(x_dim, width, steps, message, bool(tied))
        self.readout = (
            mlp(2 * width, width, o_dim) if self.shared else mlp(width + x_dim, width, width, o_dim)
        )

    def encode(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """The latent of every context point after message passing, B C H, for points in their
        canonical order."""
        tokens = (
            self.position(x) + self.value(y) if self.shared else self.value(torch.cat((x, y), -1))
        )
        return self.passing(x, tokens, joined(nearest_edges(x, self.nearest, mask), x.shape[1]))

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O; an empty context gives what the target's position alone
        suggests."""
        order = canonical(batch.context_x, batch.context_y, batch.context_mask)[..., None]
        x, y = batch.context_x.take_along_dim(order, 1), batch.context_y.take_along_dim(order, 1)
        mask = batch.context_mask.gather(1, order[..., 0])
        latents = self.encode(x, y, mask)
        score = proximity(batch.target_x, x, self.strength)
        real = mask[:, None, :]
        weight = (
            score.masked_fill(~(real | ~mask.any(1)[:, None, None]), -torch.inf).softmax(-1) * real
        )
        query = batch.target_x if self.position is None else self.position(batch.target_x)
        return Prediction(self.readout(torch.cat((weight @ latents, query), -1)).float())
