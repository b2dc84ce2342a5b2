"""CNP, conditional neural process (Garnelo et al. 2018; thesis section 3.3.4, equations 3.14-3.16):
the whole context is one vector.

l = mean of the context's encodings; the answer is an MLP of (l, e_t). eta, a linear map of the two,
is the MLP's first map. The shared arm's MLP has one hidden layer, the traditional one's two, as in
the authors' public code: nothing else gives the counts asked for. conditioning "distance": l beside
e_t, which is what weighing by distance gives where there is one latent; "attention" (table C.5):
e_t + attention(e_t, l) instead of the concatenation. Parameters on wind (X=3, I=O=2), width 32 /
64 / 128: shared 6,594 / 25,474 / 100,098, traditional 7,746 / 29,826 / 116,994.
"""

import torch

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.attention import Attention
from stages.layers.average import masked_mean
from stages.layers.cross import CONDITIONINGS
from stages.layers.encoders import ENCODERS
from stages.layers.mlp import mlp


class CNP(FieldModel):
    """encoder: "shared" or "traditional"; conditioning: "distance" or "attention", which alone
    has `heads`."""

    context, learns, outputs = "slice", "gradient", "any"
    words = {"encoder": tuple(ENCODERS), "conditioning": CONDITIONINGS}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "shared",
        conditioning: str = "distance",
        width: int = 32,
        heads: int = 2,
    ):
        super().__init__()
        self.encoder = ENCODERS[encoder](x_dim, i_dim, width, kind=False)
        self.cross = Attention(width, heads) if conditioning == "attention" else None
        hidden = [width] * (1 if encoder == "shared" else 2)
        self.readout = mlp(width if self.cross else 2 * width, *hidden, o_dim)  # eta and gamma

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O; an empty context has the latent 0."""
        tokens = self.encoder(batch.context_x, batch.context_y, batch.target_x)
        context, target = tokens.split([batch.context_x.shape[1], batch.target_x.shape[1]], 1)
        latent = masked_mean(context, batch.context_mask)[:, None]
        if self.cross is None:
            return Prediction(
                self.readout(torch.cat((latent.expand_as(target), target), 2)).float()
            )
        one = torch.ones_like(latent[:, :, 0], dtype=torch.bool)
        return Prediction(self.readout(target + self.cross.read(target, latent, one)).float())
