"""Bootstrap over time slices: how far a metric would move with other minutes of the same kind (90 % intervals).

Rows of one minute share aircraft and weather, so whole slices are drawn, never rows; and because neighbouring minutes
share them too, slices are drawn in runs: a circular block bootstrap (Politis and Romano 1992) with runs of S^(1/3) slices,
the rate Hall, Horowitz and Jing (1995) derive. Shapes: S slices in time order, K sums, R resamples.
"""

import math
from collections.abc import Iterator

import numpy as np

LEVEL = 0.9
CHUNK = 1_000_000  # drawn slices held at once


def block_length(slices: int) -> int:
    """Slices in one run: the cube root of their number, rounded down (79 -> 4, 6 -> 1, 1440 -> 11): a run is never all there is."""
    return max(1, math.floor(round(slices ** (1 / 3), 9)))


def draws(slices: int, resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each slice is drawn, (r, S) at a time; every row sums to S. Two calls with equal streams draw alike."""
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
    """Sums (S, K) of each slice -> sums (R, K) of each resample. einsum, not BLAS: the same bits for any number of threads."""
    return np.concatenate([np.einsum("rs,sk->rk", drawn, sums) for drawn in draws(len(sums), resamples, rng)])


def interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Percentile interval of the resamples (R,): the central `level` of them."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
