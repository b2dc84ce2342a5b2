"""How unsure a claim on sets of points is: intervals that other reckonings must agree with,
measured spreads, counts that were cut off."""

import math

import numpy as np
import pytest
from known_spreads import alike, content
from scipy import stats
from set_numbers import made, near, number

from stages.claims.levels import Level, Side, half_width, level
from stages.fields.comparisons import ratio
from stages.spreads import PRIOR, Spreads

NORMAL = stats.norm.ppf(0.95)


# --- intervals


def test_without_spread_within_cells_the_interval_is_welchs():
    a, b = np.log([0.010, 0.012, 0.011, 0.013]), np.log([0.020, 0.029, 0.024])
    measured = made({"msa-shared-20k": np.exp(a), "tfs-shared-20k": np.exp(b)}, spread=1.0)
    part = ratio(measured, "msa-shared-20k", "tfs-shared-20k")
    welch = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.90)
    assert part.interval == pytest.approx([math.exp(welch.low), math.exp(welch.high)], rel=1e-9)
    assert (
        part.numbers["value"] == pytest.approx(math.exp(b.mean() - a.mean()))
        and part.verdict == "holds"
    )


def test_one_seed_borrows_the_spread_of_the_other_arm_with_its_degrees_of_freedom():
    lender, borrower = Level(0.0, 0.04, 0.0, 3, 1), Level(1.0, math.nan, 0.0, 1, 1)
    assert half_width([lender, borrower]) == pytest.approx(
        stats.t.ppf(0.95, 2) * math.sqrt(0.04 / 3 + 0.04)
    )
    assert half_width([borrower, lender]) == half_width([lender, borrower])


def test_one_seed_each_adds_the_measured_spread_to_the_cells_own_and_the_part_says_so():
    """Student's, by Welch: of what is known of the sets, infinitely many degrees of freedom."""
    seeds = content(("msa",), 0.05, 4)["seeds"] | content(("tfs",), 0.08, 2)["seeds"]
    known = Spreads({"seeds": seeds})
    one, other = (known.of(kind, "mse") for kind in ("msa", "tfs"))
    arms = {"msa-shared-20k": (0.01,), "tfs-shared-20k": (0.02,)}
    part = ratio(made(arms, spread=1.1, known=known), *arms)
    total = one.relative**2 + other.relative**2 + 2 * (math.log(1.1) / NORMAL) ** 2
    degrees = total**2 / (one.relative**4 / one.freedom + other.relative**4 / other.freedom)
    half = stats.t.ppf(0.95, degrees) * math.sqrt(total)
    middle = math.log(2)
    assert np.log(part.interval) == pytest.approx([middle - half, middle + half], rel=1e-9)
    assert "one seed" in part.why and part.verdict == "holds"


def test_without_a_measured_spread_one_seed_each_is_undecided_whatever_the_sets_say():
    arms = {"msa-shared-20k": (0.01,), "tfs-shared-20k": (0.09,)}
    for spread in (1.0, 1.1):
        part = ratio(made(arms, spread=spread), *arms)
        assert part.verdict == "undecided" and part.interval is None
        assert part.numbers["value"] == pytest.approx(9)
        assert "of one seed, and the spread over seeds was not measured" in part.why


def test_a_wide_spread_turns_what_holds_or_fails_into_undecided_and_a_narrow_one_leaves_it():
    arms = {"msa-shared-20k": (0.01,), "tfs-shared-20k": (0.02,)}

    def verdicts(size):
        measured = made(arms, known=Spreads(content(("msa", "tfs"), size)))
        return [ratio(measured, *names).verdict for names in (list(arms), reversed(arms))]

    assert verdicts(0.01) == ["holds", "fails"] and verdicts(0.5) == ["undecided", "undecided"]


def test_arms_of_one_kind_have_one_measurement_and_no_more_degrees_of_freedom_than_it():
    """Student's statistic of a difference whose variance, 2 s^2, was estimated once."""
    arms = {"msa-shared-20k": (0.01,), "msa-traditional-20k": (0.02,)}
    part = ratio(made(arms, spread=1.0, known=Spreads(content(("msa",), 0.1, 3))), *arms)
    half = stats.t.ppf(0.95, 3) * math.sqrt(2) * 0.1
    middle = math.log(2)
    assert np.log(part.interval) == pytest.approx([middle - half, middle + half], rel=1e-9)


def test_an_arm_of_several_seeds_keeps_its_own_spread_beside_a_measured_one():
    arms = {"msa-shared-20k": (0.009, 0.010, 0.012), "tfs-shared-20k": (0.02,)}
    part = ratio(made(arms, spread=1.0, known=Spreads(content(("msa", "tfs"), 0.3, 5))), *arms)
    own = np.var(np.log(arms["msa-shared-20k"]), ddof=1) / 3
    other = alike(0.3, 5) ** 2
    degrees = (own + other) ** 2 / (own**2 / 2 + other**2 / (5 + PRIOR))
    middle = math.log(0.02) - np.log(arms["msa-shared-20k"]).mean()
    half = stats.t.ppf(0.95, degrees) * math.sqrt(own + other)
    assert np.log(part.interval) == pytest.approx([middle - half, middle + half], rel=1e-9)


def test_what_was_never_trained_needs_no_spread():
    measured = made({"msa-shared-20k": (0.01, 0.011, 0.012)}, spread=1.1)
    measured.cells |= {
        "mean": {"metrics": {"mse": number(0.5, 1.2)}},
        "kriging": {"metrics": {"mse": number(0.1, 1.2)}},
    }
    part = ratio(measured, "kriging", "mean")
    width = math.sqrt(2) * math.log(1.2)
    assert np.log(part.interval) == pytest.approx([math.log(5) - width, math.log(5) + width])
    assert part.verdict == "holds"
    assert ratio(measured, "msa-shared-20k", "mean").verdict == "holds"
    # it lends nothing, for it has no spread to lend
    del measured.cells["msa-shared-20k-s1"], measured.cells["msa-shared-20k-s2"]
    assert ratio(measured, "msa-shared-20k", "mean").verdict == "undecided"


def test_nothing_that_varies_gives_no_interval_and_no_verdict():
    part = ratio(
        made({"msa-shared-20k": (0.01,), "tfs-shared-20k": (0.02,)}, spread=1.0),
        "msa-shared-20k",
        "tfs-shared-20k",
    )
    assert part.verdict == "undecided" and part.interval is None and "was not measured" in part.why
    measured = made({}, spread=1.0)
    measured.cells |= {
        name: {"metrics": {"mse": number(value, 1.0)}}
        for name, value in (("mean", 2.0), ("kriging", 1.0))
    }
    part = ratio(measured, "kriging", "mean")
    assert part.verdict == "undecided" and part.interval is None


def machines(rule, count=600, sd=0.2, trainings=6):
    """Of pairs of machines that train two arms once each: how much is decided, and to the contrary.

    Truths lie anywhere within three deviations; the spread was measured with `trainings`.
    """
    rng, decided, contrary = np.random.default_rng(0), 0, 0
    for truth in rng.uniform(-3 * sd, 3 * sd, count):
        size = float(sd * np.sqrt(rng.chisquare(trainings) / trainings))
        known = Spreads(content(("a", "b"), size, trainings))
        pair = [rule(*np.exp(rng.normal((0, truth), sd)), known) for _ in range(2)]
        decided += sum(one != "undecided" for one in pair)
        contrary += set(pair) == {"holds", "fails"}
    return decided / (2 * count), 2 * contrary / max(decided, 1)


def test_two_machines_that_train_once_hardly_ever_decide_the_contrary():
    """By the rule before, of the sets' own interval alone, more than a tenth of it was contrary."""

    def new(a, b, known):
        arms = {"a-x-5k": (a,), "b-x-5k": (b,)}
        return ratio(made(arms, spread=1.01, known=known), *arms).verdict

    def old(a, b, _):
        half = math.sqrt(2) * math.log(1.01)
        gap = math.log(b / a)
        return "undecided" if abs(gap) <= half else "holds" if gap > 0 else "fails"

    decided, contrary = machines(new)
    assert decided > 0.2 and contrary < 0.02
    assert machines(old)[1] > 0.1


def test_nine_of_ten_intervals_hold_the_true_ratio():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        a, b = np.exp(rng.normal(0, 0.2, 3)), np.exp(rng.normal(0.5, 0.2, 3))
        low, high = ratio(made({"a-x-5k": a, "b-x-5k": b}, spread=1.0), "a-x-5k", "b-x-5k").interval
        covered += low <= math.exp(0.5) <= high
    assert 0.87 <= covered / 400 <= 0.96


def test_the_sets_own_spread_is_not_divided_by_the_seeds_that_share_them():
    one, three = (
        level(
            made({"msa-shared-20k": (0.01,) * k}, spread=1.2),
            Side("msa-shared-20k", ("metrics", "mse")),
        )
        for k in (1, 3)
    )
    assert one.within == three.within == pytest.approx((math.log(1.2) / NORMAL) ** 2)


def test_a_count_that_was_cut_off_decides_only_what_it_can():
    def steps(left, right):
        probes = {
            arm: {"correction": {"steps": number(value, 1.1, capped=cut)}}
            for arm, (value, cut) in {"msa-a-5k": left, "gen-b-5k": right}.items()
        }
        measured = made({"msa-a-5k": near(1.0), "gen-b-5k": near(1.0)}, probes)
        return ratio(measured, "msa-a-5k", "gen-b-5k", path=("probes", "correction", "steps"))

    assert (
        steps((100, False), (300, True)).verdict == "holds"
        and "at least 3" in steps((100, False), (300, True)).why
    )
    assert steps((100, True), (300, False)).verdict == "undecided"
    assert steps((300, True), (100, False)).verdict == "fails"
    assert steps((300, False), (100, True)).verdict == "undecided"
    assert steps((100, True), (300, True)).verdict == "undecided"
