"""Elliptic equations on the unit square with fixed borders, for many right-hand sides at once: what
problems/poisson/ and problems/darcy/ solve with.

Nodes lie at i/n, j/n, i and j from 0 to n; unknown are the (n-1)^2 inner ones. The five-point
Laplacian is diagonal in sines, so -lap u = f costs two sine transforms and is exact to rounding.
-div(a grad u) = f is solved by conjugate gradients with that Laplacian before it: its condition is
at most max a / min a, whatever n is. The flux between two nodes takes the harmonic mean of their a:
with control volumes of constant a about the nodes that is the exact flux across their border in one
dimension, also at a jump.
Shapes: B right-hand sides, n cells a side. No units: the square's side is 1.
"""

import numpy as np
from scipy.fft import dstn, idstn

from stages.errors import DivergedError


def poisson(f: np.ndarray) -> np.ndarray:
    """u (B, n-1, n-1) at the inner nodes with u = 0 on the border and -lap u = f (B, n-1, n-1),
    five-point differences."""
    n = f.shape[-1] + 1
    one = 2.0 * n**2 * (1.0 - np.cos(np.pi * np.arange(1, n) / n))
    return idstn(dstn(f, type=1, axes=(1, 2)) / (one[:, None] + one), type=1, axes=(1, 2))


def conductances(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Harmonic means of a (B, n+1, n+1) between inner rows' neighbours along x, (B, n, n-1), and
    along y, (B, n-1, n)."""
    along_x, along_y = a[:, :, 1:-1], a[:, 1:-1, :]
    x = 2.0 * along_x[:, 1:] * along_x[:, :-1] / (along_x[:, 1:] + along_x[:, :-1])
    y = 2.0 * along_y[:, :, 1:] * along_y[:, :, :-1] / (along_y[:, :, 1:] + along_y[:, :, :-1])
    return x, y


def flow(u: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-div(a grad u) at the inner nodes (B, n-1, n-1), for u zero on the border and the
    conductances x, y."""
    n = u.shape[-1] + 1
    padded = np.pad(u, ((0, 0), (1, 1), (1, 1)))
    through_x = x * np.diff(padded[:, :, 1:-1], axis=1)
    through_y = y * np.diff(padded[:, 1:-1, :], axis=2)
    return -(np.diff(through_x, axis=1) + np.diff(through_y, axis=2)) * n**2


def darcy(a: np.ndarray, f: np.ndarray, tolerance: float = 1e-10, most: int = 2000) -> np.ndarray:
    """u (B, n+1, n+1) with u = 0 on the border and -div(a grad u) = f at the inner nodes.

    a (B, n+1, n+1) is positive, f broadcasts to (B, n-1, n-1). Solved until every residual is below
    `tolerance` of its f. DivergedError where `most` steps do not suffice.
    """
    x, y = conductances(a)

    def dot(p, q):
        return np.einsum("bij,bij->b", p, q)

    u = np.zeros((len(a), a.shape[1] - 2, a.shape[2] - 2))
    rest = np.array(np.broadcast_to(f, u.shape), dtype=np.float64)
    goal = tolerance**2 * dot(rest, rest)
    way = helped = poisson(rest)
    gain = dot(rest, helped)
    for _ in range(most):
        if np.all(dot(rest, rest) <= goal):
            return np.pad(u, ((0, 0), (1, 1), (1, 1)))
        pushed = flow(way, x, y)
        below = dot(way, pushed)
        step = np.divide(gain, below, out=np.zeros_like(gain), where=below > 0)[:, None, None]
        u, rest = u + step * way, rest - step * pushed
        helped = poisson(rest)
        new = dot(rest, helped)
        way = (
            helped
            + np.divide(new, gain, out=np.zeros_like(gain), where=gain > 0)[:, None, None] * way
        )
        gain = new
    raise DivergedError(
        "the solver of -div(a grad u) = f did not converge",
        expected=f"residuals below {tolerance:g} of f",
        found=f"{np.sqrt((dot(rest, rest) / np.maximum(goal, 1e-300)).max()) * tolerance:.3g} "
        f"after {most} steps",
        remedy="take coefficients of less contrast",
    )
