"""Tasks of the joint nowcast: the sky of a moment, as some aircraft have measured it and as a late
grid has it, and the wind that is asked at other places some time ahead.

Every task has its own sky: drawn from the law (law.py), or cut out of a reanalysis (reanalysis.py).
Who measures it and what is asked: traffic.py. Training draws tasks from a stream a step; what
selects and tests is drawn once, from another. Shapes: S tasks, C reports at most, T targets, M
cells. A place is km east and north of the area's middle, km up, and minutes after now;
values over the wind's standard deviation, without its mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from stages.seeds import stream
from stages.winds.joint.law import Answer, Law
from stages.winds.joint.operator import Array, Axis
from stages.winds.joint.traffic import Traffic


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


class Drawn(Protocol):
    """What draws tasks."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The grid's."""

    def drawn(self, tasks: int, targets: int, rng: np.random.Generator) -> Tasks:
        """Tasks of a stream."""


@dataclass(frozen=True)
class Sky:
    """How tasks are drawn of a known law."""

    law: Law
    traffic: Traffic

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The grid's."""
        return self.law.axes

    def drawn(
        self, tasks: int, targets: int, rng: np.random.Generator, exact: bool = False
    ) -> Tasks:
        """Tasks of a stream; with the exact laws where they are kept."""
        x, real = self.traffic.flown(tasks, rng)
        asked, age = self.traffic.asked(tasks, targets, rng)
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
