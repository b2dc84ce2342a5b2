"""Passes of a burst sampler with a perfect model: the exact recursion, the run sampler, and the
figures of the errata."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from stages.errors import InputError
from stages.sequences.evaluation import bounds, posteriors

STEP = {"length": 100, "width": 10, "places": 91}


def stirling(n, k):
    """The Stirling number of the second kind, by its sum, in whole numbers."""
    return sum((-1) ** j * math.comb(k, j) * (k - j) ** n for j in range(k + 1)) // math.factorial(
        k
    )


def test_the_chance_of_k_classes_is_d9_in_whole_numbers():
    table = bounds.classes(30)
    for m in (1, 2, 7, 30):
        exact = [math.comb(m, k) * math.factorial(k) * stirling(m, k) / m**m for k in range(m + 1)]
        np.testing.assert_allclose(table[m, : m + 1], exact, rtol=1e-10, atol=1e-300)
        assert m - table[m] @ np.arange(31) == pytest.approx((m - 1) ** m / m ** (m - 1))  # D.8


def test_the_passes_for_a_permutation_are_those_of_the_documents_and_of_drawing_them():
    mean, sd = bounds.permutation(100)
    assert (mean, sd) == (pytest.approx(5.18, abs=0.01), pytest.approx(0.60, abs=0.01))
    assert bounds.permutation(1) == (1.0, 0.0)
    assert bounds.permutation(2)[0] == pytest.approx(1.5)  # both classes at once or one left
    draw, passes = np.random.default_rng(0), []
    for _ in range(2000):
        left = number = 0
        left = 20
        while left:
            left -= len(np.unique(draw.integers(left, size=left)))
            number += 1
        passes.append(number)
    mean, sd = bounds.permutation(20)
    assert abs(np.mean(passes) - mean) < 4 * sd / 2000**0.5 and np.std(passes) == pytest.approx(
        sd, rel=0.1
    )


@pytest.mark.parametrize(
    ("orders", "runs", "mean", "sd"), [(1, 500, 3.7, 1.0), (5, 300, 3.0, 0.7), (20, 60, 2.8, 0.6)]
)
def test_the_step_laws_passes_are_those_of_the_errata(orders, runs, mean, sd):
    found = bounds.bound("step", STEP, orders, runs, np.random.default_rng(0))
    assert abs(found["mean"] - mean) < 0.06 + 3 * sd / runs**0.5 and found["sd"] == pytest.approx(
        sd, abs=0.25
    )
    assert found["wrong"] == 0


def test_a_product_needs_one_pass_and_another_kind_has_no_bound():
    assert bounds.bound("product", {}, 5, 1, np.random.default_rng(0)) == {"mean": 1.0, "sd": 0.0}
    assert bounds.bound("permutation", {"length": 100}, 5, 1, np.random.default_rng(0))[
        "mean"
    ] == pytest.approx(5.1874, abs=1e-3)
    with pytest.raises(InputError, match="maze"):
        bounds.bound("maze", {}, 5, 1, np.random.default_rng(0))
    with pytest.raises(InputError, match="walk"):
        bounds.burst("walk", {"length": 5}, 1, 1, np.random.default_rng(0))


def test_permutations_by_bursts_are_valid_and_need_more_passes_than_the_bound():
    passes = [
        bounds.burst("permutation", {"length": 40}, orders, 60, np.random.default_rng(0))
        for orders in (1, 5, 20)
    ]
    assert [wrong for _, wrong in passes] == [0, 0, 0]
    one, five, twenty = (found.mean() for found, _ in passes)
    assert one > five > twenty > bounds.permutation(40)[0] and max(passes[0][0]) <= 40


@pytest.mark.parametrize(
    "model, kind, law, length",
    [
        (
            bounds.Listed(np.array([[int(b <= t < b + 3) for t in range(8)] for b in range(6)])),
            "step",
            {"width": 3, "places": 6},
            8,
        ),
        (bounds.Shuffled(5), "permutation", {}, 5),
        (bounds.Listed(np.array(list(itertools.permutations(range(4))))), "permutation", {}, 4),
    ],
)
def test_the_perfect_models_densities_are_the_exact_posteriors(model, kind, law, length):
    """Against posteriors.py, which knows the laws in another form: marginals, and the chances
    along an order, wrong drafts included."""
    draw = np.random.default_rng(3)
    for _ in range(40):
        order = draw.permutation(length)
        tokens = (
            model.table[draw.integers(len(model.table))].copy()
            if isinstance(model, bounds.Listed)
            else draw.permutation(length)
        )
        known = np.zeros(length, bool)
        known[order[: draw.integers(length)]] = True
        expected = posteriors.conditionals(kind, tokens[None], known[None], law)[0]
        np.testing.assert_allclose(model.marginals(tokens, known), expected, atol=1e-12)
        left = order[~known[order]]
        drafted = tokens.copy()
        drafted[left] = draw.integers(expected.shape[1], size=len(left))
        seen, chances = known.copy(), []
        for place in left:
            chances.append(
                posteriors.conditionals(kind, drafted[None], seen[None], law)[
                    0, place, drafted[place]
                ]
            )
            seen[place] = True
            if chances[-1] == 0:
                break
        np.testing.assert_allclose(
            model.along(drafted, known, left)[: len(chances)], chances, atol=1e-12
        )
        assert not model.wrong(tokens)


def test_a_burst_keeps_the_longest_prefix_that_its_drafts_allow():
    """A step law of two sequences: a draft that fits one of them is kept whole, one that fits
    none is cut at its first misfit."""
    model = bounds.Listed(np.array([[0, 0, 1], [1, 1, 0]]))
    draw, nothing = np.random.default_rng(0), np.zeros(3, bool)
    density = model.marginals(nothing, nothing)
    _, whole = bounds.advanced(model, np.array([1, 1, 0]), nothing, density, 1, draw)
    assert whole.all()
    kept = [
        tuple(bounds.advanced(model, np.array([1, 1, 1]), nothing, density, 1, draw)[1].tolist())
        for _ in range(400)
    ]
    counts = {form: kept.count(form) for form in set(kept)}
    assert set(counts) == {
        (False, False, True),
        (True, True, False),
        (True, False, False),
        (False, True, False),
    }
    expected = {
        (False, False, True): 2 / 6,
        (True, True, False): 2 / 6,
        (True, False, False): 1 / 6,
        (False, True, False): 1 / 6,
    }
    assert (
        stats.chisquare(
            [counts[form] for form in expected], [400 * share for share in expected.values()]
        ).pvalue
        > 1e-3
    )
