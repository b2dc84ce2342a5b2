"""What every model of tosses reads and returns. Shapes: B tosses, K coins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from stages.contracts import Model


@dataclass(frozen=True)
class Batch:
    """Tosses: which coin (whole numbers from 0 to K - 1), and whether it showed heads."""

    coin: Tensor  # B
    heads: Tensor  # B, 0.0 or 1.0


@dataclass(frozen=True)
class Prediction:
    """The chance of heads at each toss."""

    chance: Tensor  # B

    @property
    def mean(self) -> Tensor:
        """The expected number of heads (B,)."""
        return self.chance

    def log_prob(self, heads: Tensor) -> Tensor:
        """The logarithm of the chance of what was seen (B,), nats."""
        return torch.where(heads > 0.5, self.chance, 1 - self.chance).log()

    def sample(self, generator: torch.Generator) -> Tensor:
        """Heads (1.0) or tails (0.0), drawn (B,)."""
        return torch.bernoulli(self.chance, generator=generator)


class ToyModel(Model):
    """A model of tosses of K coins: `forward(batch: Batch) -> Prediction`."""

    limits: ClassVar[Mapping[str, int]] = {"coins": 1000}
