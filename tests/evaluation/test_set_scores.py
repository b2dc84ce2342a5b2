"""Metrics on sets: against the definitions written out, laws of the bootstrap over groups, and
what is undefined."""

import numpy as np
import pytest

from stages.fields import scores as set_scores
from stages.fields.scores import Answers
from stages.scores import groups


def rng(seed=0):
    return np.random.default_rng(seed)


def some(sets=30, targets=7, components=3, groups=10, seed=1):
    draw = rng(seed)
    measured = draw.normal(3, 2, (sets, targets, components)) * np.arange(1, components + 1)
    return Answers(
        measured + draw.normal(0, 0.5, measured.shape),
        measured,
        np.arange(sets) % groups * 11 - 5,
        measured + draw.normal(0, 4, measured.shape),
    )


def values(answers, batch=8, **more):
    metrics, undefined = set_scores.summarise(answers, batch, "m/s", 200, rng(), **more)
    assert undefined == {}
    return {name: entry["value"] for name, entry in metrics.items()}


@pytest.mark.parametrize("components", [1, 2, 3, 5])
def test_every_metric_is_its_definition(components):
    a = some(components=components)
    got, error = values(a), a.predicted - a.measured
    assert got["mse"] == pytest.approx(np.mean(error**2)) and got["rmse"] == pytest.approx(
        np.sqrt(np.mean(error**2))
    )
    assert got["mse_permuted"] == pytest.approx(np.mean((a.permuted - a.measured) ** 2))
    around = a.measured - a.measured.mean((0, 1))  # each component has its own mean
    assert got["r2"] == pytest.approx(1 - (error**2).sum() / (around**2).sum())
    batches = [
        error[first : first + 8] for first in range(0, 30, 8)
    ]  # the last holds six sets and counts as much
    assert got["mse_batch_mean"] == pytest.approx(np.mean([np.mean(part**2) for part in batches]))
    assert got["rmse_batch_mean"] == pytest.approx(
        np.mean([np.sqrt(np.mean(part**2)) for part in batches])
    )


def test_with_batches_of_one_size_the_documents_mse_is_the_global_one_and_their_rmse_is_smaller():
    a = some(sets=32)
    a.predicted[:8] += 3
    got = values(a, batch=8)
    assert (
        got["mse_batch_mean"] == pytest.approx(got["mse"])
        and got["rmse_batch_mean"] < 0.99 * got["rmse"]
    )


def test_units_and_counts_stand_beside_every_number():
    metrics, _ = set_scores.summarise(some(), 8, "m/s", 200, rng(), "_val")
    assert {name: (entry["unit"], entry["n"]) for name, entry in metrics.items()} == {
        "mse_val": ("(m/s)²", 630),
        "rmse_val": ("m/s", 630),
        "r2_val": ("1", 630),
        "mse_permuted_val": ("(m/s)²", 630),
        "mse_batch_mean_val": ("(m/s)²", 630),
        "rmse_batch_mean_val": ("m/s", 630),
    }
    assert all(entry["low"] <= entry["value"] <= entry["high"] for entry in metrics.values())


@pytest.mark.parametrize(
    ("unit", "square"), [("1", "1"), ("K", "K²"), ("m/s", "(m/s)²"), ("1/s", "(1/s)²")]
)
def test_units_of_squares(unit, square):
    assert set_scores.squared(unit) == square


def test_sets_of_one_group_are_drawn_together():
    """Groups whose sets repeat each other: the interval must be that of the groups alone,
    however many sets each holds."""
    draw = rng(3)
    error = draw.normal(size=(12, 5, 1))
    alone = Answers(error, np.zeros_like(error), np.arange(12))
    copied = Answers(np.repeat(error, 20, 0), np.zeros((240, 5, 1)), np.repeat(np.arange(12), 20))
    apart = Answers(copied.predicted, copied.measured, np.arange(240))
    one, many, false = (
        set_scores.summarise(a, 500, "1", 2000, rng())[0]["mse"] for a in (alone, copied, apart)
    )
    assert (many["low"], many["high"]) == pytest.approx((one["low"], one["high"]))
    assert false["high"] - false["low"] < 0.4 * (
        one["high"] - one["low"]
    )  # what ignoring the groups would claim


def test_the_interval_covers_the_truth_nine_times_in_ten():
    draw, hits = rng(5), 0
    for _ in range(300):
        error = np.sqrt(draw.gamma(2, 0.5, 60))[:, None, None]
        low_high = set_scores.summarise(
            Answers(error, np.zeros_like(error), np.arange(60)), 60, "1", 300, draw
        )[0]["mse"]
        hits += low_high["low"] <= 1 <= low_high["high"]
    assert 0.84 < hits / 300 < 0.96


def test_resamples_are_those_of_drawn_groups_and_chunks_change_nothing(monkeypatch):
    sums = {"a": np.arange(6.0), "n": np.ones(6)}
    got = groups.drawn(sums, 500, rng())
    chosen = rng().integers(6, size=(500, 6))
    assert np.array_equal(got["a"], chosen.sum(1)) and (got["n"] == 6).all()
    monkeypatch.setattr(groups, "CHUNK", 60)
    assert np.array_equal(groups.drawn(sums, 500, rng())["a"], got["a"])


def test_one_group_has_no_interval():
    metrics, _ = set_scores.summarise(some(groups=1), 30, "K", 200, rng())
    assert all("low" not in entry for entry in metrics.values()) and len(metrics) == 6


def test_what_does_not_vary_has_no_r2_and_it_is_said():
    a = Answers(np.full((4, 3, 1), 2.0), np.ones((4, 3, 1)), np.arange(4))
    metrics, undefined = set_scores.summarise(a, 2, "1", 100, rng())
    assert (
        "r2" not in metrics
        and "denominator" in undefined["r2"]
        and metrics["mse"]["value"] == 1
        and "mse_permuted" not in metrics
    )


def test_a_mean_over_sets_weighs_each_by_its_count():
    total, count, group = np.array([3.0, 0, 10, 4]), np.array([1, 0, 5, 2]), np.array([1, 2, 1, 3])
    entry = groups.mean_of(total, group, "K", 500, rng(), count)
    assert (
        entry["value"] == 17 / 8
        and entry["n"] == 8
        and 2 <= entry["low"] <= entry["value"] <= entry["high"] <= 13 / 6
    )
    assert groups.mean_of(total, group, "K", 500, rng())["value"] == 17 / 4
