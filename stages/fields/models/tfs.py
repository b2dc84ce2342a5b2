"""TFS, encoder and decoder (thesis section 3.3.4, equations 3.7-3.9): targets read a context that
was encoded without them.

`encoder_layers` post-norm layers let context tokens attend to each other; in each of
`decoder_layers` targets attend to all targets and to the context. No causal mask, no positions in a
sequence. Encoders and gamma are MSA's. conditioning "distance" (section 3.5.1, equation C.4) puts
the mean of the context's latents, weighed by distance, beside the target's encoding, and an MLP
with 1 + decoder_layers hidden layers takes the decoder's place.

Parameters on wind (X=3, I=O=2), h = width: encoder layers 8h^2 + 11h, decoder layers 12h^2 + 17h,
encoders and readout as MSA's. 5,582 / 20,954 / 96,482 for (h, heads, encoder, decoder) = (12, 2, 2,
1), (24, 2, 2, 1), (32, 8, 6, 3), with either encoder.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.attention import EncoderLayer, usable
from stages.layers.cross import CONDITIONINGS, DecoderLayer, Distance
from stages.layers.encoders import ENCODERS
from stages.layers.mlp import mlp


class TFS(FieldModel):
    """encoder: "shared" or "traditional"; conditioning: "attention" or "distance"."""

    if TYPE_CHECKING:
        decoder: Any

    context, learns, outputs = "slice", "gradient", "any"
    limits = {"encoder_layers": 256, "decoder_layers": 64}
    words = {"encoder": tuple(ENCODERS), "conditioning": CONDITIONINGS}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "shared",
        conditioning: str = "attention",
        width: int = 12,
        heads: int = 2,
        encoder_layers: int = 2,
        decoder_layers: int = 1,
    ):
        super().__init__()
        self.encoder = ENCODERS[encoder](x_dim, i_dim, width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(encoder_layers))
        if conditioning == "attention":
            self.decoder = nn.ModuleList(DecoderLayer(width, heads) for _ in range(decoder_layers))
            self.readout = mlp(width, width, width, o_dim)  # gamma
        else:
            self.decoder = Distance()
            self.readout = mlp(2 * width, *[width] * (1 + decoder_layers), o_dim)

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O; an empty context gives what the targets' positions alone
        suggest."""
        tokens = self.encoder(batch.context_x, batch.context_y, batch.target_x)
        memory, tokens = tokens.split([batch.context_x.shape[1], batch.target_x.shape[1]], 1)
        if memory.shape[1]:
            mask = usable(batch.context_mask)
            for layer in self.layers:
                memory = layer(memory, mask)
        if isinstance(self.decoder, Distance):
            read = self.decoder(batch.target_x, batch.context_x, memory, batch.context_mask)
            return Prediction(self.readout(torch.cat((read, tokens), 2)).float())
        mask = usable(batch.target_mask)
        for layer in self.decoder:
            tokens = layer(tokens, mask, memory, batch.context_mask)
        return Prediction(self.readout(tokens).float())
