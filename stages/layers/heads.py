"""Heads: what the last numbers of a network mean, one predictive distribution a target component.

A head says how many numbers a component takes (`numbers`) and turns them, side by side, into a
`Predictive`; it holds no parameters, so any field model takes any head. "gaussian": mean and
standard deviation (Nix and Weigend 1994). "mixture": MIXED Gaussians (Bishop 1994, mixture density
networks). "quantile": the values at LEVELS, never crossing, trained by the pinball loss (Koenker
and Bassett 1978); between them the density is flat, outside it falls off exponentially.
Shapes: B batch, T targets, O components, K Gaussians, Q levels, S samples. Standardised units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

FLOOR = 1e-3  # least standard deviation, or gap of two quantiles (about 0.01 m/s of wind)
MIXED = 3  # Gaussians of a mixture
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
LOG_ROOT = 0.5 * math.log(2 * math.pi)


@runtime_checkable
class Predictive(Protocol):
    """A distribution of every target component, components independent of each other."""

    @property
    def mean(self) -> Float[Tensor, "B T O"]: ...

    @property
    def scale(self) -> Float[Tensor, "B T O"]:
        """The standard deviation."""

    def log_prob(self, y: Float[Tensor, "*S B T O"]) -> Float[Tensor, "*S B T O"]:
        """The logarithm of the density at y."""

    def loss(self, y: Float[Tensor, "B T O"]) -> Float[Tensor, "B T O"]:
        """What training minimises: a proper score, least in the mean where the prediction is
        the law of y."""

    def sample(self, count: int, generator: torch.Generator) -> Float[Tensor, "S B T O"]:
        """`count` independent draws."""


@dataclass(frozen=True)
class Gaussian:
    """N(mean, scale^2)."""

    mean: Tensor  # B T O
    scale: Tensor  # B T O

    def log_prob(self, y: Tensor) -> Tensor:
        """The logarithm of the density at y."""
        z = (y - self.mean) / self.scale
        return -(0.5 * z.square() + self.scale.log() + LOG_ROOT)

    def loss(self, y: Tensor) -> Tensor:
        """Negative log-likelihood."""
        return -self.log_prob(y)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """`count` independent draws."""
        return self.mean + self.scale * _like(torch.randn, self.mean, count, generator)


@dataclass(frozen=True)
class Mixture:
    """K Gaussians, each with a weight; `logits` are the weights' logarithms up to a constant."""

    logits: Tensor  # B T O K
    means: Tensor  # B T O K
    scales: Tensor  # B T O K

    @cached_property
    def weights(self) -> Tensor:
        """B T O K, one in all."""
        return self.logits.softmax(-1)

    @property
    def mean(self) -> Tensor:
        """B T O."""
        return (self.weights * self.means).sum(-1)

    @property
    def scale(self) -> Tensor:
        """B T O: the spread within the Gaussians and between them."""
        apart = (self.means - self.mean[..., None]).square()
        return (self.weights * (self.scales.square() + apart)).sum(-1).sqrt()

    def log_prob(self, y: Tensor) -> Tensor:
        """The logarithm of the density at y."""
        each = Gaussian(self.means, self.scales).log_prob(y[..., None])
        return (self.logits.log_softmax(-1) + each).logsumexp(-1)

    def loss(self, y: Tensor) -> Tensor:
        """Negative log-likelihood."""
        return -self.log_prob(y)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """`count` independent draws: a Gaussian by its weight, then from it."""
        chance = _like(torch.rand, self.mean, count, generator)[..., None]
        which = (self.weights.cumsum(-1) < chance).sum(-1, keepdim=True)
        which = which.clamp_max(self.means.shape[-1] - 1)
        mean, scale = (
            part.expand(count, *part.shape).gather(-1, which)[..., 0]
            for part in (self.means, self.scales)
        )
        return mean + scale * _like(torch.randn, mean[0], count, generator)


@dataclass(frozen=True)
class Quantiles:
    """The values at rising levels. Flat between them; outside, an exponential tail of the
    missing mass whose density meets that of the nearest part."""

    values: Tensor  # B T O Q, rising
    levels: tuple[float, ...] = LEVELS

    @cached_property
    def _masses(self) -> Tensor:
        """Q - 1: what lies between neighbouring levels."""
        levels = self.values.new_tensor(self.levels)
        return levels[1:] - levels[:-1]

    @cached_property
    def _densities(self) -> Tensor:
        """B T O (Q - 1)."""
        return self._masses / (self.values[..., 1:] - self.values[..., :-1])

    @cached_property
    def _lengths(self) -> tuple[Tensor, Tensor]:
        """Of both tails (B T O): mass over density where they begin."""
        first, last = self._densities[..., 0], self._densities[..., -1]
        return self.levels[0] / first, (1 - self.levels[-1]) / last

    @property
    def mean(self) -> Tensor:
        """B T O."""
        low, high = self.values[..., :-1], self.values[..., 1:]
        below, above = self._lengths
        return (
            (self._masses * (low + high) / 2).sum(-1)
            + self.levels[0] * (self.values[..., 0] - below)
            + (1 - self.levels[-1]) * (self.values[..., -1] + above)
        )

    @property
    def scale(self) -> Tensor:
        """B T O."""
        mean = self.mean
        low, high = (
            part - mean[..., None] for part in (self.values[..., :-1], self.values[..., 1:])
        )
        below, above = self._lengths
        left, right = self.values[..., 0] - mean - below, self.values[..., -1] - mean + above
        return (
            (self._masses * (low.square() + low * high + high.square()) / 3).sum(-1)
            + self.levels[0] * (left.square() + below.square())
            + (1 - self.levels[-1]) * (right.square() + above.square())
        ).sqrt()

    def log_prob(self, y: Tensor) -> Tensor:
        """The logarithm of the density at y."""
        part = (y[..., None] >= self.values).sum(-1)  # 0: below the first, Q: above the last
        inside = (part - 1).clamp(0, len(self.levels) - 2)
        logs = self._densities.log().expand(*y.shape, -1).gather(-1, inside[..., None])[..., 0]
        below, above = self._lengths
        beyond = (self.values[..., 0] - y) / below, (y - self.values[..., -1]) / above
        return logs - functional.relu(beyond[0]) - functional.relu(beyond[1])

    def loss(self, y: Tensor) -> Tensor:
        """Twice the pinball loss, in the mean over the levels."""
        error = y[..., None] - self.values
        levels = self.values.new_tensor(self.levels)
        return 2 * torch.maximum(levels * error, (levels - 1) * error).mean(-1)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """`count` independent draws: the quantile at a uniform level."""
        first, last = self.values[..., 0], self.values[..., -1]
        chance = _like(torch.rand, first, count, generator).clamp(1e-7, 1 - 1e-7)
        levels = self.values.new_tensor(self.levels)
        part = (torch.searchsorted(levels, chance, right=True) - 1).clamp(0, len(levels) - 2)
        low, density = (
            whole.expand(count, *whole.shape).gather(-1, part[..., None])[..., 0]
            for whole in (self.values, self._densities)
        )
        within = low + (chance - levels[part]) / density
        below, above = self._lengths
        left = first + below * (chance / levels[0]).log()
        right = last - above * ((1 - chance) / (1 - levels[-1])).log()
        outside = torch.where(chance < levels[0], left, right)
        return torch.where((chance >= levels[0]) & (chance <= levels[-1]), within, outside)


def _like(
    draw: Callable[..., Tensor], tensor: Tensor, count: int, generator: torch.Generator
) -> Tensor:
    return draw(
        (count, *tensor.shape), dtype=tensor.dtype, device=tensor.device, generator=generator
    )


def gaussian(numbers: Float[Tensor, "B T N"]) -> Gaussian:
    """All means, then all raw scales: N = 2 O."""
    mean, raw = numbers.chunk(2, -1)
    return Gaussian(mean, functional.softplus(raw) + FLOOR)


def mixture(numbers: Float[Tensor, "B T N"]) -> Mixture:
    """All logits, all means, all raw scales: N = 3 K O. Means start apart, lest the Gaussians
    should all learn the same."""
    logits, means, raw = (part.unflatten(-1, (-1, MIXED)) for part in numbers.chunk(3, -1))
    apart = torch.linspace(-1, 1, MIXED, dtype=means.dtype, device=means.device)
    return Mixture(logits, means + apart, functional.softplus(raw) + FLOOR)


def quantile(numbers: Float[Tensor, "B T N"]) -> Quantiles:
    """Of each component the middle value and the raw gaps on both sides, N = Q O."""
    parts = numbers.unflatten(-1, (-1, len(LEVELS)))
    middle = len(LEVELS) // 2
    gaps = functional.softplus(parts[..., 1:]) + FLOOR
    down, up = gaps[..., :middle].flip(-1).cumsum(-1).flip(-1), gaps[..., middle:].cumsum(-1)
    center = parts[..., :1]
    return Quantiles(torch.cat((center - down, center, center + up), -1))


class Head(NamedTuple):
    """How many numbers a component takes, and what they mean."""

    numbers: int
    predict: Callable[[Tensor], Predictive]


HEADS = {
    "gaussian": Head(2, gaussian),
    "mixture": Head(3 * MIXED, mixture),
    "quantile": Head(len(LEVELS), quantile),
}
