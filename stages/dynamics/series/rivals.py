"""What forecasts series without gradients: persistence, the mean, yesterday's values, a linear
autoregression of all columns on all, and one reservoir.

Each is a rival as systems have them (rivals/contract.py): trained on members (E, T, O), run freely
from contexts (B, C, O).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from stages import seeds
from stages.dynamics.rivals.contract import Array, Rival, free_run
from stages.dynamics.rivals.reservoir import Reservoirs
from stages.dynamics.rivals.ridge import solve
from stages.dynamics.rivals.trivial import Mean, Persistence
from stages.dynamics.series.settings import SERIES, Rules

NAMES = ("persistence", "mean", "yesterday", "linear", "reservoir")
PART = 2000  # rows of the regression held together


@dataclass
class Yesterday:
    """Each value is that of `period` rows before: the last given day over and over."""

    period: int

    def train(self, series: Array) -> None:
        """There is nothing to learn."""

    def forecast(self, context: Array, steps: int) -> Array:
        """(B, H, O)."""
        day = context[:, -self.period :]
        found: Array = day[:, np.arange(steps) % self.period]
        return found


@dataclass
class Autoregression:
    """How far each column moves, by ridge regression on the last `delays` rows of all columns."""

    delays: int
    penalty: float
    weights: Array = field(init=False)

    def train(self, series: Array) -> None:
        """Learn from members (E, T, O)."""
        self.weights = solve(self._rows(series), self.penalty)

    def forecast(self, context: Array, steps: int) -> Array:
        """Go on from contexts (B, C, O): (B, H, O)."""
        held = list(np.moveaxis(context[:, : -self.delays - 1 : -1], 1, 0))  # newest first

        def step(value: Array) -> Array:
            held[0] = value
            moved: Array = self._features(np.stack(held, 1)) @ self.weights
            held.insert(0, value)
            held.pop()
            return value + moved

        return free_run(context[:, -1], step, steps)

    def _features(self, window: Array) -> Array:
        """Rows (N, 1 + K O) of windows (N, K, O), the newest first."""
        return np.concatenate((np.ones((len(window), 1)), window.reshape(len(window), -1)), 1)

    def _rows(self, series: Array) -> Iterator[tuple[Array, Array]]:
        last = np.arange(self.delays - 1, series.shape[1] - 1)
        back = np.arange(self.delays)
        for one in series:
            for first in range(0, len(last), PART):
                now = last[first : first + PART]
                yield self._features(one[now[:, None] - back]), one[now + 1] - one[now]


def build(name: str, told: Rules, period: int, seed: int) -> Rival:
    """A rival that has not learned yet; `period`: rows of a day, 1 where a row is a day or more."""
    if name == "persistence":
        return Persistence()
    if name == "mean":
        return Mean()
    if name == "yesterday":
        return Yesterday(period)
    if name == "linear":
        return Autoregression(**told.linear.model_dump())
    rng = seeds.stream(seed, SERIES, "rival", name)
    return Reservoirs(rng, **told.reservoir.model_dump())
