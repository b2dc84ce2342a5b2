"""Regressions on the last observations of neighbouring sites, all sites alike: linear
autoregression, and the next-generation reservoir, which has all products of two of them, too
(Gauthier et al. 2021; made local after Barbosa and Gauthier 2022).

Ridge regression of how far a site moves. Shapes: N windows, K delays, O sites, W sites seen by one
(itself and `reach` on each side), F features.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from stages.dynamics.rivals.contract import Array, free_run
from stages.dynamics.rivals.ridge import solve

PART = 4000  # windows times sites whose rows are held together


@dataclass
class Local:
    """delays K, `gap` times apart; reach; products: whether they are features; rows: windows that
    are learned from, at most; penalty; noise: standard deviation of the inputs' while learning."""

    rng: np.random.Generator
    products: bool
    delays: int
    gap: int
    reach: int
    rows: int
    penalty: float
    noise: float
    weights: Array = field(init=False)

    def train(self, series: Array) -> None:
        """Learn from members (E, T, O)."""
        self.weights = solve(self._rows(series), self.penalty)

    def forecast(self, context: Array, steps: int) -> Array:
        """Go on from contexts (B, C, O): (B, H, O)."""
        held = [context[:, -1 - back] for back in range(self._behind + 1)]  # newest first

        def step(value: Array) -> Array:
            held.insert(0, value)
            held.pop()
            window = np.stack(held[:: self.gap], 1)
            moved: Array = self._features(window) @ self.weights
            return value + moved[..., 0]

        held.append(held[-1])
        held.pop(0)
        return free_run(context[:, -1], step, steps)

    @property
    def _behind(self) -> int:
        return (self.delays - 1) * self.gap

    def _features(self, window: Array) -> Array:
        """Features (N, O, F) of windows (N, K, O), the newest delay first."""
        sites = window.shape[2]
        seen = (np.arange(sites)[:, None] + np.arange(-self.reach, self.reach + 1)) % sites
        near = window[:, :, seen].transpose(0, 2, 1, 3).reshape(len(window), sites, -1)
        parts = [np.ones((*near.shape[:2], 1)), near]
        if self.products:
            one, other = np.triu_indices(near.shape[2])
            parts.append(near[..., one] * near[..., other])
        return np.concatenate(parts, 2)

    def _rows(self, series: Array) -> Iterator[tuple[Array, Array]]:
        """The regression's rows, in parts."""
        members, times, sites = series.shape
        last = np.arange(self._behind, times - 1)
        last = last[:: max(1, -(-len(last) * members // self.rows))]
        count = max(1, PART // (members * sites))
        for first in range(0, len(last), count):
            now = last[first : first + count]
            back = now[:, None] - self.gap * np.arange(self.delays)
            window = series[:, back].reshape(-1, self.delays, sites)
            window = window + self.noise * self.rng.standard_normal(window.shape)
            moved = series[:, now + 1].reshape(-1, sites) - window[:, 0]
            features = self._features(window)
            yield features.reshape(-1, features.shape[2]), moved.reshape(-1, 1)
