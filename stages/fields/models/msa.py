"""MSA, multi-layer self-attention over context and target tokens together (thesis 3.3.2-3.3.3,
equations 3.1-3.6).

Points become tokens (layers/encoders.py), `layers` post-norm transformer encoder layers let every
token attend to every real one, and gamma, an MLP with two hidden layers (equation 3.6), reads the
wind off the target tokens. No order, no positions beyond x. The last layer is computed for target
tokens only: nobody reads the others.

Parameters on wind (X=3, I=O=2, mean head), width h: layers (8h^2 + 11h) each; encoders and readout
6h^2 + 18h + 2. That makes 4,934 / 18,506 / 83,618 for (h, heads, layers) = (12, 2, 3), (24, 2, 3),
(32, 8, 9), with either encoder. With the traditional one the sum follows from the text alone. phi,
nu and gamma of the shared one leave 3h over: that these are a Linear(2, h) of the token's kind is
our inference, not the thesis' word. (The authors' public code has these counts with traditional
encoders; its shared variant drops one layer of gamma and has 4,742 / 17,834 / 82,466.) So both arms
weigh the same here, and comparing them compares encodings only.

block "tied" is the model of the failure modes (section 3.5.1, figure 3.4): one block
(layers/tied.py), passed `layers` times. 12,001 parameters with traditional encoders for X=2, I=O=1,
width 32.
"""

import torch
from torch import nn

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers import heads as predictive
from stages.layers.attention import EncoderLayer, usable
from stages.layers.encoders import ENCODERS
from stages.layers.mlp import mlp
from stages.layers.tied import TiedBlock

HEADS = ("mean", *predictive.HEADS)
BLOCKS = ("plain", "tied")


class MSA(FieldModel):
    """encoder: "shared" or "traditional"; head: "mean", or the law of each component
    (layers/heads.py): "gaussian", "mixture" or "quantile"; block: "plain", or "tied" for one block
    again and again."""

    context, learns, outputs = "slice", "gradient", "any"
    words = {"encoder": tuple(ENCODERS), "head": HEADS, "block": BLOCKS}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "shared",
        head: str = "mean",
        block: str = "plain",
        width: int = 12,
        heads: int = 2,
        layers: int = 3,
    ):
        super().__init__()
        self.head = head
        self.encoder = ENCODERS[encoder](x_dim, i_dim, width)
        if block == "tied":
            self.layers, self.passes = nn.ModuleList([TiedBlock(width, width, heads)]), layers
        else:
            self.layers, self.passes = (
                nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers)),
                1,
            )
        self.law = predictive.HEADS.get(head)
        numbers = 1 if self.law is None else self.law.numbers
        self.readout = mlp(width, width, width, o_dim * numbers)  # gamma

    def forward(self, batch: Batch) -> Prediction | predictive.Predictive:
        """Mean (or law) at every target, B T O; an empty context gives what the targets'
        positions alone suggest."""
        tokens = self.encoder(batch.context_x, batch.context_y, batch.target_x)
        mask = usable(torch.cat((batch.context_mask, batch.target_mask), 1))
        layers = [*self.layers] * self.passes
        for layer in layers[:-1]:
            tokens = layer(tokens, mask)
        values = self.readout(layers[-1](tokens, mask, last=batch.target_x.shape[1])).float()
        return Prediction(values) if self.law is None else self.law.predict(values)
