"""The Kuramoto-Sivashinsky equation u_t = -u_xxxx - u_xx - u u_x on a periodic domain of length L,
D equidistant points (document R, equation 43; the end point is the first one again).

Fourier in space without dealiasing, and in time the exponential Runge-Kutta scheme of fourth order
(ETDRK4: Cox and Matthews 2002, its coefficients by contour integrals, Kassam and Trefethen 2005).
float64. Shapes: E members, D points, M = D / 2 + 1 modes; a state is (D, E), as of every system.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

Array = np.ndarray
CONTOUR = 32  # points of the circle around each mode's rate


@dataclass(frozen=True)
class Scheme:
    """ETDRK4's coefficients of one step length, each (M,)."""

    whole: Array
    half: Array
    inner: Array
    first: Array
    middle: Array
    last: Array


@dataclass(frozen=True)
class Kuramoto:
    """The domain's length L and its points D."""

    length: float
    points: int

    @property
    def size(self) -> int:
        """D, the numbers of a state."""
        return self.points

    @property
    def observed(self) -> int:
        """All of them are observed."""
        return self.points

    def waves(self) -> Array:
        """Wave numbers (M,)."""
        return 2.0 * np.pi / self.length * np.arange(self.points // 2 + 1)

    def _slopes(self) -> Array:
        """i k (M,) of a first derivative, which the highest mode does not have."""
        waves = self.waves()
        waves[-1] = 0.0
        return 1j * waves

    def scheme(self, dt: float) -> Scheme:
        """The coefficients of a step."""
        return _scheme(self, dt)

    def _bend(self, modes: Array) -> Array:
        """Modes of -u u_x, (E, M) -> (E, M)."""
        u = np.fft.irfft(modes, self.points, axis=1)
        return (-0.5 * self._slopes()) * np.fft.rfft(u * u, axis=1)

    def _bend_tangent(self, modes: Array, along: Array) -> Array:
        """The derivative of `_bend` at modes along others."""
        u, v = (np.fft.irfft(one, self.points, axis=1) for one in (modes, along))
        return -self._slopes() * np.fft.rfft(u * v, axis=1)

    def step(self, state: Array, dt: float) -> Array:
        """States (D, E) after one step."""
        s = self.scheme(dt)
        v = np.fft.rfft(state.T, axis=1)
        n = self._bend(v)
        a = s.half * v + s.inner * n
        na = self._bend(a)
        b = s.half * v + s.inner * na
        nb = self._bend(b)
        c = s.half * a + s.inner * (2.0 * nb - n)
        nc = self._bend(c)
        modes = s.whole * v + s.first * n + s.middle * (na + nb) + s.last * nc
        return np.fft.irfft(modes, self.points, axis=1).T

    def step_tangent(self, state: Array, along: Array, dt: float) -> tuple[Array, Array]:
        """`step`, and directions (D, E) carried by its exact derivative."""
        s = self.scheme(dt)
        v, w = np.fft.rfft(state.T, axis=1), np.fft.rfft(along.T, axis=1)
        n, m = self._bend(v), self._bend_tangent(v, w)
        a, p = s.half * v + s.inner * n, s.half * w + s.inner * m
        na, ma = self._bend(a), self._bend_tangent(a, p)
        b, q = s.half * v + s.inner * na, s.half * w + s.inner * ma
        nb, mb = self._bend(b), self._bend_tangent(b, q)
        c, r = s.half * a + s.inner * (2.0 * nb - n), s.half * p + s.inner * (2.0 * mb - m)
        nc, mc = self._bend(c), self._bend_tangent(c, r)
        modes = s.whole * v + s.first * n + s.middle * (na + nb) + s.last * nc
        carried = s.whole * w + s.first * m + s.middle * (ma + mb) + s.last * mc
        back = (np.fft.irfft(one, self.points, axis=1).T for one in (modes, carried))
        return next(back), next(back)

    def observe(self, state: Array) -> Array:
        """What is seen of states (D, E): u as (E, D)."""
        return np.ascontiguousarray(state.T)

    def begin(self, members: int, rng: np.random.Generator) -> Array:
        """Random states (D, members) of mean 0, which the equation keeps: let them run in."""
        state = rng.standard_normal((self.points, members))
        return state - state.mean(0)

    def power(self, state: Array) -> tuple[Array, Array]:
        """What the long waves bring in and the short ones take out, mean of u_x^2 and of u_xx^2
        over the points, (E,) each: d/dt of half the mean of u^2 is the one less the other."""
        modes, waves = np.fft.rfft(state.T, axis=1), self.waves()
        slope = np.fft.irfft(self._slopes() * modes, self.points, axis=1)
        curve = np.fft.irfft(-(waves**2) * modes, self.points, axis=1)
        return (slope**2).mean(1), (curve**2).mean(1)


@cache
def _scheme(system: Kuramoto, dt: float) -> Scheme:
    waves = system.waves()
    rate = waves**2 - waves**4
    angles = np.pi * (np.arange(CONTOUR) + 0.5) / CONTOUR
    z = dt * rate[:, None] + np.exp(1j * angles)
    whole = np.exp(z)
    inner = (np.exp(z / 2) - 1) / z
    first = (-4 - z + whole * (4 - 3 * z + z**2)) / z**3
    middle = 2 * (2 + z + whole * (z - 2)) / z**3
    last = (-4 - 3 * z - z**2 + whole * (4 - z)) / z**3
    parts = (dt * one.mean(1).real for one in (inner, first, middle, last))
    return Scheme(np.exp(dt * rate), np.exp(dt * rate / 2), *parts)
