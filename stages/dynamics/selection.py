"""Free runs within a part of the observations that is not the test part, by which cells and trials
are chosen (document R: the best model by its valid prediction time on validation).

Shapes: E members, T times, B starts, C observations given, H steps ahead, O observed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.dynamics.forecasts import Array, nrmse, valid
from stages.dynamics.free_run import forecast
from stages.dynamics.settings import Selection
from stages.errors import InputError


@dataclass(frozen=True)
class Runs:
    """Given observations (B, C, O), those that follow (B, H, O), each start's member (B,), the
    threshold, and a step's time in Lyapunov times."""

    context: Array
    ahead: Array
    member: Array
    threshold: float
    step: float

    def times(self, forecasts: Array) -> Array:
        """How long each forecast (B, H, O) is valid, Lyapunov times (B,)."""
        return valid(nrmse(forecasts, self.ahead), self.threshold) * self.step

    def of(self, model: Any, length: int) -> Array:
        """Those of a network, which runs freely from all starts at once; `length`: observations of
        the windows that trained it."""
        model.eval()
        return self.times(forecast(model, self.context, self.ahead.shape[1], length))


def runs(
    series: Array, about: Mapping[str, Any], part: str, asked: Selection, threshold: float
) -> Runs:
    """The free runs within a part of series (E, T, O). InputError where they do not fit."""
    first, end = about["parts"][part]
    low, high = first + asked.context - 1, end - 1 - asked.horizon
    if high < low:
        raise InputError(
            "the part that selects does not hold the free runs",
            where="forecasts.DATASET.selection",
            expected=f"{asked.context} observations given and {asked.horizon} ahead",
            found=f"{max(0, end - first)} observations in the part {part!r}",
            remedy="shorten the free runs, or widen the part (splits)",
        )
    times = np.unique(np.linspace(low, high, asked.starts).round().astype(np.int64))
    member = np.repeat(np.arange(len(series)), len(times))
    starts = np.tile(times, len(series))
    back, on = np.arange(1 - asked.context, 1), np.arange(1, asked.horizon + 1)
    unit = about["printed_exponent"] or about["exponent"]["value"]
    return Runs(
        series[member[:, None], starts[:, None] + back],
        series[member[:, None], starts[:, None] + on],
        member,
        threshold,
        about["step"] * unit,
    )
