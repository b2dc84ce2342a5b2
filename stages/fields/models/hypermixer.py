"""MSA with HyperMixing in the place of attention (thesis section C.4, table C.4, figure C.4): time
and memory linear in the points.

Encoders, layer, readout as in fields/models/msa.py; only the token mixing differs
(layers/hypermixing.py). The thesis prints no widths. Ours are MSA's, with `hidden` three times the
width: then tied hypernetworks weigh what queries, keys and values weigh. Parameters on wind (X=3,
I=O=2), h = width, tied: layers (5h^2 + h hidden + 9h) each; encoders and readout 6h^2 + 18h + 2.
That makes 4,862 / 18,362 / 83,042 for (h, hidden, layers) = (12, 36, 3), (24, 72, 3), (32, 96, 9).
"""

import torch
from torch import nn

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.encoders import ENCODERS
from stages.layers.hypermixing import HyperMixerLayer
from stages.layers.mlp import mlp


class HyperMixer(FieldModel):
    """encoder: "shared" or "traditional"; tied = 1: what a token tells and what it takes share
    their weights."""

    context, learns, outputs = "slice", "gradient", "any"
    words = {"encoder": tuple(ENCODERS), "tied": (0, 1)}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "shared",
        tied: int = 1,
        width: int = 12,
        hidden: int = 36,
        heads: int = 1,
        layers: int = 3,
    ):
        super().__init__()
        self.encoder = ENCODERS[encoder](x_dim, i_dim, width)
        self.layers = nn.ModuleList(
            HyperMixerLayer(width, hidden, heads, bool(tied)) for _ in range(layers)
        )
        self.readout = mlp(width, width, width, o_dim)  # gamma

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O; an empty context gives what the targets' positions alone
        suggest."""
        tokens = self.encoder(batch.context_x, batch.context_y, batch.target_x)
        real = torch.cat((batch.context_mask, batch.target_mask), 1)
        for layer in self.layers[:-1]:
            tokens = layer(tokens, real)
        return Prediction(
            self.readout(self.layers[-1](tokens, real, last=batch.target_x.shape[1])).float()
        )
