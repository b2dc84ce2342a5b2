"""Pseudo-token neural processes (document N, section 7.2): M latent tokens stand between context
and targets, so that time and memory are linear in the points.

"perceiver" (LBANP, Feng et al. 2023): in each layer the latents read the context's encodings, then
each other; targets read the latents. "induced" (IST, Lee et al. 2019): the latents read the
context, the context reads them, targets read them. `equivariant`: attention by differences of
positions (layers/relative.py) and tokens without them; a latent lies at the mean of the context's
positions plus a place of its own, learned, so that it moves with the points.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers import likelihoods
from stages.layers.attention import Attention
from stages.layers.average import masked_mean
from stages.layers.heads import Predictive
from stages.layers.mlp import mlp
from stages.layers.processes import Layer, asked, context_features
from stages.layers.relative import RelativeAttention

SCHEMES = ("perceiver", "induced")


class PseudoTNP(FieldModel):
    """scheme: "perceiver" or "induced"; equivariant = 1: to translations; `latents` = M; hidden: of
    the pairs' MLP where it is; head: the law of each component."""

    context, learns, outputs = "slice", "gradient", "any"
    limits = {"latents": 65536}
    words = {"scheme": SCHEMES, "equivariant": (0, 1), "head": tuple(likelihoods.HEADS)}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        scheme: str = "perceiver",
        equivariant: int = 0,
        head: str = "gaussian",
        latents: int = 16,
        width: int = 32,
        heads: int = 4,
        hidden: int = 16,
        layers: int = 3,
    ):
        super().__init__()
        self.head, self.law, self.i_dim = head, likelihoods.HEADS[head], i_dim
        self.scheme = scheme
        self.encoder = mlp((0 if equivariant else x_dim) + i_dim + 1, width, width, width)
        self.latents = nn.Parameter(torch.randn(latents, width))
        self.places = nn.Parameter(torch.randn(latents, x_dim)) if equivariant else None

        def stack(count: int, mixing: Callable[[], nn.Module]) -> nn.ModuleList:
            return nn.ModuleList(Layer(width, mixing()) for _ in range(count))

        def mixing() -> nn.Module:
            if equivariant:
                return RelativeAttention(x_dim, width, heads, hidden, "post")
            return Attention(width, heads)

        self.gather, self.read = stack(layers, mixing), stack(layers, mixing)
        # the last layer's context would be read by nobody
        self.mix = stack(layers if scheme == "perceiver" else layers - 1, mixing)
        self.readout = mlp(width, width, width, o_dim * self.law.numbers)

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O; latents that read nothing of an empty context answer as
        they are."""
        x, targets, known = batch.context_x, batch.target_x, batch.context_mask
        latents = self.latents.expand(len(x), -1, -1)
        real = torch.ones_like(latents[:, :, 0], dtype=torch.bool)
        at: Tensor | None = None
        if self.places is None:
            context = self.encoder(context_features(batch.context_y, x))
            target = self.encoder(asked(targets, self.i_dim, targets))
        else:
            context = self.encoder(context_features(batch.context_y))
            target = self.encoder(asked(targets, self.i_dim))
            at = self.places + _middle(batch)[:, None]

        def pair(one: Tensor | None, other: Tensor | None) -> tuple[Tensor, Tensor] | None:
            return None if at is None or one is None or other is None else (one, other)

        for number, (gather, read) in enumerate(zip(self.gather, self.read, strict=True)):
            latents = gather(latents, context, known, pair(at, x))
            if self.scheme == "perceiver":
                latents = self.mix[number](latents, latents, real, pair(at, at))
            elif number < len(self.mix):
                context = self.mix[number](context, latents, real, pair(x, at))
            target = read(target, latents, real, pair(targets, at))
        return self.law.predict(likelihoods.full(self.readout(target)))


def _middle(batch: Batch) -> Tensor:
    """The mean of the context's positions, of the targets' where there is no context: (B, X)."""
    alone = ~batch.context_mask.any(1, keepdim=True)
    if not batch.context_x.shape[1]:
        return masked_mean(batch.target_x, batch.target_mask)
    return torch.where(
        alone,
        masked_mean(batch.target_x, batch.target_mask),
        masked_mean(batch.context_x, batch.context_mask),
    )
