"""What there is beside networks where no exact law is known, each a normal law of every target:

persistence: the stale grid, linear between its cells; it has one stamp, so that in time it stays.
inverse_distance and kriging: that, and the increments (points minus it) carried to the targets, by
the inverse square of the distance, or by a Gaussian process of exponential covariance with one
unknown shift for all, its four numbers of most likelihood on training hours. climatology: the mean
of the training hours at the node and the hour of the day, and their spread at the node. Spreads of
the first two: the root mean square error over tasks of training hours. On a sphere places are
latitude and longitude, distances great-circle angles (of which exponentials are covariances, too:
Gneiting 2013), and cells go on across the date line.
Shapes: as tasks.py.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from stages.fields.problems.coupled.globe import vectors
from stages.fields.problems.coupled.tasks import Tasks
from stages.fields.problems.functions.plans import Array, Kept, Training
from stages.fields.problems.stale.tasks import Asked, Month

RIVALS = ("persistence", "inverse_distance", "kriging", "climatology")
DAY = 24
FIT = 96  # tasks of training hours that spreads and the covariance are taken from
LEAST, MOST = -6.0, 4.0  # of the logarithms: a nugget keeps covariances positive definite
START = (1.0, 0.5, 3.0, 0.1)  # shift, deviation, length in degrees of latitude, nugget
NEAR = 1e-6  # squared degrees: no target is a context node
Law = tuple[Array, Array]


class Process(Protocol):
    """What draws tasks beside a coarse grid."""

    @property
    def sphere(self) -> bool:
        """Whether places are latitude and longitude, all around."""

    @property
    def axes(self) -> tuple[Array, ...]:
        """The coarse grid's axes."""

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream."""


def interpolated(grid: Array, axes: tuple[Array, ...], x: Array, sphere: bool = False) -> Array:
    """Cells (S, M), linear between the four around each place (S, N, 2); beyond the outermost
    middles their values stay, but around a sphere longitudes go on."""
    cells = grid.reshape(len(grid), *map(len, axes))
    low, share = [], []
    for place, axis in enumerate(axes):
        where, count = (x[..., place] - axis[0]) / (axis[1] - axis[0]), len(axis)
        if sphere and place == 1:
            first = np.floor(where).astype(int)
        else:
            where = np.clip(where, 0, count - 1)
            first = np.minimum(where.astype(int), count - 2)
        low.append(first)
        share.append(where - first)
    tasks, total = np.arange(len(grid))[:, None], np.zeros(x.shape[:2])
    for north in (0, 1):
        for east in (0, 1):
            weight = np.abs(1 - north - share[0]) * np.abs(1 - east - share[1])
            column = (low[1] + east) % len(axes[1])
            total += weight * cells[tasks, low[0] + north, column]
    return total


def apart(a: Array, b: Array, sphere: bool = False) -> Array:
    """Distances (S, N, L) of places (S, N, 2) and (S, L, 2), degrees of latitude: great-circle
    angles by the chord, which is exact for near places, too."""
    if sphere:
        first, second = vectors(a), vectors(b)
        square = sum(
            np.square(first[:, :, None, axis] - second[:, None, :, axis]) for axis in range(3)
        )
        angle: Array = 2 * np.degrees(np.arcsin(np.minimum(np.sqrt(square) / 2, 1.0)))
        return angle
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

    def factor(self, tasks: Tasks, sphere: bool = False) -> Array:
        """Lower Cholesky factors of the points' covariance (S, C, C); who is not real is
        independent of all."""
        real = tasks.real
        whole = self.covariance(apart(tasks.context_x, tasks.context_x, sphere))
        whole = np.where(real[:, :, None] & real[:, None], whole, 0.0)
        own = np.where(real, self.nugget**2, 1.0)
        found: Array = np.linalg.cholesky(whole + own[:, :, None] * np.eye(real.shape[1]))
        return found

    def density(self, tasks: Tasks, increments: Array, sphere: bool = False) -> float:
        """The log-density of all increments (S, C), each task for itself."""
        lower = self.factor(tasks, sphere)
        white = np.linalg.solve(lower, increments[..., None])[..., 0]
        diagonal = np.log(np.einsum("scc->sc", lower)).sum()
        return float(-0.5 * np.square(white).sum() - diagonal)

    def at_targets(self, tasks: Tasks, increments: Array, sphere: bool = False) -> Law:
        """Mean and standard deviation (S, T) of a target's increment."""
        lower = self.factor(tasks, sphere)
        cross = self.covariance(apart(tasks.context_x, tasks.target_x, sphere))
        cross = cross * tasks.real[:, :, None]
        white = np.linalg.solve(lower, np.concatenate((cross, increments[..., None]), 2))
        mean = np.einsum("sct,sc->st", white[:, :, :-1], white[:, :, -1])
        left = self.level**2 + self.sd**2 - np.square(white[:, :, :-1]).sum(1)
        return mean, np.sqrt(np.maximum(left, 0.0) + self.nugget**2)


@dataclass(frozen=True)
class Carried:
    """What training tasks taught of the grid and of increments to it."""

    persistence: float
    inverse_distance: float
    shift: Shift


@dataclass(frozen=True)
class Fitted(Carried):
    """What the training hours taught."""

    climate: Array  # DAY N
    spread: Array  # N


def between(process: Process, tasks: Tasks, x: Array) -> Array:
    """The grid, linear between its cells, at places (S, N, 2): (S, N)."""
    return interpolated(tasks.grid_y, process.axes, x, process.sphere)


def increments_of(process: Process, tasks: Tasks) -> Array:
    """Points minus the grid there (S, C), 0 where there is no point."""
    grid = between(process, tasks, tasks.context_x)
    found: Array = (tasks.context_y[..., 0] - grid) * tasks.real
    return found


def weighed(process: Process, tasks: Tasks) -> Array:
    """The grid and the increments by inverse squares (S, T)."""
    square = apart(tasks.context_x, tasks.target_x, process.sphere) ** 2
    weight = tasks.real[:, :, None] / (square + NEAR)
    carried = np.einsum("sct,sc->st", weight, increments_of(process, tasks)) / weight.sum(1)
    found: Array = between(process, tasks, tasks.target_x) + carried
    return found


def carried(process: Process, seed: int) -> Carried:
    """From tasks of what trains."""
    tasks = process.drawn(FIT, Kept(seed, "fit"))
    known, y = increments_of(process, tasks), tasks.target_y[..., 0]

    def loss(logs: Array) -> float:
        shift = Shift(*np.exp(np.clip(logs, LEAST, MOST)))
        return -shift.density(tasks, known, process.sphere) / known.size

    best = minimize(loss, np.log(START), method="Nelder-Mead", options={"maxiter": 200})
    grid = between(process, tasks, tasks.target_x)
    plain, inverse = (
        float(np.sqrt(np.square(one - y).mean())) for one in (grid, weighed(process, tasks))
    )
    return Carried(plain, inverse, Shift(*map(float, np.exp(np.clip(best.x, LEAST, MOST)))))


def fitted(month: Month, hour: Array, seed: int) -> Fitted:
    """From the hours that train; `hour` (n,) from 1970."""
    flat = month.values.reshape(len(month.values), -1).astype(np.float64)
    of_day = hour % DAY
    climate = np.stack([flat[of_day == one].mean(0) for one in range(DAY)])
    spread = np.sqrt(np.square(flat - climate[of_day]).mean(0))
    return Fitted(**vars(carried(month, seed)), climate=climate, spread=spread)


def by_points(process: Process, tasks: Tasks, told: Carried) -> dict[str, Law]:
    """Of all RIVALS but climatology mean and standard deviation at every target (S, T)."""
    grid, known = between(process, tasks, tasks.target_x), increments_of(process, tasks)
    one, moved = np.ones_like(grid), told.shift.at_targets(tasks, known, process.sphere)
    found = (
        (grid, told.persistence * one),
        (weighed(process, tasks), told.inverse_distance * one),
        (grid + moved[0], moved[1]),
    )
    return dict(zip(RIVALS[:3], found, strict=True))


def laws(month: Month, asked: Asked, hour: Array, told: Fitted) -> dict[str, Law]:
    """Of each of RIVALS mean and standard deviation at every target (S, T)."""
    day = hour[asked.now] % DAY
    climate = told.climate[day[:, None], asked.targets], told.spread[asked.targets]
    found = by_points(month, month.tasks_of(asked), told)
    return found | {RIVALS[3]: climate}
