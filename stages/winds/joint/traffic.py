"""Who measures the sky of a task, and what is asked of it.

1 to `aircraft` of them cross the area straight and level, at the speeds of stages/winds/sky, and
tell their wind every `every` minutes while they are inside and not more than `memory` ago. The
targets are anywhere in the area, the lead drawn from a range, the grid's age too. Shapes: S tasks,
C reports at most, T targets. A place is km east and north of the area's middle, km up, and minutes
after now.
"""

from dataclasses import dataclass

import numpy as np

from stages.winds.joint.operator import Array

SPEED_KM_MIN = (11.4, 15.0)  # over ground: 190 to 250 m/s, as stages/winds/sky/gaussian_wind.py


@dataclass(frozen=True)
class Traffic:
    """Flights and questions; km, minutes, the age in hours."""

    extent: tuple[float, float]
    altitude: tuple[float, float]
    aircraft: int
    every: float
    memory: float
    age: tuple[float, float]
    lead: tuple[float, float]

    @property
    def reports(self) -> int:
        """Of one aircraft, at most."""
        return int(self.memory / self.every) + 1

    def flown(self, tasks: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Where aircraft were (S, C, 4), and which of that is a report (S, C): at least one a
        task."""
        shape, half = (tasks, self.aircraft), np.array(self.extent) / 2
        at = rng.uniform(-half, half, (*shape, 2))  # where it is at a time that is remembered
        when, angle = rng.uniform(-self.memory, 0.0, shape), rng.uniform(0, 2 * np.pi, shape)
        speed, level = rng.uniform(*SPEED_KM_MIN, shape), rng.uniform(*self.altitude, shape)
        times = when[..., None] + self.every * np.arange(-self.reports + 1, self.reports)
        gone = (speed[..., None] * (times - when[..., None]))[..., None]
        ways = at[:, :, None] + gone * np.stack((np.cos(angle), np.sin(angle)), -1)[:, :, None]
        inside = (np.abs(ways) <= half).all(-1) & (times <= 0) & (times >= -self.memory)
        inside &= (
            np.arange(self.aircraft)[:, None]
            < rng.integers(1, self.aircraft + 1, tasks)[:, None, None]
        )
        up = np.broadcast_to(level[..., None], times.shape)
        place = np.concatenate((ways, up[..., None], times[..., None]), -1)
        return self._packed(place.reshape(tasks, -1, 4), inside.reshape(tasks, -1))

    def _packed(self, place: Array, inside: Array) -> tuple[Array, Array]:
        """What is real first, as far as the longest of the tasks."""
        order = np.argsort(~inside, 1, kind="stable")[:, : int(inside.sum(1).max())]
        real = np.take_along_axis(inside, order, 1)
        return np.take_along_axis(place, order[..., None], 1) * real[..., None], real

    def asked(self, tasks: int, targets: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Targets (S, T, 4), and how old each task's grid is (S,), hours."""
        half = np.array(self.extent) / 2
        places = np.concatenate(
            (
                rng.uniform(-half, half, (tasks, targets, 2)),
                rng.uniform(*self.altitude, (tasks, targets, 1)),
                rng.uniform(*self.lead, (tasks, targets, 1)),
            ),
            2,
        )
        return places, rng.uniform(*self.age, tasks)
