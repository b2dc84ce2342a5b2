"""What there is beside networks where the law is not told, each a normal law of every target:

linear: the grid, linear between its cells; in time it relaxes to the mean wind as exp(-(age +
lead) / time), the time fitted. increments: that, and the increments (aircraft minus it) carried to
the targets by kriging, which is what an assimilation does: one Gaussian process, of the form of a
part of the wind, with one unknown shift for all; its six numbers have the most likelihood on tasks
that train. Where no exact law is known (a real sky), the aircraft's winds alone are kriged, too, by
a process of the same form (`likeliest`, `kriged`). None knows how wide the cells are, what was
smoothed, or the noise of either source. Shapes: as law.py.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from stages.winds.joint.law import Answer, Part
from stages.winds.joint.operator import Array, Axis
from stages.winds.joint.tasks import Drawn, Tasks, training

FIT = 24  # tasks that all numbers are fitted on
STEP = -1  # of a stream that no training has
LEAST, MOST = -5.0, 10.0  # of the logarithms: a nugget keeps covariances positive definite
START = (0.3, 0.5, 200.0, 2.0, 300.0, 0.2)  # shift, sd, km, km, min, nugget
EVALUATIONS = 160
Numbers = tuple[float, Part, float]  # of a process: its shift, what varies, its nugget
HOUR_MIN = 60.0
TIMES_MIN = tuple(60.0 * 2.0**k for k in range(4, 16))  # that the grid may relax in


def interpolated(cells: Array, axes: Sequence[Axis], x: Array) -> Array:
    """Values (S, N, 2), linear between the eight cells (S, M, 2) around each place (S, N, 4);
    beyond the outermost middles their values stay."""
    shape = [len(axis.middles) for axis in axes]
    first, share = [], []
    for place, axis in enumerate(axes):
        step = axis.middles[1] - axis.middles[0]
        where = np.clip((x[..., place] - axis.middles[0]) / step, 0, len(axis.middles) - 1)
        first.append(np.minimum(where.astype(int), len(axis.middles) - 2))
        share.append(where - first[-1])
    values, tasks = cells.reshape(len(cells), *shape, -1), np.arange(len(cells))[:, None]
    total = np.zeros((*x.shape[:2], cells.shape[2]))
    for corner in itertools.product((0, 1), repeat=len(axes)):
        weight = np.ones(x.shape[:2])
        for far, one in zip(corner, share, strict=True):
            weight *= one if far else 1 - one
        at = tuple(low + far for low, far in zip(first, corner, strict=True))
        total += weight[..., None] * values[(tasks, *at)]
    return total


@dataclass(frozen=True)
class Fitted:
    """What tasks that train taught: the time (minutes) in which the grid relaxes, its error there,
    and the law of the increments: `level` of their shift, what varies, `nugget` of one alone."""

    relaxes: float
    error: float
    level: float
    part: Part
    nugget: float

    @property
    def numbers(self) -> dict[str, float]:
        """All of it by name."""
        part = {f"increments_{name}": value for name, value in vars(self.part).items()}
        return {name: value for name, value in vars(self).items() if name != "part"} | part

    @classmethod
    def of(cls, tasks: Tasks, axes: Sequence[Axis], evaluations: int = EVALUATIONS) -> "Fitted":
        """Fitted on tasks that train."""
        errors = [
            float(np.sqrt(np.square(relaxed(tasks, axes, tasks.target_x, time)
                                    - tasks.target_y).mean()))
            for time in TIMES_MIN
        ]  # fmt: skip
        best = int(np.argmin(errors))
        known = increments(tasks, axes, TIMES_MIN[best])
        level, part, nugget = likeliest(tasks, known, evaluations)
        return cls(TIMES_MIN[best], errors[best], level, part, nugget)


def drawn(sky: Drawn, targets: int, seed: int, count: int = FIT) -> Tasks:
    """Tasks of a stream that no cell trains on: all numbers are fitted on them."""
    return sky.drawn(count, targets, training(seed, STEP))


def likeliest(tasks: Tasks, known: Array, evaluations: int = EVALUATIONS) -> Numbers:
    """The process that makes values (S, C, 2) at the reports most likely."""

    def loss(logs: Array) -> float:
        return -density(law_of(logs), tasks, known)

    options = {"maxfev": evaluations}
    return law_of(minimize(loss, np.log(START), method="Nelder-Mead", options=options).x)


def relaxed(tasks: Tasks, axes: Sequence[Axis], x: Array, time: float) -> Array:
    """The grid at places and times (S, N, 2)."""
    since = HOUR_MIN * tasks.age[:, None] + x[:, :, 3]
    found: Array = interpolated(tasks.grid_y, axes, x) * np.exp(-since / time)[..., None]
    return found


def increments(tasks: Tasks, axes: Sequence[Axis], time: float) -> Array:
    """Reports minus the grid there (S, C, 2), 0 where there is no report."""
    grid = relaxed(tasks, axes, tasks.context_x, time)
    found: Array = (tasks.context_y - grid) * tasks.real[..., None]
    return found


def law_of(logs: Array) -> Numbers:
    """Shift, process and nugget of their logarithms."""
    level, sd, horizontal, vertical, time, nugget = map(float, np.exp(np.clip(logs, LEAST, MOST)))
    return level, Part(sd, horizontal, vertical, time), nugget


def factor(law: Numbers, tasks: Tasks) -> Array:
    """Lower Cholesky factors of the reports' covariance (S, C, C); who is not real is independent
    of all."""
    level, part, nugget = law
    real = tasks.real
    whole = part.points(tasks.context_x, tasks.context_x) + level**2
    whole = np.where(real[:, :, None] & real[:, None], whole, 0.0)
    own = np.where(real, nugget**2, 1.0)
    found: Array = np.linalg.cholesky(whole + own[:, :, None] * np.eye(real.shape[1]))
    return found


def density(law: Numbers, tasks: Tasks, known: Array) -> float:
    """The log-density of all increments (S, C, 2), a number."""
    lower = factor(law, tasks)
    white = np.linalg.solve(lower, known)
    diagonal = known.shape[2] * np.log(np.einsum("scc->sc", lower)).sum()
    return float(-0.5 * np.square(white).sum() - diagonal) / known.size


def laws(tasks: Tasks, axes: Sequence[Axis], told: Fitted) -> dict[str, Answer]:
    """Means (S, T, 2) and standard deviations (S, T) of the two rivals."""
    grid = relaxed(tasks, axes, tasks.target_x, told.relaxes)
    known = increments(tasks, axes, told.relaxes)
    moved, spread = kriged(tasks, (told.level, told.part, told.nugget), known)
    return {"linear": (grid, np.full(grid.shape[:2], told.error)),
            "increments": (grid + moved, spread)}  # fmt: skip


def kriged(tasks: Tasks, law: Numbers, known: Array) -> Answer:
    """The law of a measurement at the targets, given values (S, C, 2) at the reports."""
    level, part, nugget = law
    cross = part.points(tasks.context_x, tasks.target_x) + level**2
    parts = np.concatenate((cross * tasks.real[..., None], known), 2)
    white = np.linalg.solve(factor(law, tasks), parts)
    moved = np.einsum("sct,sco->sto", white[..., :-2], white[..., -2:])
    left = level**2 + part.sd**2 - np.square(white[..., :-2]).sum(1)
    return moved, np.sqrt(np.maximum(left, 0.0) + nugget**2)
