"""Neural processes whose context is one vector (Garnelo et al. 2018; document N, chapter 2), with a
spread: the conditional one (CNP), and the latent one, which draws whole functions.

r = mean of MLP([x, y]) over the context; the decoder MLP([x, r]) gives mean and standard deviation.
With a `latent`, r instead gives z ~ N(mu, s^2), s in (0.1, 1), which the decoder reads; a target's
law is the mixture over DRAWS values of z, and a sample has one z for all targets. It learns by the
evidence lower bound ("bound"), z of context and targets against z of the context alone, or by the
importance-weighted likelihood (Burda et al. 2016) of DRAWS values of z from the context
("weighted"). fields/models/cnp.py is the conditional one without a spread, as the thesis has it.
Shapes: B sets, T targets, S draws, Z latent, O values.
"""

import math

import torch
from torch import Tensor, nn

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers.average import masked_mean
from stages.layers.heads import Gaussian, Mixture, Predictive
from stages.layers.likelihoods import full, heteroscedastic
from stages.layers.mlp import mlp

DRAWS = 16
LATENTS = ("none", "bound", "weighted")


class Coherent(Mixture):
    """A mixture whose members are functions: a sample takes the same one at all targets."""

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """`count` independent draws: (count, B, T, O)."""
        sets, draws = self.means.shape[0], self.means.shape[-1]
        chosen = torch.randint(draws, (count, sets), generator=generator)
        which = chosen.to(self.means.device)[:, :, None, None, None]
        mean, scale = (
            part.expand(count, *part.shape).gather(
                -1, which.expand(*which.shape[:2], *part.shape[1:-1], 1)
            )[..., 0]
            for part in (self.means, self.scales)
        )
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype)
        return mean + scale * noise.to(mean.device)

    def joint(self, y: Tensor) -> Tensor:
        """The log-density of all targets of each set together, y (B, T, O): (B,)."""
        each = Gaussian(self.means, self.scales).log_prob(y[..., None]).double().sum((1, 2))
        return each.logsumexp(1) - math.log(each.shape[1])


class NeuralProcess(FieldModel):
    """latent: "none", or by what z is learned: "bound", "weighted"."""

    context, learns, outputs, head = "slice", "gradient", "any", "gaussian"
    words = {"latent": LATENTS}

    def __init__(
        self, x_dim: int, i_dim: int, o_dim: int, latent: str = "none", width: int = 64,
        layers: int = 2,
    ):  # fmt: skip
        super().__init__()
        self.latent, self.own_loss = latent, latent != "none"
        hidden = [width] * layers
        self.encoder = mlp(x_dim + i_dim, *hidden, width)
        self.decoder = mlp(x_dim + width, *hidden, 2 * o_dim)
        if self.own_loss:
            self.posterior = mlp(width, width, 2 * width)
            self.draws = nn.Buffer(torch.randn(DRAWS, width))

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O; an empty context has the vector 0."""
        told = self._vector(batch.context_x, batch.context_y, batch.context_mask)
        if not self.own_loss:
            return self._decoded(told[None], batch.target_x, one=True)
        law = self._law(told)
        return self._decoded(law.mean + law.scale * self.draws[:, None], batch.target_x)

    def loss(self, batch: Batch) -> Tensor:
        """What it learns by, a target: the negative bound, or the negative weighted likelihood."""
        y, mask = batch.target_y, batch.target_mask
        assert y is not None
        prior = self._law(self._vector(batch.context_x, batch.context_y, batch.context_mask))
        law, count = prior, DRAWS
        if self.latent == "bound":
            if batch.context_y.shape[2] != y.shape[2]:
                raise ValueError("z of the targets needs values like those of the context")
            everything = (
                torch.cat((batch.context_x, batch.target_x), 1),
                torch.cat((batch.context_y, y), 1),
                torch.cat((batch.context_mask, mask), 1),
            )
            law, count = self._law(self._vector(*everything)), 1
        drawn = law.mean + law.scale * torch.randn(
            count, *law.mean.shape, dtype=law.mean.dtype, device=law.mean.device
        )
        said = self._decoded(drawn, batch.target_x)
        assert isinstance(said, Mixture)
        each = Gaussian(said.means, said.scales).log_prob(y[..., None]).sum(2)
        whole = (each * mask[:, :, None]).sum(1)  # B S
        if self.latent == "weighted":
            gained = whole.logsumexp(1) - math.log(count)
        else:
            gained = whole[:, 0] - _divergence(law, prior).sum(1)
        return -(gained / mask.sum(1).clamp_min(1)).mean()

    def _vector(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """r: (B, H)."""
        return masked_mean(self.encoder(torch.cat((x, y), 2)), mask)

    def _law(self, told: Tensor) -> Gaussian:
        """Of z, given r."""
        mean, raw = self.posterior(told).chunk(2, -1)
        return Gaussian(mean, 0.1 + 0.9 * raw.sigmoid())

    def _decoded(self, latent: Tensor, x: Tensor, one: bool = False) -> Predictive:
        """The law at x (B, T, X) of each of the vectors (S, B, Z), all alike in weight."""
        places = x.expand(len(latent), -1, -1, -1)
        known = latent[:, :, None].expand(-1, -1, x.shape[1], -1)
        said = heteroscedastic(full(self.decoder(torch.cat((places, known), 3))).flatten(0, 1))
        means, scales = (part.unflatten(0, (len(latent), -1)) for part in (said.mean, said.scale))
        if one:
            return Gaussian(means[0], scales[0])
        means, scales = means.movedim(0, -1), scales.movedim(0, -1)
        return Coherent(torch.zeros_like(means), means, scales)


def _divergence(one: Gaussian, other: Gaussian) -> Tensor:
    """KL(one || other) of every component."""
    ratio = (one.scale / other.scale).square()
    apart = ((one.mean - other.mean) / other.scale).square()
    return 0.5 * (ratio + apart - 1 - ratio.log())
