"""PER, a transformer with a Perceiver's bottleneck (Jaegle et al. 2021; thesis section 3.5.1): the
context has to pass through P latents.

A token is features and a position side by side. P latents, learned, read the context's tokens by
attention; `layers` - 1 further passes of the same block (layers/tied.py) let them read each other;
targets read the latents weighed by their distance (layers/cross.py), and an MLP answers from what
was read and from the target: its bare position (traditional), or phi of it (shared). The authors'
public PER places its latents where the first P points of the context lie, so that its answer
depends on their order, and gathers the context by distance. Here a latent's position is learned:
its numbers after the first `width`. The count is theirs. Parameters for X=2, I=O=1: 12,128 for
width 32, 2 heads, 49 latents, traditional encoder. Shapes: B batch, C context, T target, K token.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.cross import Distance
from stages.layers.encoders import ENCODERS
from stages.layers.mlp import mlp
from stages.layers.tied import TiedBlock


class Perceiver(FieldModel):
    """encoder: "shared" or "traditional"; `latents` = P. A token is filled up with zeros to a
    multiple of the heads."""

    context, learns, outputs = "slice", "gradient", "any"
    limits = {"latents": 65536}
    words = {"encoder": tuple(ENCODERS)}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "traditional",
        latents: int = 49,
        width: int = 32,
        heads: int = 2,
        layers: int = 4,
    ):
        super().__init__()
        self.x_dim, self.width, self.passes = x_dim, width, layers
        self.token = -(-(width + x_dim) // heads) * heads
        shared = encoder == "shared"
        self.position = mlp(x_dim, width, width, width) if shared else None  # phi
        self.value = mlp(i_dim if shared else x_dim + i_dim, width, width, width)  # nu, or varphi
        self.readout = mlp(2 * width if shared else width + x_dim, width, width, o_dim)
        self.block = TiedBlock(self.token, width, heads)
        self.latents = nn.Parameter(torch.randn(latents, self.token))
        self.distance = Distance()

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O; latents that read nothing of an empty context answer as
        they are."""
        if self.position is None:
            features = self.value(torch.cat((batch.context_x, batch.context_y), 2))
            asked = batch.target_x
        else:
            features = self.position(batch.context_x) + self.value(batch.context_y)
            asked = self.position(batch.target_x)
        latents = self.latents.expand(len(batch.context_x), -1, -1)
        places = latents[:, :, self.width : self.width + self.x_dim]
        values = self.block.read(
            latents, self._tokens(features, batch.context_x), batch.context_mask
        )
        for _ in range(self.passes - 1):
            values = self.block(self._tokens(values, places))
        real = torch.ones_like(latents[:, :, 0], dtype=torch.bool)
        return Prediction(
            self.readout(
                torch.cat((self.distance(batch.target_x, places, values, real), asked), 2)
            ).float()
        )

    def _tokens(self, features: Tensor, places: Tensor) -> Tensor:
        """B N K."""
        return functional.pad(
            torch.cat((features, places), 2), (0, self.token - self.width - self.x_dim)
        )
