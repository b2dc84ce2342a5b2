"""Bootstrap over time slices: how far a metric would move with other minutes of the same kind (90 %
intervals).

Rows of one minute share aircraft and weather, so whole slices are drawn, never rows; and because
neighbouring minutes share them too, slices are drawn in runs: a circular block bootstrap (Politis
and Romano 1992). A run's length is set in time, not by the number of slices: on simulated winds the
error of a minute still correlates by 0.3 to 0.6 with that of the minute seven later, so a run is an
hour, as far as at least six runs fit. Slices are of one minute. Shapes: S slices in time order, K
sums, R resamples.
"""

import math
from collections.abc import Iterator

import numpy as np

LEVEL = 0.9
HOUR = 60  # slices
LEAST_RUNS = 6  # fewer runs would hardly differ from one resample to the next
CHUNK = 1_000_000  # drawn slices held at once


def block_length(slices: int) -> int:
    """One-minute slices in one run: an hour, at most a sixth of all there are, at least one
    (359 -> 59, 79 -> 13, 11 -> 1)."""
    return max(1, min(HOUR, slices // LEAST_RUNS))


def draws(slices: int, resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each slice is drawn, (r, S) at a time; every row sums to S. Two calls with equal
    streams draw alike."""
    length = block_length(slices)
    blocks = math.ceil(slices / length)
    step = max(1, CHUNK // slices)
    for first in range(0, resamples, step):
        count = min(step, resamples - first)
        starts = rng.integers(slices, size=(count, blocks))
        chosen = (starts[:, :, None] + np.arange(length)) % slices
        chosen = chosen.reshape(count, -1)[:, :slices] + slices * np.arange(count)[:, None]
        yield np.bincount(chosen.ravel(), minlength=count * slices).reshape(count, slices)


def resample(sums: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Sums (S, K) of each slice -> sums (R, K) of each resample. einsum, not BLAS: the same bits
    for any number of threads."""
    return np.concatenate(
        [np.einsum("rs,sk->rk", drawn, sums) for drawn in draws(len(sums), resamples, rng)]
    )


def interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Percentile interval of the resamples (R,): the central `level` of them."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
