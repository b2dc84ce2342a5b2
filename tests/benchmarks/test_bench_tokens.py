"""The length from which one layer is faster than another, of times that are known; what a layer
keeps; goals."""

import math

import pytest

from stages.tokens.parts.attending import SelfAttention
from stages.tokens.parts.hyper import HyperMix
from tests.benchmarks import clock
from tests.benchmarks.bench_tokens import HIDDEN, WIDTH, crossings, judged, kept, products


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


def test_what_a_layer_keeps_grows_with_the_length_and_leaves_its_weights_out():
    mixer = HyperMix(WIDTH, HIDDEN, 1, True, "layer", False)
    tokens_mib = 512 * WIDTH * 4 / 2**20
    assert 3 * tokens_mib < kept(mixer, 512) < 20 * tokens_mib
    fixed = kept(mixer, 512) - (kept(mixer, 1024) - kept(mixer, 512))
    assert fixed == pytest.approx(2 * WIDTH * HIDDEN * 4 / 2**20, rel=0.05), "F x H, twice"
    assert kept(SelfAttention(WIDTH, 8, False), 512) > 0


def test_tied_weights_save_one_hypernetwork_and_no_mixing():
    network, mixing = WIDTH * WIDTH + WIDTH * HIDDEN, 2 * WIDTH * HIDDEN
    assert products() == pytest.approx((network + mixing) / (2 * network + mixing))


def test_a_goal_is_met_on_its_own_side_of_the_bar(capsys):
    judged([("time", 0.9, 1.0, True), ("speed", 0.9, 1.0, False)])
    assert [line.rsplit(" ", 1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "met", "missed",
    ]  # fmt: skip
