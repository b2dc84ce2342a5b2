"""What a task on and off the grid is, and its exact prediction.

Both quantities are jointly Gaussian, so the law of a target given points and cells is Gaussian,
too: k' (K + N)^-1 (y - m) and k(x, x) - k' (K + N)^-1 k + s^2, by Cholesky factors in float64. It
is told of both sources, of the points alone and of the cells alone: no forecast's expected
likelihood from the same sources is higher. Shapes: S tasks, C context points, T targets, M cells,
X axes.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stages.errors import DataError
from stages.fields.problems.functions.plans import Array

READS = ("both", "off", "on")
JITTER = 1e-8


@dataclass(frozen=True)
class Tasks:
    """Tasks; `exact`: of each of READS mean and standard deviation (S, T), of kept ones alone."""

    context_x: Array  # S C X
    context_y: Array  # S C 1
    real: Array  # S C
    target_x: Array  # S T X
    target_y: Array  # S T 1
    grid_y: Array  # S M
    exact: dict[str, tuple[Array, Array]]

    def arrays(self) -> dict[str, Array]:
        """All that is known, by name."""
        found = {key: value for key, value in vars(self).items() if key != "exact"}
        for reads, (mean, sd) in self.exact.items():
            found |= {f"{reads}_mean": mean, f"{reads}_sd": sd}
        return found


class Law(Protocol):
    """How two quantities go together; quantity 0 is that of the points, 1 that of the cells."""

    def mean(self, quantity: int, x: Array) -> Array:
        """(S, N, X) -> (S, N)."""

    def covariance(self, first: int, second: int, a: Array, b: Array) -> Array:
        """Of places (S, N, X) and (S, M, X): (S, N, M)."""


def factor(matrix: Array) -> Array:
    """Lower Cholesky factors (S, N, N). DataError where there is none."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(matrix)[:, 0].min())
        raise DataError(
            "the covariance is not positive definite",
            where="tasks on and off the grid",
            expected="eigenvalues above 0",
            found=f"{least:.3g}",
            remedy="raise the noise",
        ) from None


def joint(law: Law, off: Array, cells: Array) -> Array:
    """Covariance of the values at points, then at cells (S, N + M, N + M), without noise."""
    among = law.covariance(0, 0, off, off), law.covariance(0, 1, off, cells)
    last = law.covariance(1, 1, cells, cells)
    return np.concatenate(
        (np.concatenate(among, 2), np.concatenate((among[1].transpose(0, 2, 1), last), 2)), 1
    )


def values(
    law: Law, x: Array, cells: Array, noise: tuple[float, float], rng: np.random.Generator
) -> tuple[Array, Array]:
    """One draw at points (S, N) and cells (S, M), with noise of these standard deviations."""
    whole = joint(law, x, cells)
    lower = factor(whole + JITTER * np.eye(whole.shape[1]))
    drawn = np.einsum("snm,sm->sn", lower, rng.standard_normal(whole.shape[:2]))
    off, on = drawn[:, : x.shape[1]], drawn[:, x.shape[1] :]
    off = off + law.mean(0, x) + noise[0] * rng.standard_normal(off.shape)
    return off, on + law.mean(1, cells) + noise[1] * rng.standard_normal(on.shape)


def exact(
    law: Law, tasks: Tasks, cells: Array, noise: tuple[float, float]
) -> dict[str, tuple[Array, Array]]:
    """Of each of READS the law of a measurement at every target: mean and standard deviation
    (S, T)."""
    points, targets, count = tasks.context_x, tasks.target_x, tasks.context_x.shape[1]
    whole = joint(law, points, cells)
    cross = np.concatenate(
        (law.covariance(0, 0, points, targets), law.covariance(1, 0, cells, targets)), 1
    )
    known = np.concatenate((tasks.context_y[:, :, 0] - law.mean(0, points),
                            tasks.grid_y - law.mean(1, cells)), 1)  # fmt: skip
    sd = np.r_[np.full(count, noise[0]), np.full(cells.shape[1], noise[1])]
    prior = np.einsum("stt->st", law.covariance(0, 0, targets, targets))
    found = {}
    for reads in READS:
        read = np.concatenate(
            (tasks.real & (reads != "on"), np.full((len(points), cells.shape[1]), reads != "off")),
            1,
        )
        # what is not read is independent of all
        matrix = np.where(read[:, :, None] & read[:, None], whole, 0.0)
        matrix += np.where(read, sd**2, 1.0)[:, :, None] * np.eye(whole.shape[1])
        lower = factor(matrix)
        parts = np.concatenate((cross, known[:, :, None]), 2) * read[:, :, None]
        white = np.linalg.solve(lower, parts)
        mean = np.einsum("snt,sn->st", white[:, :, :-1], white[:, :, -1])
        left = np.maximum(prior - np.square(white[:, :, :-1]).sum(1), 0.0)
        found[reads] = (mean + law.mean(0, targets), np.sqrt(left + noise[0] ** 2))
    return found
