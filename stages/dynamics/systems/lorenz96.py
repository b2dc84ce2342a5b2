"""The three-tier Lorenz-96 system (document R, equations 40 to 42): K slow X, K J faster Y and
K J I fastest Z, of which the X are observed.

Y and Z are periodic over their flattened index, as the boundary condition "all periodic" is read.
Classical Runge-Kutta of fourth order, float64, elementwise operations alone, so that every machine
gives the same bits. Shapes: D = K + K J + K J I (8 + 64 + 512 = 584), E members side by side; time
in the model's units.
"""

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Lorenz96:
    """The system's constants: forcing F, counts K J I, coupling h, damping g of Z, scales b c d
    e."""

    forcing: float
    slow: int = 8
    middle: int = 8
    fast: int = 8
    h: float = 1.0
    g: float = 1.0
    b: float = 10.0
    c: float = 10.0
    d: float = 10.0
    e: float = 10.0

    @property
    def size(self) -> int:
        """D, the numbers of a state."""
        return self.slow * (1 + self.middle * (1 + self.fast))

    @property
    def observed(self) -> int:
        """How many of them are observed: the X, which stand first."""
        return self.slow

    def parts(self, state: Array) -> tuple[Array, Array, Array]:
        """X (K, E), Y (K J, E) and Z (K J I, E) of states (D, E), as views."""
        first = self.slow
        second = first + self.slow * self.middle
        return state[:first], state[first:second], state[second:]

    def tendency(self, state: Array) -> Array:
        """d/dt of states (D, E)."""
        x, y, z = self.parts(state)
        rate = np.empty_like(state)
        dx, dy, dz = self.parts(rate)
        wide = _wide(x, 2, 1)
        np.multiply(wide[1:-2], wide[3:] - wide[:-3], out=dx)
        dx -= x
        dx += self.forcing
        dx -= (self.h * self.c / self.b) * _sums(y, self.middle)
        wide = _wide(y, 1, 2)
        np.multiply(wide[2:-1], wide[3:] - wide[:-3], out=dy)
        dy *= -self.c * self.b
        self._middle(dy, x, y, z)
        wide = _wide(z, 2, 1)
        np.multiply(wide[1:-2], wide[3:] - wide[:-3], out=dz)
        dz *= self.e * self.d
        self._fast(dz, y, z)
        return rate

    def tangent(self, state: Array, along: Array) -> Array:
        """The derivative of `tendency` at states (D, E) along directions (D, E)."""
        x, y, z = self.parts(state)
        u, v, w = self.parts(along)
        rate = np.empty_like(along)
        du, dv, dw = self.parts(rate)
        wide, other = _wide(x, 2, 1), _wide(u, 2, 1)
        du[:] = other[1:-2] * (wide[3:] - wide[:-3]) + wide[1:-2] * (other[3:] - other[:-3]) - u
        du -= (self.h * self.c / self.b) * _sums(v, self.middle)
        wide, other = _wide(y, 1, 2), _wide(v, 1, 2)
        dv[:] = other[2:-1] * (wide[3:] - wide[:-3]) + wide[2:-1] * (other[3:] - other[:-3])
        dv *= -self.c * self.b
        self._middle(dv, u, v, w)
        wide, other = _wide(z, 2, 1), _wide(w, 2, 1)
        dw[:] = other[1:-2] * (wide[3:] - wide[:-3]) + wide[1:-2] * (other[3:] - other[:-3])
        dw *= self.e * self.d
        self._fast(dw, v, w)
        return rate

    def _middle(self, rate: Array, x: Array, y: Array, z: Array) -> None:
        """Add the linear terms of Y to its rate."""
        rate -= self.c * y
        rate -= (self.h * self.e / self.d) * _sums(z, self.fast)
        grouped = _groups(rate, self.middle)
        grouped += (self.h * self.c / self.b) * x[:, None]

    def _fast(self, rate: Array, y: Array, z: Array) -> None:
        """Add the linear terms of Z to its rate."""
        rate -= (self.g * self.e) * z
        grouped = _groups(rate, self.fast)
        grouped += (self.h * self.e / self.d) * y[:, None]

    def step(self, state: Array, dt: float) -> Array:
        """States (D, E) after one step of Runge-Kutta's fourth-order scheme."""
        a = self.tendency(state)
        b = self.tendency(state + (0.5 * dt) * a)
        c = self.tendency(state + (0.5 * dt) * b)
        d = self.tendency(state + dt * c)
        b += c
        b *= 2.0
        b += a
        b += d
        b *= dt / 6.0
        b += state
        return b

    def step_tangent(self, state: Array, along: Array, dt: float) -> tuple[Array, Array]:
        """`step`, and directions (D, E) carried by its exact derivative."""
        half = 0.5 * dt
        a, p = self.tendency(state), self.tangent(state, along)
        second = state + half * a
        b, q = self.tendency(second), self.tangent(second, along + half * p)
        third = state + half * b
        c, r = self.tendency(third), self.tangent(third, along + half * q)
        fourth = state + dt * c
        d, s = self.tendency(fourth), self.tangent(fourth, along + dt * r)
        # as in `step`, so that a state does not depend on whether a direction is carried
        return (((b + c) * 2.0 + a) + d) * (dt / 6.0) + state, along + (dt / 6.0) * (
            p + 2.0 * (q + r) + s
        )

    def observe(self, state: Array) -> Array:
        """What is seen of states (D, E): X as (E, K)."""
        return np.ascontiguousarray(state[: self.slow].T)

    def begin(self, members: int, rng: np.random.Generator) -> Array:
        """Random states (D, members), off the attractor: let them run in."""
        state = rng.standard_normal((self.size, members))
        x, y, z = self.parts(state)
        x += 0.25 * self.forcing
        y *= 0.1
        z *= 0.01
        return state


def _wide(rows: Array, before: int, after: int) -> Array:
    """A periodic array (N, E) with its last rows before it and its first ones after it."""
    count = len(rows)
    wide = np.empty((before + count + after, rows.shape[1]))
    wide[:before], wide[before : before + count] = rows[-before:], rows
    wide[before + count :] = rows[:after]
    return wide


def _groups(rows: Array, count: int) -> Array:
    """Runs of `count` rows: (N, E) -> (N / count, count, E), a view."""
    return rows.reshape(-1, count, rows.shape[1])


def _sums(rows: Array, count: int) -> Array:
    """The sum of each run of `count` rows, one row after the other, so that a member's does not
    depend on how many there are: (N, E) -> (N / count, E)."""
    grouped = _groups(rows, count)
    total = grouped[:, 0].copy()
    for place in range(1, count):
        total += grouped[:, place]
    return total
