"""Sawtooth functions (document N, sections 5.1.2, 6.1.2 and 6.1.3; errata.md, A.001).

f(x) = (frequency (direction . x - offset)) mod 1 + noise, frequency uniform, offset uniform over a
period, direction of unit length: any ("full"), or one of the diagonals ("restricted", in one
dimension left or right). A `turn` in degrees rotates every direction of a plane: trained on
diagonals and asked along the axes, a model shows whether it knows of rotations. Nobody forecasts
better on average than who knows the function: N(f(x), noise^2), whose expected log-density is -ln
noise - 1.419. Shapes: S tasks, X axes.
"""

from dataclasses import dataclass

import numpy as np

from stages.errors import InputError
from stages.fields.problems.functions.plans import Array, Kept, Layout, Tasks, Training

DIRECTIONS = ("full", "restricted")


@dataclass(frozen=True)
class Sawtooth:
    """Tasks of sawtooth functions: frequencies from `low` to `high`, `noise` a standard deviation,
    `directions` of DIRECTIONS. InputError for a turn in other than two dimensions."""

    low: float
    high: float
    noise: float
    directions: str
    layout: Layout
    turn: float = 0.0

    def __post_init__(self) -> None:
        if self.turn and self.layout.axes != 2:
            raise InputError(
                "only a plane is turned", where="turn", expected="2 axes", found=f"{self.layout.axes}"
            )

    def directed(self, tasks: int, rng: np.random.Generator) -> Array:
        """Unit vectors (S, X)."""
        drawn = rng.standard_normal((tasks, self.layout.axes))
        drawn = np.sign(drawn) if self.directions == "restricted" else drawn
        found = drawn / np.sqrt((drawn * drawn).sum(1, keepdims=True))
        if self.turn:
            angle = np.radians(self.turn)
            matrix = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            found = np.einsum("xy,sy->sx", np.array(matrix), found)
        return np.asarray(found)

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream; with the law of who knows the function where they are kept."""
        rng, kept = source.rng(), isinstance(source, Kept)
        frequency = rng.uniform(self.low, self.high, tasks)
        offset = rng.uniform(0, 1, tasks) / frequency
        direction = self.directed(tasks, rng)
        x, real, targets = self.layout.drawn(tasks, rng, not kept)

        def f(places: Array) -> Array:
            along = np.einsum("snx,sx->sn", places, direction)
            return np.asarray((frequency[:, None] * (along - offset[:, None])) % 1.0)

        noise = self.noise * rng.standard_normal((tasks, x.shape[1] + targets.shape[1]))
        y, truth = (f(x) + noise[:, : x.shape[1]]) * real, f(targets)
        told = {"frequency": frequency, "offset": offset}
        told |= {f"direction_{axis}": column for axis, column in enumerate(direction.T)}
        return Tasks(
            x,
            y[..., None],
            real,
            targets,
            (truth + noise[:, x.shape[1] :])[..., None],
            told,
            truth if kept else None,
            np.full_like(truth, self.noise) if kept else None,
        )

    @property
    def prior(self) -> tuple[float, float]:
        """Mean and standard deviation of a value of which nothing is known: uniform, with noise."""
        return 0.5, float(np.sqrt(1 / 12 + self.noise**2))
