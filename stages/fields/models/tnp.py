"""TNP, transformer neural process (Nguyen and Grover 2022; document N, section 4.2), with attention
or with what is linear in the points: LinearTNP (section 7.3) and HyperMixNP (section 7.4).

Tokens are MLP([x, y, flag]), flag 0 of a context point and 1 of a target, whose y is 0. In each
layer the context mixes among itself and the targets read it, by the same weights (the efficient
form of section 4.2.1). An MLP reads the law of each component off the target tokens. Parameters for
X=I=O=1, gaussian head, width h, L layers, `attention`: encoder and head 4h^2 + 10h + 2, layers
(6h^2 + 10h) L.
"""

from torch import nn

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers import likelihoods
from stages.layers.heads import Predictive
from stages.layers.mlp import mlp
from stages.layers.processes import MIXINGS, Layer, asked, context_features


class TNP(FieldModel):
    """mixing: "attention", "linear" or "hyper"; head: the law of each component."""

    context, learns, outputs = "slice", "gradient", "any"
    words = {"mixing": tuple(MIXINGS), "head": tuple(likelihoods.HEADS)}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        mixing: str = "attention",
        head: str = "gaussian",
        width: int = 32,
        heads: int = 4,
        layers: int = 3,
    ):
        super().__init__()
        self.head, self.law, self.i_dim = head, likelihoods.HEADS[head], i_dim
        self.encoder = mlp(x_dim + i_dim + 1, width, width, width)
        self.layers = nn.ModuleList(
            Layer(width, MIXINGS[mixing](width, heads)) for _ in range(layers)
        )
        self.readout = mlp(width, width, width, o_dim * self.law.numbers)

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O; an empty context gives what the place alone suggests."""
        context = self.encoder(context_features(batch.context_y, batch.context_x))
        target = self.encoder(asked(batch.target_x, self.i_dim, batch.target_x))
        for layer in self.layers:
            context = layer(context, context, batch.context_mask)
            target = layer(target, context, batch.context_mask)
        return self.law.predict(likelihoods.full(self.readout(target)))
