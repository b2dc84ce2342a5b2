"""What there is beside networks where no exact law is known, each a normal law of every target:

persistence: the stale grid, linear between its cells; it has one stamp, so that in time it stays.
inverse_distance and kriging: that, and the increments (points minus it) carried to the targets, by
the inverse square of the distance, or by a Gaussian process of exponential covariance with one
unknown shift for all, its four numbers of most likelihood on training hours. climatology: the mean
of the training hours at the node and the hour of the day, and their spread at the node. Spreads of
the first two: the root mean square error over tasks of training hours.
Shapes: as tasks.py.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from stages.fields.problems.coupled.tasks import Tasks
from stages.fields.problems.functions.plans import Array, Kept
from stages.fields.problems.stale.tasks import Asked, Month

RIVALS = ("persistence", "inverse_distance", "kriging", "climatology")
DAY = 24
FIT = 96  # tasks of training hours that spreads and the covariance are taken from
LEAST, MOST = -6.0, 4.0  # of the logarithms: a nugget keeps covariances positive definite
START = (1.0, 0.5, 3.0, 0.1)  # shift, deviation, length in degrees of latitude, nugget
NEAR = 1e-6  # squared degrees: no target is a context node
Law = tuple[Array, Array]


def interpolated(grid: Array, axes: tuple[Array, ...], x: Array) -> Array:
    """Cells (S, M), linear between the four around each place (S, N, 2); beyond the outermost
    middles their values stay."""
    cells = grid.reshape(len(grid), *map(len, axes))
    low, share = [], []
    for place, axis in enumerate(axes):
        where = np.clip((x[..., place] - axis[0]) / (axis[1] - axis[0]), 0, len(axis) - 1)
        low.append(np.minimum(where.astype(int), len(axis) - 2))
        share.append(where - low[-1])
    tasks, total = np.arange(len(grid))[:, None], np.zeros(x.shape[:2])
    for north in (0, 1):
        for east in (0, 1):
            weight = np.abs(1 - north - share[0]) * np.abs(1 - east - share[1])
            total += weight * cells[tasks, low[0] + north, low[1] + east]
    return total


def apart(a: Array, b: Array) -> Array:
    """Distances (S, N, L) of places (S, N, 2) and (S, L, 2), degrees of latitude."""
    found: Array = np.sqrt(np.square(a[:, :, None] - b[:, None]).sum(3))
    return found


@dataclass(frozen=True)
class Shift:
    """The law of increments: `level` of the shift that all share, `sd` and `length` of what varies
    in space, `nugget` of a point alone; standardised, degrees of latitude."""

    level: float
    sd: float
    length: float
    nugget: float

    def covariance(self, distance: Array) -> Array:
        """Without the nugget."""
        found: Array = self.level**2 + self.sd**2 * np.exp(-distance / self.length)
        return found

    def factor(self, tasks: Tasks) -> Array:
        """Lower Cholesky factors of the points' covariance (S, C, C); who is not real is
        independent of all."""
        real = tasks.real
        whole = self.covariance(apart(tasks.context_x, tasks.context_x))
        whole = np.where(real[:, :, None] & real[:, None], whole, 0.0)
        own = np.where(real, self.nugget**2, 1.0)
        found: Array = np.linalg.cholesky(whole + own[:, :, None] * np.eye(real.shape[1]))
        return found

    def density(self, tasks: Tasks, increments: Array) -> float:
        """The log-density of all increments (S, C), each task for itself."""
        lower = self.factor(tasks)
        white = np.linalg.solve(lower, increments[..., None])[..., 0]
        diagonal = np.log(np.einsum("scc->sc", lower)).sum()
        return float(-0.5 * np.square(white).sum() - diagonal)

    def at_targets(self, tasks: Tasks, increments: Array) -> Law:
        """Mean and standard deviation (S, T) of a target's increment."""
        lower = self.factor(tasks)
        cross = self.covariance(apart(tasks.context_x, tasks.target_x)) * tasks.real[:, :, None]
        white = np.linalg.solve(lower, np.concatenate((cross, increments[..., None]), 2))
        mean = np.einsum("sct,sc->st", white[:, :, :-1], white[:, :, -1])
        left = self.level**2 + self.sd**2 - np.square(white[:, :, :-1]).sum(1)
        return mean, np.sqrt(np.maximum(left, 0.0) + self.nugget**2)


@dataclass(frozen=True)
class Fitted:
    """What the training hours taught."""

    climate: Array  # DAY N
    spread: Array  # N
    persistence: float
    inverse_distance: float
    shift: Shift


def increments_of(month: Month, tasks: Tasks) -> Array:
    """Points minus the grid there (S, C), 0 where there is no point."""
    grid = interpolated(tasks.grid_y, month.axes, tasks.context_x)
    found: Array = (tasks.context_y[..., 0] - grid) * tasks.real
    return found


def weighed(month: Month, tasks: Tasks) -> Array:
    """The grid and the increments by inverse squares (S, T)."""
    weight = tasks.real[:, :, None] / (apart(tasks.context_x, tasks.target_x) ** 2 + NEAR)
    carried = np.einsum("sct,sc->st", weight, increments_of(month, tasks)) / weight.sum(1)
    found: Array = interpolated(tasks.grid_y, month.axes, tasks.target_x) + carried
    return found


def fitted(month: Month, hour: Array, seed: int) -> Fitted:
    """From the hours that train; `hour` (n,) from 1970."""
    flat = month.values.reshape(len(month.values), -1).astype(np.float64)
    of_day = hour % DAY
    climate = np.stack([flat[of_day == one].mean(0) for one in range(DAY)])
    spread = np.sqrt(np.square(flat - climate[of_day]).mean(0))
    tasks = month.drawn(FIT, Kept(seed, "fit"))
    known, y = increments_of(month, tasks), tasks.target_y[..., 0]

    def loss(logs: Array) -> float:
        return -Shift(*np.exp(np.clip(logs, LEAST, MOST))).density(tasks, known) / known.size

    best = minimize(loss, np.log(START), method="Nelder-Mead", options={"maxiter": 200})
    grid = interpolated(tasks.grid_y, month.axes, tasks.target_x)
    plain, inverse = (
        float(np.sqrt(np.square(one - y).mean())) for one in (grid, weighed(month, tasks))
    )
    shift = Shift(*map(float, np.exp(np.clip(best.x, LEAST, MOST))))
    return Fitted(climate, spread, plain, inverse, shift)


def laws(month: Month, asked: Asked, hour: Array, told: Fitted) -> dict[str, Law]:
    """Of each of RIVALS mean and standard deviation at every target (S, T)."""
    tasks = month.tasks_of(asked)
    grid = interpolated(tasks.grid_y, month.axes, tasks.target_x)
    one, moved = np.ones_like(grid), told.shift.at_targets(tasks, increments_of(month, tasks))
    day = hour[asked.now] % DAY
    found = (
        (grid, told.persistence * one),
        (weighed(month, tasks), told.inverse_distance * one),
        (grid + moved[0], moved[1]),
        (told.climate[day[:, None], asked.targets], told.spread[asked.targets]),
    )
    return dict(zip(RIVALS, found, strict=True))
