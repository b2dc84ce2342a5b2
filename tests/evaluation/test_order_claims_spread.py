"""How unsure a claim on sequences is: seeds, spread within cells, measured spreads, and what a
first validation leaves open."""

import math

import numpy as np
import pytest
from known_spreads import content
from order_numbers import GPT, NARROW, RANDOM, made, number
from scipy import stats

from stages.claims import levels
from stages.claims.levels import Side
from stages.sequences import claims
from stages.sequences.comparisons import Ordered
from stages.spreads import Spreads

# --- numbers


def test_without_spread_within_cells_the_interval_of_a_difference_is_welchs():
    a, b = (0.95, 0.97, 0.96, 0.99), (0.90, 0.94, 0.91)
    part = levels.difference(
        made("maze", {RANDOM: a, GPT: b}),
        "x",
        *(made("maze", {RANDOM: a, GPT: b}).side(arm) for arm in (RANDOM, GPT)),
        0.0,
        True,
    )
    welch = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.90)
    assert part.interval == pytest.approx([welch.low, welch.high], rel=1e-5) and part.numbers[
        "value"
    ] == pytest.approx(np.mean(a) - np.mean(b))


def within(seeds: int, known: Spreads, bar: float = 0.45):
    """Whether a share of 0.5, known to a tenth from its samples, is above a bar."""
    cells = {f"{RANDOM}-s{k}": {"x": number(0.5, 0.1)} for k in range(seeds)}
    measured = Ordered("set", {"cells": cells, "kind": "maze"}, known)
    return levels.against(measured, "x", Side(RANDOM, ("x",)), bar, True, "share")


def test_what_varies_within_cells_widens_one_seed_and_is_not_divided_by_seeds():
    one, three = within(1, NARROW), within(3, NARROW)
    assert one.interval == pytest.approx([0.4, 0.6]) and three.interval == pytest.approx([0.4, 0.6])
    assert "one seed" in one.why and one.verdict == "undecided"
    assert within(1, NARROW, 0.35).verdict == within(3, NARROW, 0.35).verdict == "holds"


def test_one_seed_is_as_unsure_as_training_was_measured_to_be_and_undecided_where_it_was_not():
    part = within(1, Spreads(content(("sigma_gpt",), 0.05, 3)), 0.35)
    own = (0.1 / stats.norm.ppf(0.95)) ** 2
    half = stats.t.ppf(0.95, (own + 0.05**2) ** 2 / (0.05**4 / 3)) * math.sqrt(own + 0.05**2)
    assert part.interval == pytest.approx([0.5 - half, 0.5 + half], rel=1e-9)
    assert part.verdict == "holds"
    wide, blind = (within(1, Spreads(known), 0.35) for known in (content(("sigma_gpt",), 0.2), {}))
    assert wide.verdict == blind.verdict == "undecided"
    assert wide.interval[0] < 0.35 and blind.interval is None
    assert "of one seed, and the spread over seeds was not measured" in blind.why
    assert within(3, Spreads({}), 0.35).verdict == "holds"


def test_what_was_never_trained_needs_no_spread():
    cells = {"uniform": {"x": number(0.5, 0.1)}}
    measured = Ordered("set", {"cells": cells, "kind": "maze"})
    part = levels.against(measured, "x", Side("uniform", ("x",)), 0.35, True, "share")
    assert part.interval == pytest.approx([0.4, 0.6]) and part.verdict == "holds"


def test_two_orders_of_one_kind_share_one_measurement():
    """Estimated once with 3 degrees of freedom: Student's t with 3, in logarithms or not."""
    known = Spreads(content(("sigma_gpt",), 0.1, 3))
    half = stats.t.ppf(0.95, 3) * math.sqrt(2) * 0.1
    mazes = made("maze", {GPT: (0.9,), RANDOM: (0.5,)}, known=known)
    sides = [mazes.side(arm) for arm in (GPT, RANDOM)]
    part = levels.difference(mazes, "x", *sides, 0.0, True)
    assert part.interval == pytest.approx([0.4 - half, 0.4 + half], rel=1e-6)
    climbs = made("climb", {GPT: (90.0,), RANDOM: (50.0,)}, known=known)
    part = levels.ratio(climbs, "x", *(climbs.side(arm) for arm in (GPT, RANDOM)), 1.0, True)
    middle = math.log(1.8)
    assert np.log(part.interval) == pytest.approx([middle - half, middle + half], rel=1e-6)


def test_a_loss_that_the_first_validation_had_decides_only_what_it_can():
    fast, slow = [[10, 0.9], [20, 0.5]], [[10, 2.0], [40, 0.5]]
    cells = {
        f"{arm}-s{k}": {"history": {"val": curve}}
        for arm, curve in ((GPT, fast), (RANDOM, slow))
        for k in range(2)
    }
    entry = claims.a2(
        Ordered("set", {"cells": cells, "kind": "maze"})
    )  # both reach 0.5: at steps 20 and 40
    assert entry["compared"][f"{RANDOM} > 1.97 x {GPT}"]["value"] == pytest.approx(2.0)
    cells |= {
        f"{RANDOM}-s{k}": {"history": {"val": [[10, 2.0], [60, 0.95]]}} for k in range(2)
    }  # now 0.95: GPT had it at step 10 or before
    entry = claims.a2(Ordered("set", {"cells": cells, "kind": "maze"}))
    assert "at least 6" in entry["why"] and entry["compared"][f"{RANDOM} > 1.97 x {GPT}"][
        "value"
    ] == pytest.approx(6.0)


def test_seeds_that_agree_are_decided_by_the_validations_between_which_they_reached_the_loss():
    def cells(slow, seeds=3):
        curves = {
            GPT: [[10, 2.0], [20, 1.0], [30, 0.5]],
            RANDOM: [[10, 2.0], [slow - 10, 1.0], [slow, 0.5]],
        }
        made = {
            f"{arm}-s{k}": {"history": {"val": curve}}
            for arm, curve in curves.items()
            for k in range(seeds)
        }
        return Ordered("set", {"cells": made, "kind": "maze"}, NARROW)

    entry = claims.a2(cells(300))  # 300 over 30, known within 20 to 30 and 290 to 300
    width = math.hypot(math.log(30 / 20), math.log(300 / 290)) / 2
    assert entry["verdict"] == "holds" and np.log(entry["interval"]) == pytest.approx(
        [math.log(10) - width, math.log(10) + width]
    )
    assert claims.a2(cells(60))["verdict"] == "undecided"
    entry = claims.a2(cells(300, seeds=1))  # of steps no spread is measured
    assert entry["verdict"] == "undecided" and entry["interval"] is None
    assert "of one seed" in entry["why"]
