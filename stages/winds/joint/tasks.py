"""Tasks of the joint nowcast: the sky of a moment, as some aircraft have measured it and as a late
grid has it, and the wind that is asked at other places some time ahead.

Every task has its own sky, drawn from the law (law.py). 1 to `aircraft` of them cross the area
straight and level, at the speeds of stages/winds/sky, and tell their wind every `every_min` while
they are inside and not more than `memory_min` ago. The grid is `age_h` old, drawn from a range. The
targets are anywhere in the area, the lead drawn from a range. Training draws tasks from a stream a
step; what selects and tests is drawn once, from another. Shapes: S tasks, C reports at most, T
targets, M cells. A place is km east and north of the area's middle, km up, and minutes after now;
values over the wind's standard deviation, without its mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.seeds import stream
from stages.winds.joint.law import Answer, Law
from stages.winds.joint.operator import Array

SPEED_KM_MIN = (11.4, 15.0)  # over ground: 190 to 250 m/s, as stages/winds/sky/gaussian_wind.py


@dataclass(frozen=True)
class Tasks:
    """What is known and asked; `answers`: the exact law by what is read, of kept tasks alone."""

    context_x: Array  # S C 4
    context_y: Array  # S C 2
    real: Array  # S C
    grid_y: Array  # S M 2
    age: Array  # S, hours
    target_x: Array  # S T 4
    target_y: Array  # S T 2, as an aircraft would measure it
    target_true: Array  # S T 2
    answers: dict[str, Answer] = field(default_factory=dict)

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> "Tasks":
        """From arrays by name, without answers. TypeError for one that lacks or that is none."""
        return cls(**arrays)

    def arrays(self) -> dict[str, Array]:
        """All that is known, by name."""
        found = {key: value for key, value in vars(self).items() if key != "answers"}
        for reads, (mean, sd) in self.answers.items():
            found |= {f"{reads}_mean": mean, f"{reads}_sd": sd}
        return found


@dataclass(frozen=True)
class Sky:
    """How tasks are drawn; km and minutes."""

    law: Law
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

    def drawn(self, tasks: int, targets: int, rng: np.random.Generator, exact: bool) -> Tasks:
        """Tasks of a stream; with the exact laws where they are kept."""
        x, real = self.flown(tasks, rng)
        half = np.array(self.extent) / 2
        asked = np.concatenate(
            (
                rng.uniform(-half, half, (tasks, targets, 2)),
                rng.uniform(*self.altitude, (tasks, targets, 1)),
                rng.uniform(*self.lead, (tasks, targets, 1)),
            ),
            2,
        )
        age = rng.uniform(*self.age, tasks)
        wind, cells = self.law.drawn(np.concatenate((x, asked), 1), -60 * age, rng)
        measured = wind + self.law.noise * rng.standard_normal(wind.shape)
        count = x.shape[1]
        y = measured[:, :count] * real[..., None]
        answers = self.law.answers(x, y, real, cells, -60 * age, asked) if exact else {}
        return Tasks(x, y, real, cells, age, asked, measured[:, count:], wind[:, count:], answers)


def training(seed: int, step: int) -> np.random.Generator:
    """The random numbers of one step of one cell's training."""
    return stream(seed, "joint", "training", step)


def kept(seed: int, split: str) -> np.random.Generator:
    """Those of a split that is kept: "val" or "test"."""
    return stream(seed, "joint", "kept", split)
