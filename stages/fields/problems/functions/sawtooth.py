"""Sawtooth functions (document N, sections 5.1.2, 6.1.2 and 6.1.3).

N's equation 5.1.3 prints a wave as high as its period is long, without a phase; its public code
draws the wave below.
f(x) = (frequency (direction . x - offset)) mod 1 + noise, frequency uniform, offset uniform over a
period, direction of unit length: any ("full"), or one of the diagonals ("restricted", in one
dimension left or right). Nobody forecasts better on average than who knows the function: N(f(x),
noise^2), whose expected log-density is -ln noise - 1.419. Shapes: S tasks, X axes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stages.fields.problems.functions.plans import Array, Kept, Layout, Tasks, Training

DIRECTIONS = ("full", "restricted")


@dataclass(frozen=True)
class Sawtooth:
    """Tasks of sawtooth functions: frequencies from `low` to `high`, `noise` a standard deviation,
    `directions` of DIRECTIONS."""

    low: float
    high: float
    noise: float
    directions: str
    layout: Layout

    def directed(self, tasks: int, rng: np.random.Generator) -> Array:
        """Unit vectors (S, X)."""
        drawn = rng.standard_normal((tasks, self.layout.axes))
        drawn = np.sign(drawn) if self.directions == "restricted" else drawn
        found = drawn / np.sqrt((drawn * drawn).sum(1, keepdims=True))
        return np.asarray(found)

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream; with the law of who knows the function where they are kept."""
        rng, kept = source.rng(), isinstance(source, Kept)
        frequency = rng.uniform(self.low, self.high, tasks)
        told = {"frequency": frequency, "offset": rng.uniform(0, 1, tasks) / frequency}
        direction = self.directed(tasks, rng)
        told |= {f"direction_{axis}": column for axis, column in enumerate(direction.T)}
        x, real, targets = self.layout.drawn(tasks, rng, not kept)
        noise = self.noise * rng.standard_normal((tasks, x.shape[1] + targets.shape[1]))
        y = (self.values(told, x) + noise[:, : x.shape[1]]) * real
        truth = self.values(told, targets)
        asked = truth + noise[:, x.shape[1] :]
        exact = self.exact(told, x, y, real, targets) if kept else (None, None)
        return Tasks(x, y[..., None], real, targets, asked[..., None], told, *exact)

    def values(self, function: Mapping[str, Array], x: Array) -> Array:
        """f at places (S, N, X), without noise: (S, N)."""
        axes = range(self.layout.axes)
        direction = np.stack([function[f"direction_{axis}"] for axis in axes], 1)
        along = np.einsum("snx,sx->sn", x, direction) - function["offset"][:, None]
        return np.asarray((function["frequency"][:, None] * along) % 1.0)

    def exact(
        self, function: Mapping[str, Array], x: Array, y: Array, real: Array, targets: Array
    ) -> tuple[Array, Array]:
        """Mean and standard deviation (S, T) at targets for who knows the function."""
        mean = self.values(function, targets)
        return mean, np.full_like(mean, self.noise)

    @property
    def prior(self) -> tuple[float, float]:
        """Mean and standard deviation of a value of which nothing is known: uniform, with noise."""
        return 0.5, float(np.sqrt(1 / 12 + self.noise**2))
