"""What a task is, how its points are laid out, and which stream it is drawn from.

Contexts lie uniformly in a cube, targets in a larger one about the same middle (reference code H:
[-2, 2] and [-4, 4]). Training draws tasks from a `Training` stream, one a step; what validates and
tests is drawn once, from a `Kept` one. Both are types of their own, and their names begin with
different words, so no training stream is ever a kept one.
Shapes: S tasks, C context points at most, T targets, X axes. Values without dimension.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.seeds import stream

Array = np.ndarray
FAMILY = "functions"


@dataclass(frozen=True)
class Training:
    """The tasks of one step of one cell's training."""

    seed: int
    step: int

    def rng(self) -> np.random.Generator:
        """Its random numbers."""
        return stream(self.seed, FAMILY, "training", self.step)


@dataclass(frozen=True)
class Kept:
    """The tasks of a split that is kept: "val" or "test"."""

    seed: int
    split: str

    def rng(self) -> np.random.Generator:
        """Its random numbers."""
        return stream(self.seed, FAMILY, "kept", self.split)


@dataclass(frozen=True)
class Layout:
    """How many points a task has and where: contexts of 1 to `context` points in [-reach, reach]^X,
    `targets` of them in [-range, range]^X."""

    axes: int
    context: int
    targets: int
    reach: float
    range: float

    def drawn(
        self, tasks: int, rng: np.random.Generator, alike: bool
    ) -> tuple[Array, Array, Array]:
        """Context points (S, C, X), which of them are real (S, C), targets (S, T, X). `alike`: all
        tasks have as many context points, so that none is padding."""
        counts = rng.integers(1, self.context + 1, 1 if alike else tasks)
        most = int(counts.max()) if alike else self.context
        x = rng.uniform(-self.reach, self.reach, (tasks, most, self.axes))
        real = np.arange(most) < np.broadcast_to(counts, tasks)[:, None]
        return x, real, rng.uniform(-self.range, self.range, (tasks, self.targets, self.axes))


@dataclass(frozen=True)
class Tasks:
    """Tasks, and the law of their targets as well as it can be known: `exact_mean`, `exact_sd` of
    each target's value, None where they were not asked for; `function`: what each function's
    parameters are, a column each."""

    context_x: Array  # S C X
    context_y: Array  # S C 1
    real: Array  # S C
    target_x: Array  # S T X
    target_y: Array  # S T 1
    function: dict[str, Array]  # S
    exact_mean: Array | None = None  # S T
    exact_sd: Array | None = None  # S T

    def arrays(self) -> dict[str, Any]:
        """All that is known, by name."""
        found = {key: value for key, value in vars(self).items() if key != "function"}
        told = {key: value for key, value in found.items() if value is not None}
        return told | {f"function_{key}": value for key, value in self.function.items()}
