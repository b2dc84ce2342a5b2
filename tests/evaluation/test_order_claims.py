"""The claims about sequences in any order: hand-made numbers that make each hold, fail, or stay
undecided by name."""

import math

import pytest
from order_numbers import CURRICULUM, DIFFUSION, FRACTAL, GPT, RANDOM, ROUNDS, made, near, number

from stages import files
from stages.sequences import claims, comparisons
from stages.sequences.comparisons import Ordered
from stages.spreads import Spreads


def test_the_step_that_reaches_a_loss_lies_straight_between_two_validations():
    curve = [[10, 2.0], [20, 1.0], [30, 1.5], [40, 0.5]]
    found = {target: comparisons.reached(curve, target) for target in (1.5, 1.0, 0.75, 2.0, 0.4)}
    assert found == {
        1.5: (15.0, 10, 20, False, False),
        1.0: (20.0, 10, 20, False, False),
        0.75: (37.5, 30, 40, False, False),
        2.0: (10.0, 10, 10, True, False),  # at the first, or before
        0.4: (40.0, 40, 40, False, True),  # never
    }


def test_the_steps_to_the_loss_where_gpt_ends_are_read_from_the_curves_and_bounds_are_named():
    """GPT ends at 1.0, so the level is 1.02, which it reaches at 9.8 / 10 of its last stretch."""
    curves = {
        GPT: [[10, 2.0], [20, 1.0]],
        RANDOM: [[10, 2.0], [50, 1.02], [90, 0.9]],
        FRACTAL: [[10, 2.0], [90, 1.1]],
        CURRICULUM: [[10, 0.9], [90, 0.8]],
    }
    cells = {f"{arm}-s0": {"history": {"val": curve}} for arm, curve in curves.items()}
    measured = Ordered("set", {"cells": cells, "kind": "maze"})
    for arm, step, bound in ((RANDOM, 50, ""), (FRACTAL, 90, "low"), (CURRICULUM, 10, "high")):
        target, reached = comparisons.to_level(measured, GPT, arm)
        assert target == pytest.approx(1.02) and reached[GPT][0].step == pytest.approx(19.8)
        assert reached[arm][0].step == pytest.approx(step)
        assert comparisons.cut_off(reached[arm]) == bound
    assert comparisons.ratio_of("", "high") == "low" == comparisons.ratio_of("low", "high")
    assert comparisons.ratio_of("high", "high") == "both" != comparisons.ratio_of("high", "")
    assert comparisons.to_level(Ordered("set", {"cells": {f"{GPT}-s0": {}}}), GPT, RANDOM) is None


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
    cells |= {f"diffusion-{name}-small-s0": {} for name in ("former", "plain", "quiet")}
    assert Ordered("set", {"cells": cells}).pairs("random", "diffusion") == [
        ("sigma_gpt-random-small", "diffusion-plain-small")
    ]  # ablations decide no claim


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
            "step", {RANDOM: near(0.99, 0.0005)}, ROUNDS | v, bounds={"5": {"mean": 3.2, "sd": 0.6}}
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


def test_more_passes_than_the_best_order_needs_decide_nothing_of_permutations():
    law = {"bounds": {"5": {"mean": 3.2, "sd": 0.6}}}
    many = claims.a6(made("permutation", {RANDOM: near(0.99, 5e-4)}, {"burst_5": 4.5}, **law))
    assert many["verdict"] == "undecided" and "the best of all orders" in many["why"]
    few = claims.a6(made("permutation", {RANDOM: near(0.99, 5e-4)}, {"burst_5": 3.3}, **law))
    assert few["verdict"] == "holds"


def test_a_model_that_solves_no_maze_decides_nothing_about_its_samples():
    entry = claims.a1(made("maze", {GPT: near(0.5), RANDOM: near(0.0)}))
    assert entry["verdict"] == "undecided" and "solves 0 % of the mazes" in entry["why"]


@pytest.mark.parametrize(("solved", "verdict"), [(0.9, "fails"), (0.0, "undecided")])
def test_densities_of_paths_are_judged_of_a_model_that_solves_mazes(solved, verdict):
    measured = made("maze", {RANDOM: near(solved)})
    for cell in measured.cells.values():
        cell["path_posteriors"] = {"0": number(1.0, 0.01)}
    entry = claims.a9(measured)
    assert entry["verdict"] == verdict
    assert ("solves 0 % of the mazes" in entry["why"]) == (verdict == "undecided")


@pytest.mark.parametrize(("steps", "verdict"), [(9000, "fails"), (1000, "undecided")])
def test_a_fractal_order_is_compared_with_a_random_one_trained_as_long(steps, verdict):
    measured = made("maze", {RANDOM: near(0.9), FRACTAL: near(0.6)})
    for name, cell in measured.cells.items():
        cell["history"] = {"val": [[steps if name.startswith(FRACTAL) else 9000, 1.0]]}
    entry = claims.a4(measured)
    assert entry["verdict"] == verdict and ("steps: " in entry["why"]) == (steps == 1000)


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


def lawful_bursts(own: float, burst: float) -> Ordered:
    """Permutations near the bound of passes: shares that are valid, one by one and of bursts."""
    measured = made(
        "permutation", {RANDOM: near(1.0, 0.0005)}, bounds={"5": {"mean": 3.2, "sd": 0.6}}
    )
    for entry in measured.cells.values():
        for name, prompts in entry["samplers"].items():
            value = burst if name.startswith("burst") else own
            prompts["prompt"]["metrics"]["valid"] = number(value, 0.005)
    return measured


def test_invalid_bursts_of_a_valid_model_make_the_claim_fail_near_the_bound_too():
    assert claims.a6(lawful_bursts(0.99, 0.99))["verdict"] == "holds"
    entry = claims.a6(lawful_bursts(0.99, 0.7))
    assert entry["verdict"] == "fails" and "burst_5 is valid: share 0.7" in entry["why"]


@pytest.mark.parametrize("own", [0.35, 0.951])  # of the second, chance may have made it valid
def test_bursts_are_not_blamed_for_what_the_model_draws_one_by_one(own):
    entry = claims.a6(lawful_bursts(own, 0.16))
    assert entry["verdict"] == "undecided"
    words = f"untrained: one by one its own samples are valid in {100 * own:.3g} %; measured: share"
    assert words in entry["why"]


def test_a_product_that_always_takes_one_pass_is_decided_by_one_seed():
    measured = made(
        "product", {RANDOM: (1.0,)}, {"burst_5": 1.0}, bounds={"5": {"mean": 1.0, "sd": 0.0}}
    )
    assert claims.a6(measured)["verdict"] == "holds"
    measured.spreads = Spreads({})
    entry = claims.a6(measured)
    assert entry["verdict"] == "undecided" and "over seeds was not measured" in entry["why"]


def test_diffusion_is_asked_at_the_steps_nearest_to_the_bursts_passes():
    measured = made("step", {RANDOM: near(0.97), DIFFUSION: near(0.6)})
    assert claims.at_equal(measured, RANDOM, "burst_5", DIFFUSION) == "diffusion_4"
    assert claims.at_equal(made("step", {RANDOM: near(0.97)}), RANDOM, "burst_5", DIFFUSION) is None


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
