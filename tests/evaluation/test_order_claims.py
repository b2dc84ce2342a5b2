"""The claims about sequences in any order: hand-made numbers that make each hold, fail, or stay
undecided by name."""

import math

import numpy as np
import pytest
from known_spreads import content
from order_cells import (
    CURRICULUM,
    DIFFUSION,
    FRACTAL,
    GPT,
    NARROW,
    RANDOM,
    ROUNDS,
    made,
    near,
    number,
)
from scipy import stats

from stages import files
from stages.claims import levels
from stages.claims.levels import Side
from stages.sequences import claims, comparisons
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
    assert "of one seed, and the spread of training was not measured" in blind.why
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


def test_the_step_that_reaches_a_loss_lies_straight_between_two_validations():
    curve = [[10, 2.0], [20, 1.0], [30, 1.5], [40, 0.5]]
    assert comparisons.reached(curve, 1.5) == (15.0, 10, 20, False) and comparisons.reached(
        curve, 1.0
    ) == (20.0, 10, 20, False)
    assert comparisons.reached(curve, 0.75) == (37.5, 30, 40, False) and comparisons.reached(
        curve, 2.0
    ) == (10.0, 10, 10, True)


def test_arms_of_a_curriculum_are_found_by_the_word_and_pairs_have_one_size():
    cells = {
        f"sigma_gpt-{name}-s0": {}
        for name in (
            "curriculum-tiny",
            "curriculum_50-tiny",
            "left_to_right-tiny",
            "left_to_right-small",
            "random-small",
        )
    }
    found = Ordered("set", {"cells": cells})
    assert found.of("curriculum") == ["sigma_gpt-curriculum-tiny", "sigma_gpt-curriculum_50-tiny"]
    assert found.pairs("left_to_right", "curriculum") == [
        (GPT, "sigma_gpt-curriculum-tiny"),
        (GPT, "sigma_gpt-curriculum_50-tiny"),
    ]
    assert found.pairs("left_to_right", "random") == [
        ("sigma_gpt-left_to_right-small", "sigma_gpt-random-small")
    ]
    assert found.pairs("random", "diffusion") == [("sigma_gpt-random-small", "diffusion")]


@pytest.mark.parametrize(
    ("arm", "names", "stands"),
    [
        (GPT, ["exact", "left_to_right"], "left_to_right"),
        (RANDOM, ["burst_1", "exact", "left_to_right", "own"], "own"),
        (DIFFUSION, ["diffusion_1", "diffusion_16", "diffusion_4"], "diffusion_16"),
        ("uniform", ["uniform"], "uniform"),
        (DIFFUSION, [], None),
    ],
)
def test_the_sampler_that_an_arm_is_told_by(arm, names, stands):
    assert comparisons.stands(arm, names) == stands


# --- claims: (function, data set that makes it hold, changes that make it fail)


GOOD = {
    "A-1": (claims.a1, lambda **v: made("maze", {GPT: near(0.99), RANDOM: near(0.99)} | v)),
    "A-1 climb": (
        claims.a1,
        lambda **v: made("climb", {GPT: near(275.0), RANDOM: near(141.0)} | v),
    ),
    "A-2": (
        claims.a2,
        lambda **v: made(
            "maze", {GPT: near(1.0), RANDOM: near(1.0)}, steps={GPT: 100.0, RANDOM: 404.0} | v
        ),
    ),
    "A-3": (
        claims.a3,
        lambda **v: made(
            "grammar",
            {arm: near(1.0) for arm in (GPT, RANDOM, CURRICULUM)},
            perplexity={GPT: (18.1, 18.1), RANDOM: (24.0, 30.4), CURRICULUM: (24.0, 18.6)} | v,
        ),
    ),
    "A-4": (claims.a4, lambda **v: made("climb", {RANDOM: near(141.4), FRACTAL: near(152.0)} | v)),
    "A-4 text": (
        claims.a4,
        lambda **v: made(
            "text",
            {RANDOM: near(1.0), FRACTAL: near(1.0)},
            perplexity={RANDOM: (24.5, 30.0), FRACTAL: (27.8, 90.0)} | v,
        ),
    ),
    "A-6": (
        claims.a6,
        lambda **v: made(
            "permutation",
            {RANDOM: near(0.99, 0.0005)},
            ROUNDS | v,
            bounds={"5": {"mean": 3.2, "sd": 0.6}},
        ),
    ),
    "A-6 maze": (claims.a6, lambda **v: made("maze", {RANDOM: near(0.97)}, ROUNDS | v)),
    "A-7": (claims.a7, lambda **v: made("step", {RANDOM: near(0.97)}, ROUNDS | v)),
    "A-8": (claims.a8, lambda **v: made("step", {RANDOM: near(0.97), DIFFUSION: near(0.6)} | v)),
    "A-9": (
        claims.a9,
        lambda **v: made(
            "walk", {RANDOM: near(1.0)}, apart={"0": 0.03, "10": 0.04, "50": 0.02} | v
        ),
    ),
    "A-10": (
        claims.a10,
        lambda **v: made(
            "climb",
            {GPT: near(275.0), RANDOM: near(141.0)},
            prompts={GPT: {"0": 1.0, "50": 0.19}, RANDOM: {"0": 1.0, "50": 0.45}} | v,
        ),
    ),
}
BAD = [
    ("A-1", {RANDOM: near(0.9)}),
    ("A-1 climb", {RANDOM: near(300.0)}),
    ("A-2", {RANDOM: 150.0}),
    ("A-3", {RANDOM: (19.0, 18.2)}),
    ("A-3", {CURRICULUM: (24.0, 25.0)}),
    ("A-4", {FRACTAL: near(130.0)}),
    ("A-4", {FRACTAL: near(300.0)}),
    ("A-4 text", {FRACTAL: (35.0, 30.0)}),
    ("A-6", {"burst_5": 4.5}),
    ("A-6 maze", {"burst_5": 20.0}),
    ("A-7", {"burst_20": 6.0}),
    ("A-8", {DIFFUSION: near(0.995)}),
    ("A-9", {"10": 0.3}),
    ("A-10", {GPT: {"0": 1.0, "50": 0.9}}),
    ("A-10", {RANDOM: {"0": 2.5, "50": 0.6}}),
]


@pytest.mark.parametrize("name", GOOD)
def test_numbers_like_the_printed_ones_make_a_claim_hold(name):
    claim, data = GOOD[name]
    entry = claim(data())
    assert (
        entry["id"] == name.split(" ")[0]
        and entry["verdict"] == "holds"
        and entry["seeds"] == 3
        and entry["interval"]
        and entry["source"].startswith("thesis")
    )


@pytest.mark.parametrize(("name", "changed"), BAD)
def test_one_number_the_wrong_way_makes_its_claim_fail(name, changed):
    claim, data = GOOD[name]
    entry = claim(data(**changed))
    assert entry["verdict"] == "fails" and "should be" in entry["why"].split(";")[0]


@pytest.mark.parametrize(
    ("name", "arm"),
    [
        ("A-1", GPT),
        ("A-1 climb", RANDOM),
        ("A-3", CURRICULUM),
        ("A-4", FRACTAL),
        ("A-8", DIFFUSION),
        ("A-10", GPT),
    ],
)
def test_a_model_that_was_not_trained_leaves_its_claim_undecided_by_name(name, arm):
    claim, data = GOOD[name]
    found = data()
    found.cells = {cell: entry for cell, entry in found.cells.items() if not cell.startswith(arm)}
    entry = claim(found)
    assert (
        entry["verdict"] == "undecided"
        and f"no trained {arm.rpartition('-')[0].removesuffix('-plain')}" in entry["why"]
    )


def test_what_was_not_measured_leaves_a_claim_undecided_by_name():
    assert "posteriors/0 of" in claims.a9(made("walk", {RANDOM: near(1.0)}))["why"]
    assert (
        "no validation losses"
        in claims.a2(made("maze", {GPT: near(1.0), RANDOM: near(1.0)}))["why"]
    )
    assert "no bound of passes" in claims.a6(made("permutation", {RANDOM: near(1.0)}))["why"]
    assert (
        "two numbers of orders"
        in claims.a7(made("step", {RANDOM: near(1.0)}, {"burst_5": 3.0}))["why"]
    )


def test_invalid_bursts_near_the_bound_do_not_make_the_claim_hold():
    measured = made("permutation", {RANDOM: near(0.7)}, bounds={"5": {"mean": 3.2, "sd": 0.6}})
    assert claims.a6(measured)["verdict"] == "fails"


def test_a_product_that_always_takes_one_pass_is_decided_by_one_seed():
    measured = made(
        "product", {RANDOM: (1.0,)}, {"burst_5": 1.0}, bounds={"5": {"mean": 1.0, "sd": 0.0}}
    )
    assert claims.a6(measured)["verdict"] == "holds"
    measured.spreads = Spreads({})
    entry = claims.a6(measured)
    assert entry["verdict"] == "undecided" and "was not measured of its kind" in entry["why"]


def test_diffusion_is_asked_at_the_steps_nearest_to_the_bursts_passes():
    measured = made("step", {RANDOM: near(0.97), DIFFUSION: near(0.6)})
    assert claims.at_equal(measured, RANDOM, "burst_5", DIFFUSION) == "diffusion_4"
    assert claims.at_equal(made("step", {RANDOM: near(0.97)}), RANDOM, "burst_5", DIFFUSION) is None


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
    assert entry["compared"][f"{RANDOM} > 2 x {GPT}"]["value"] == pytest.approx(2.0)
    cells |= {
        f"{RANDOM}-s{k}": {"history": {"val": [[10, 2.0], [60, 0.95]]}} for k in range(2)
    }  # now 0.95: GPT had it at step 10 or before
    entry = claims.a2(Ordered("set", {"cells": cells, "kind": "maze"}))
    assert "at least 6" in entry["why"] and entry["compared"][f"{RANDOM} > 2 x {GPT}"][
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


# --- all of them


def test_every_claim_stands_once_for_each_data_set_it_speaks_of_and_once_undecided_for_none(
    tmp_path,
):
    measured = GOOD["A-10"][1]()
    files.write_json(
        tmp_path / "evaluated/climbs/metrics.json", {"cells": measured.cells, "kind": "climb"}
    )
    files.write_json(tmp_path / "evaluated/.killed/metrics.json", {})
    entries = claims.check(tmp_path)
    assert [entry["id"] for entry in entries] == [f"A-{k}" for k in range(1, 11)]
    told = {entry["id"]: entry for entry in entries}
    assert told["A-10"]["dataset"] == "climbs" and told["A-10"]["verdict"] == "holds"
    assert (
        told["A-3"]["dataset"] == told["A-5"]["dataset"] == "–"
        and told["A-3"]["verdict"] == told["A-5"]["verdict"] == "undecided"
    )
    assert "number of training sequences" in told["A-5"]["why"] and all(
        math.isfinite(entry["seeds"]) for entry in entries
    )
