"""Bootstrap over slices: its laws, an exact small case, and coverage of a known mean under
dependence."""

import numpy as np
import pytest
from scipy import signal

from stages.scores import bootstrap


@pytest.mark.parametrize(
    ("slices", "length"),
    [(1, 1), (6, 1), (11, 1), (12, 2), (79, 13), (359, 59), (360, 60), (1440, 60)],
)
def test_runs_are_an_hour_and_at_most_a_sixth(slices, length):
    assert bootstrap.block_length(slices) == length


@pytest.mark.parametrize("slices", [1, 2, 5, 79])
def test_every_resample_draws_as_many_slices_as_there_are(slices):
    drawn = np.concatenate(list(bootstrap.draws(slices, 300, np.random.default_rng(0))))
    assert drawn.shape == (300, slices) and (drawn.sum(1) == slices).all() and (drawn >= 0).all()


def test_slices_are_drawn_equally_often_and_in_runs():
    drawn = np.concatenate(list(bootstrap.draws(27, 20_000, np.random.default_rng(0))))
    assert np.allclose(drawn.mean(0), 1, atol=0.05)
    together = np.corrcoef(drawn.T)
    beside = np.mean([together[i, i - 1] for i in range(27)])
    apart = np.mean([together[i, i - 9] for i in range(27)])
    assert beside > 0.5 > 0.1 > apart  # runs of 4: three of four neighbours are drawn together


def test_resampled_sums_are_those_of_the_drawn_slices():
    sums = np.random.default_rng(1).normal(size=(11, 3))
    drawn = np.concatenate(list(bootstrap.draws(11, 50, np.random.default_rng(5))))
    expected = [[sum(n * sums[s, k] for s, n in enumerate(row)) for k in range(3)] for row in drawn]
    assert np.allclose(bootstrap.resample(sums, 50, np.random.default_rng(5)), expected)


def test_chunks_do_not_change_a_draw(monkeypatch):
    sums = np.arange(20.0)[:, None]
    whole = bootstrap.resample(sums, 100, np.random.default_rng(2))
    monkeypatch.setattr(bootstrap, "CHUNK", 140)
    assert np.array_equal(bootstrap.resample(sums, 100, np.random.default_rng(2)), whole)


def test_two_slices_have_a_spread():
    """S = 2, values 1 and 3: sums 2, 4, 4, 6 are equally likely."""
    drawn = bootstrap.resample(np.array([[1.0], [3.0]]), 4000, np.random.default_rng(0)).ravel()
    assert sorted(set(drawn)) == [2, 4, 6] and np.mean(drawn == 4) == pytest.approx(0.5, abs=0.03)


def test_twelve_slices_by_enumeration():
    """S = 12, runs of 2: all 12^6 resamples enumerated; the interval of the drawn ones agrees
    with that of all."""
    values = np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    pairs = values + np.roll(values, -1)
    every = np.zeros(1)
    for _ in range(6):
        every = (every[:, None] + pairs).ravel()
    drawn = bootstrap.resample(values[:, None], 40_000, np.random.default_rng(0))[:, 0]
    assert drawn.mean() == pytest.approx(
        every.mean(), abs=4 * every.std() / 200
    ) and drawn.std() == pytest.approx(every.std(), rel=0.02)
    assert bootstrap.interval(drawn) == pytest.approx(bootstrap.interval(every), abs=1.01)


def test_interval_covers_a_known_mean_of_dependent_slices():
    """AR(1) minutes that correlate by 0.48 over seven, as errors do: runs of minutes, and of
    S^(1/3), would cover far less than an hour's."""
    rng, hits = np.random.default_rng(0), dict.fromkeys((1, 7, 59), 0)
    assert bootstrap.block_length(359) == 59
    for _ in range(300):
        x = signal.lfilter([1.0], [1.0, -0.9], rng.normal(size=459))[-359:]
        low, high = bootstrap.interval(bootstrap.resample(x[:, None], 300, rng)[:, 0] / 359)
        hits[59] += low <= 0 <= high
        for length in (1, 7):
            rows = (rng.integers(359, size=(300, -(-359 // length), 1)) + np.arange(length)) % 359
            low, high = bootstrap.interval(x[rows.reshape(300, -1)[:, :359]].mean(1))
            hits[length] += low <= 0 <= high
    assert hits[59] > 0.72 * 300 and hits[59] - hits[7] > 0.1 * 300 and hits[7] > hits[1]
