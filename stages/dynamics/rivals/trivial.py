"""What no learning reaches: the last observation for good, and the mean of the attractor."""

from dataclasses import dataclass, field

import numpy as np

from stages.dynamics.rivals.contract import Array


@dataclass
class Persistence:
    """Nothing changes."""

    def train(self, series: Array) -> None:
        """There is nothing to learn."""

    def forecast(self, context: Array, steps: int) -> Array:
        """The last observation (B, H, O)."""
        return np.repeat(context[:, -1:], steps, 1)


@dataclass
class Mean:
    """The mean over the training members and times."""

    mean: Array = field(init=False)

    def train(self, series: Array) -> None:
        """Learn from members (E, T, O)."""
        self.mean = series.mean((0, 1))

    def forecast(self, context: Array, steps: int) -> Array:
        """The same everywhere (B, H, O)."""
        return np.broadcast_to(self.mean, (len(context), steps, len(self.mean))).copy()
