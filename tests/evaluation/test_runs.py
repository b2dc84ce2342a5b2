"""Intervals over six runs of minutes: what they hold of a known mean under dependence, exact small
cases, and when there is none."""

import numpy as np
import pytest
from scipy import signal, stats

from stages.scores import bootstrap, runs


def minutes(rng: np.random.Generator, count: int, seven: float, step: int = 1) -> np.ndarray:
    """Errors of every `step`-th minute, which correlate by `seven` with those seven minutes
    later."""
    again = seven ** (step / 7)
    drawn = rng.normal(size=count + 200)
    return signal.lfilter([np.sqrt(1 - again**2)], [1.0, -again], drawn)[-count:]


def holds(values: np.ndarray) -> bool:
    """Whether the interval of a mean that is 0 holds it."""
    without = runs.without_each(np.stack([values, np.ones(len(values))], 1))
    low, high = runs.interval(values.mean(), without[:, 0] / without[:, 1])
    return low <= 0 <= high


def test_an_interval_of_a_mean_is_students_over_the_means_of_runs():
    values = np.random.default_rng(0).normal(3, 2, 60)
    without = runs.without_each(np.stack([values, np.ones(60)], 1))
    means = values.reshape(6, 10).mean(1)
    half = stats.t.ppf(0.95, 5) * means.std(ddof=1) / np.sqrt(6)
    assert runs.interval(values.mean(), without[:, 0] / without[:, 1]) == pytest.approx(
        (values.mean() - half, values.mean() + half)
    )


@pytest.mark.parametrize(("seven", "least"), [(0.3, 0.86), (0.45, 0.85), (0.6, 0.84)])
def test_six_hours_of_every_sixth_minute_hold_what_they_should(seven, least):
    """As many minutes as the simulated test has: the percentiles of resampled runs held 81, 79
    and 77 % of means."""
    rng, hits, before = np.random.default_rng(1), 0, 0
    for _ in range(600):
        values = minutes(rng, 60, seven, 6)
        hits += holds(values)
        low, high = bootstrap.interval(bootstrap.resample(values[:, None], 300, rng)[:, 0])
        before += low <= 0 <= high
    assert before + 0.03 * 600 < hits and least * 600 < hits < 0.93 * 600


def test_the_shortest_test_still_holds_eight_in_ten():
    rng = np.random.default_rng(2)
    shortest = runs.RUNS * runs.LEAST
    hits = sum(holds(minutes(rng, shortest, 0.6)) for _ in range(1500))
    assert hits > 0.78 * 1500
    assert sum(holds(minutes(rng, 13, 0.6)) for _ in range(600)) < 0.5 * 600  # none is told


@pytest.mark.parametrize(
    ("slices", "why"),
    [
        (np.arange(0, 360, 6), ""),
        (np.arange(100, 280), ""),
        (np.arange(100, 279), "a test of 179 minutes; too short for an interval"),
        (np.arange(13), "a test of 13 minutes; too short for an interval"),
        (np.arange(0, 500, 100), "a test of 5 slices; too few for an interval"),
        (np.arange(0), "a test without minutes; no interval"),
    ],
)
def test_a_run_is_half_an_hour_at_least(slices, why):
    assert runs.too_short(slices) == why
