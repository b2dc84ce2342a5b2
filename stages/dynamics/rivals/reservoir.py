"""Reservoirs: random networks whose readout alone is learned, by ridge regression (Jaeger and Haas
2004); one that sees everything, or one a group of neighbouring sites, all with the same weights and
the same readout (Pathak et al. 2018), since the systems look alike from every site.

A reservoir r moves as r <- (1 - a) r + a tanh(A r + U u + s) with fixed sparse A, dense U; the
readout is linear in r (every other unit squared), u and 1, and says the next u. Learned from inputs
with a little noise, it is steady when it is fed with itself. Shapes: R units, B runs, G groups of P
sites, W sites seen by a group, O = G P.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from stages.dynamics.rivals.contract import Array, free_run
from stages.dynamics.rivals.ridge import solve

DEGREE = 6  # inputs of a unit from others, in the mean
PART = 16  # times whose rows are held together
POWER = 60  # steps of the power iteration that finds the largest eigenvalue's size


@dataclass
class Reservoirs:
    """units R, group P (0: one group of all), overlap: sites seen beyond a group's on each side;
    radius of A's spectrum, reach of U, shift: reach of s, leak a, penalty of the ridge, noise: its
    standard deviation while learning, washout: times dropped, thin: every n-th is learned from."""

    rng: np.random.Generator
    units: int
    group: int
    overlap: int
    radius: float
    reach: float
    shift: float
    leak: float
    penalty: float
    noise: float
    washout: int
    thin: int
    inner: sparse.csr_array = field(init=False)
    enter: Array = field(init=False)
    offset: Array = field(init=False)
    readout: Array = field(init=False)

    def train(self, series: Array) -> None:
        """Learn the readout from members (E, T, O)."""
        self._draw(series.shape[2])
        noisy = series + self.noise * self.rng.standard_normal(series.shape)
        self.readout = solve(self._rows(noisy, series), self.penalty)

    def forecast(self, context: Array, steps: int) -> Array:
        """Contexts (B, C, O) drive the reservoirs, which then go on alone: (B, H, O)."""
        state = self._still(context)
        for time in range(context.shape[1] - 1):
            state = self._move(state, context[:, time])
        held = [state]

        def step(value: Array) -> Array:
            held[0] = self._move(held[0], value)
            said: Array = self._features(held[0], value) @ self.readout
            return said.reshape(value.shape)

        return free_run(context[:, -1], step, steps)

    def _draw(self, observed: int) -> None:
        self.group = self.group or observed
        seen = min(observed, self.group + 2 * self.overlap)
        self.seen = np.arange(-((seen - self.group) // 2), seen - (seen - self.group) // 2)
        rng, units = self.rng, self.units
        rows = np.repeat(np.arange(units), DEGREE)
        columns = rng.integers(units, size=units * DEGREE)
        values = rng.uniform(-1.0, 1.0, units * DEGREE)
        inner = sparse.csr_array((values, (rows, columns)), shape=(units, units))
        self.inner = inner * (self.radius / _size(inner, rng.standard_normal(units)))
        self.enter = self.reach * rng.uniform(-1.0, 1.0, (units, seen))
        self.offset = self.shift * rng.uniform(-1.0, 1.0, (units, 1))

    def _windows(self, value: Array) -> Array:
        """What each group sees of values (B, O): (W, B G)."""
        starts = np.arange(0, value.shape[1], self.group)
        places = (starts[:, None] + self.seen) % value.shape[1]
        return value[:, places].reshape(-1, len(self.seen)).T

    def _still(self, context: Array) -> Array:
        """Reservoirs at rest (R, B G)."""
        return np.zeros((self.units, len(context) * (context.shape[2] // self.group)))

    def _move(self, state: Array, value: Array) -> Array:
        """Reservoirs (R, B G) one step on, having seen values (B, O)."""
        drive = self.inner @ state
        drive += self.enter @ self._windows(value)
        drive += self.offset
        np.tanh(drive, out=drive)
        if self.leak < 1.0:
            drive *= self.leak
            drive += (1.0 - self.leak) * state
        return drive

    def _features(self, state: Array, value: Array) -> Array:
        """Rows (B G, F) of the regression."""
        mixed = state.copy()
        mixed[1::2] *= state[1::2]
        ones = np.ones((1, state.shape[1]))
        return np.concatenate((ones, self._windows(value), mixed)).T

    def _rows(self, noisy: Array, series: Array) -> Iterator[tuple[Array, Array]]:
        """The regression's rows: PART times of all members at once."""
        state, times = self._still(noisy), range(series.shape[1] - 1)
        held: list[tuple[Array, Array]] = []
        for time in times:
            state = self._move(state, noisy[:, time])
            if time >= self.washout and time % self.thin == 0:
                ahead = series[:, time + 1].reshape(-1, self.group)
                held.append((self._features(state, noisy[:, time]), ahead))
            if held and (len(held) == PART or time == times[-1]):
                features, outputs = (np.concatenate(part) for part in zip(*held, strict=True))
                yield features, outputs
                held = []


def _size(matrix: sparse.csr_array, start: Array) -> float:
    """The spectral radius, nearly: the mean growth of a vector over POWER steps."""
    vector, grown = start, 0.0
    for step in range(2 * POWER):
        vector = matrix @ vector
        norm = float(np.sqrt((vector**2).sum()))
        vector /= norm
        grown += np.log(norm) if step >= POWER else 0.0
    return float(np.exp(grown / POWER))
