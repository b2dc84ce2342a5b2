"""Intervals over few groups hold what they are said to hold, by simulation of what they are of."""

import numpy as np
import pytest
from scipy.special import stdtrit

from stages import seeds
from stages.claims.levels import Side, difference, half_width, level
from stages.claims.parts import Evaluation
from stages.scores import few

TIMES = 3000


def drawn(rng: np.random.Generator, groups: int, size: int, mean: float) -> np.ndarray:
    """Values of `groups` of `size` that go together: each group has its own level, normal."""
    return (mean + rng.standard_normal((groups, 1)) + rng.standard_normal((groups, size))).ravel()


@pytest.mark.parametrize(("groups", "size"), [(16, 7), (10, 10), (10, 4), (4, 3)])
def test_of_a_hundred_intervals_ninety_hold_the_mean(groups, size):
    rng, held = seeds.stream(0, "few", groups), 0
    group = np.repeat(np.arange(groups), size)
    for _ in range(TIMES):
        one = few.mean_of(drawn(rng, groups, size, 20.0), group, "1/s")
        held += one["low"] < 20.0 < one["high"]
    assert 0.88 <= held / TIMES <= 0.92


@pytest.mark.parametrize(("groups", "size"), [(16, 7), (10, 10)])
def test_claims_that_rest_on_them_hold_as_often(groups, size):
    """One number beside a bar, and two arms' difference."""
    rng, held = seeds.stream(0, "few", "claims", groups), np.zeros(2)
    group, side = np.repeat(np.arange(groups), size), Side("linear", ("vpt",))
    for _ in range(TIMES):
        cells = {
            name: {"vpt": few.mean_of(drawn(rng, groups, size, 20.0), group, "1/s")}
            for name in ("linear", "mean")
        }
        measured = Evaluation("l96", cells)
        alone = level(measured, side, False)
        held[0] += abs(alone.value - 20.0) < half_width([alone])
        part = difference(measured, "one > other", side, Side("mean", ("vpt",)), 0.0, True)
        held[1] += part.verdict == "undecided"
    assert (held / TIMES >= 0.88).all() and (held / TIMES <= 0.92).all(), held / TIMES


def test_groups_of_unequal_size_weigh_by_their_members():
    values, group = np.array([1.0, 2.0, 3.0, 10.0]), np.array([0, 0, 0, 1])
    one = few.mean_of(values, group, "days")
    off = np.array([6.0 - 3 * 4.0, 10.0 - 4.0])
    half = stdtrit(1, 0.95) * np.sqrt(2 * np.square(off).sum()) / 4
    assert one == {"value": 4.0, "unit": "days", "n": 4, "low": 0.0, "high": 4.0 + half}


def test_a_share_stays_one_and_one_group_has_no_interval():
    share = few.mean_of(np.array([1.0, 1.0, 1.0, 0.0]), np.array([0, 0, 1, 1]), "1")
    assert (share["low"], share["high"]) == (0.0, 1.0)
    assert {*few.mean_of(np.ones(3), np.zeros(3), "days")} == {"value", "unit", "n"}
