"""What a rival is: trained in one go on observations, then run freely.

Shapes: E members, T times, B starts, C times of context, H steps ahead, O observed; standardised.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

Array = np.ndarray
LIMIT = 1e3  # standard deviations: a forecast beyond them has left the attractor for good


class Rival(Protocol):
    """A forecast rule."""

    def train(self, series: Array) -> None:
        """Learn from members (E, T, O), whose times are equidistant."""

    def forecast(self, context: Array, steps: int) -> Array:
        """Go on from contexts (B, C, O): (B, H, O); not a number from where it diverged."""


def free_run(state: Array, step: Callable[[Array], Array], steps: int) -> Array:
    """Values (B, H, O) of a rule that is fed with what it said: `step` takes the last value (B,
    O) and gives the next.

    A start whose values leave LIMIT or are no numbers stays not a number from there on; it is fed
    with zeros, so that the others go on alike.
    """
    found, alive = [], np.ones(len(state), bool)
    for _ in range(steps):
        with np.errstate(over="ignore", invalid="ignore"):
            state = step(state)
            alive &= (np.abs(state) < LIMIT).all(1)
        state = np.where(alive[:, None], state, 0.0)
        found.append(np.where(alive[:, None], state, np.nan))
    return np.stack(found, 1)
