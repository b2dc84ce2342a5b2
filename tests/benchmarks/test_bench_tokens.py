"""The length from which one layer is faster than another, of times that are known."""

import math

import pytest

from tests.benchmarks import clock
from tests.benchmarks.bench_tokens import crossings


def raced(**laws) -> dict[int, clock.Times]:
    lengths = (64, 256, 1024, 4096)
    return {
        count: clock.Times({name: [law(count), 3 * law(count)] for name, law in laws.items()},
                           [0.0, 0.0])
        for count in lengths
    }  # fmt: skip


def test_linear_and_square_costs_cross_where_they_are_equal():
    times = raced(linear=lambda n: 500.0 * n, square=lambda n: 1.0 * n * n)
    assert crossings(times, "linear", "square") == pytest.approx([500.0, 500.0])


def test_what_is_faster_everywhere_or_nowhere_is_told():
    times = raced(fast=lambda n: n, slow=lambda n: 2 * n)
    assert crossings(times, "fast", "slow") == [64.0, 64.0]
    assert crossings(times, "slow", "fast") == [math.inf, math.inf]


def test_who_is_not_timed_at_the_longest_crosses_within_its_own_lengths():
    times = raced(linear=lambda n: 500.0 * n, square=lambda n: 1.0 * n * n)
    del times[4096].rounds_ms["linear"]
    assert crossings(times, "linear", "square") == pytest.approx([500.0, 500.0])
