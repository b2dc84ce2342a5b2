"""Nearest TNP: attention of every target to the past winds nearest to it, found exactly by the
causal neighbour search (our own: thesis chapter 1's neighbours as engine of document G's K-nearest
cross-attention, section 3.4.2).

A target reads its `places` neighbours and nothing else, so the context may have millions of points:
time and memory grow with targets x places, the search apart. A neighbour's token is MLP([x_k - x,
y_k]), a difference of places and times, so that a shift of all changes only what the target's own
place tells; the layers are a TNP's that reads (layers/processes.py). Parameters at X=4, I=O=2,
width h, L layers: 4h^2 + 20h + 4 and (6h^2 + 10h) L. Places: layers/local.py; standardised winds.
"""

import torch
from torch import nn

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers import likelihoods
from stages.layers.attention import Attention
from stages.layers.heads import Predictive
from stages.layers.mlp import mlp
from stages.layers.processes import Layer


class NearestTNP(FieldModel):
    """places: neighbours that a target reads; head: the law of each component."""

    context, learns, outputs = "neighbours", "gradient", "any"
    limits = {"places": 4096}
    words = {"head": tuple(likelihoods.HEADS)}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        places: int = 32,
        head: str = "gaussian",
        width: int = 32,
        heads: int = 4,
        layers: int = 2,
    ):
        super().__init__()
        self.places, self.head, self.law = places, head, likelihoods.HEADS[head]
        self.near = mlp(x_dim + i_dim, width, width)
        self.own = mlp(x_dim, width, width)
        self.layers = nn.ModuleList(Layer(width, Attention(width, heads)) for _ in range(layers))
        self.readout = mlp(width, width, width, o_dim * self.law.numbers)

    def metric(self, target_x: torch.Tensor) -> None:
        """None: neighbours of the targets (M, 4) are chosen under the project's own metric."""
        return

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O; an empty context gives what the place alone suggests."""
        sets, count = batch.target_x.shape[:2]
        gap = batch.context_x[:, None] - batch.target_x[:, :, None]  # B T C X
        value = batch.context_y[:, None].expand(-1, count, -1, -1)
        real = batch.context_mask[:, None].expand(-1, count, -1).flatten(0, 1)
        told = torch.cat((gap, value), 3).flatten(0, 1)
        memory = self.near(told.masked_fill(~real[..., None], 0))
        target = self.own(batch.target_x.flatten(0, 1)[:, None])
        for layer in self.layers:
            target = layer(target, memory, real)
        numbers = likelihoods.full(self.readout(target))
        return self.law.predict(numbers.reshape(sets, count, numbers.shape[-1]))
