"""The judge of altitude forecasts: its errors against a plain loop, its prompts, what it does
with wrong tokens, and its baselines."""

import numpy as np
import pytest

from stages import seeds
from stages.errors import DataError, InputError
from stages.sequences.evaluation import vertical

S = 40
LAW = {"steps": S, "step_s": 20, "bin_ft": 100, "bins": 450, "types": ["A320"], "nothing": 451}
NAMED = {"value", "unit", "n", "low", "high"}


def flight(altitudes, level=None):
    """A sequence of altitudes in flight levels; shorter ones are filled up."""
    line = np.full(1 + 2 * S, LAW["nothing"])
    line[0] = 450
    line[1 : 1 + len(altitudes)] = altitudes[-1] if level is None else level
    line[1 + S : 1 + S + len(altitudes)] = altitudes
    return line


def climbs(count=12, seed=0):
    rng = seeds.stream(seed, "climbs")
    return np.stack(
        [flight(np.minimum(50 + np.arange(S) * int(rng.integers(3, 9)), 250)) for _ in range(count)]
    )


def judged(samples, truth, known, aircraft=None):
    return vertical.judge(
        samples,
        truth,
        known,
        LAW,
        np.arange(len(truth)) if aircraft is None else aircraft,
        seeds.stream(0, "judge"),
        300,
    )


def test_the_error_is_the_mean_of_squared_feet_over_what_was_produced_as_a_plain_loop_finds_it():
    truth, rng = climbs(), seeds.stream(1, "samples")
    truth[3, -7:] = LAW["nothing"]
    known = vertical.given(truth, LAW, "10")
    samples = np.repeat(truth[:, None], 3, 1)
    for row in range(len(truth)):
        samples[row, :, known[row] :] = rng.integers(0, 450, (3, truth.shape[1] - known[row]))
    squares = [
        (100.0 * (samples[n, k, t] - truth[n, t])) ** 2
        for n in range(len(truth))
        for k in range(3)
        for t in range(known[n], truth.shape[1])
        if truth[n, t] < 450
    ]
    found = judged(samples, truth, known)
    assert found["mse"]["value"] == pytest.approx(np.mean(squares), rel=1e-12) and found["mse"][
        "n"
    ] == len(squares)
    assert found["mse_levels"]["value"] == pytest.approx(np.mean(squares) / 10_000, rel=1e-12)
    assert found["rmse"]["value"] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-12)
    assert found["mse_whole"]["value"] == pytest.approx(
        sum(squares) / (3 * (truth[:, 1 + S :] < 450).sum()), rel=1e-12
    )


def test_it_is_no_count_twice_the_error_is_four_times_the_metric():
    truth = climbs()
    known = vertical.given(truth, LAW, "0")

    def off(levels):
        return judged(
            np.where(np.arange(1 + 2 * S) >= known[:, None], truth + levels, truth), truth, known
        )

    assert off(3)["mse"]["value"] == pytest.approx(300.0**2) and off(6)["mse"][
        "value"
    ] == pytest.approx(4 * 300.0**2)


def flat_after(truth, known):
    """The share of steps after what was given that repeat the altitude before."""
    pairs = [
        line[t] == line[t - 1]
        for line, count in zip(truth, known, strict=True)
        for t in range(count, truth.shape[1])
    ]
    return np.mean(pairs)


def test_steps_that_stay_and_jumps_are_counted_by_hand():
    """Of 9 steps produced the first sample stays at 2 on its way, where the level is far, and at 3
    that are there or near it; the second jumps at one and holds one token that is no altitude."""
    truth = flight([50, 60, 70, 80, 90, 100, 100, 100, 100, 100], 100)[None]
    first, second = (
        flight(line, 100)
        for line in (
            [50, 50, 50, 60, 70, 80, 98, 98, 100, 100],
            [50, 60, 70, 300, 90, 91, LAW["nothing"], 93, 94, 95],
        )
    )
    samples = np.stack([first, second])[None]
    samples[:, :, 1 : 1 + S] = truth[0, 1 : 1 + S]
    known = np.array([2 + S])
    found = judged(samples, truth, known)
    assert found["held"]["value"] == pytest.approx((2 + 2) / (9 + 8)) and found["held"]["n"] == 17
    # more than 3 bins from the level before the step: 6 of the first sample, all of the other
    assert found["stuck"]["value"] == pytest.approx(2 / (6 + 8))
    assert found["jumps"]["value"] == pytest.approx(2 / 17)  # up and down again
    own = vertical.habits(truth, known, LAW, np.zeros(1), seeds.stream(0, "judge"), 20)
    assert own["held"]["value"] == pytest.approx(4 / 9) and own["jumps"]["value"] == 0
    assert own["stuck"]["value"] == 0 and own["stuck"]["n"] == 5


def test_the_truth_itself_has_no_error_and_every_metric_is_named_and_holds_its_value():
    truth = climbs()
    known = vertical.given(truth, LAW, "50")
    found = judged(truth, truth, known)
    assert {name: one["value"] for name, one in found.items()} == {
        "mse": 0,
        "mse_levels": 0,
        "rmse": 0,
        "mse_whole": 0,
        "mse_whole_levels": 0,
        "smooth": 1,
        "no_altitude": 0,
        "held": pytest.approx(flat_after(truth, known)),
        "stuck": 0,
        "jumps": 0,
    }
    baseline = judged(vertical.persistence(truth, known, LAW), truth, known)
    assert all(
        set(one) == NAMED and one["low"] <= one["value"] <= one["high"] for one in baseline.values()
    )
    assert baseline["mse"]["low"] < baseline["mse"]["high"]


def test_flights_of_one_aircraft_are_drawn_together():
    truth = climbs(40)
    known = vertical.given(truth, LAW, "0")
    samples = vertical.persistence(truth, known, LAW)

    def width(aircraft):
        return np.subtract(
            *(judged(samples, truth, known, aircraft)["mse"][end] for end in ("high", "low"))
        )

    by_rate = (
        np.argsort(np.argsort(truth[:, 1 + S + 10], kind="stable")) // 10
    )  # four aircraft, alike flights in each
    assert width(by_rate) > 1.5 * width(np.arange(40)) and width(np.zeros(40, int)) == 0


def test_prompts_give_the_type_the_levels_the_first_altitude_and_their_share_of_the_flight():
    truth = np.stack([flight(np.arange(50, 50 + S)), flight(np.arange(50, 70))])
    for word, steps in (("0", (1, 1)), ("10", (4, 2)), ("50", (20, 10))):
        assert vertical.given(truth, LAW, word).tolist() == [1 + S + n for n in steps], word
    with pytest.raises(InputError, match="mid_climb"):
        vertical.given(truth, LAW, "20")


def test_mid_climb_is_half_way_to_the_first_plateau_and_a_pause_at_the_beginning_is_none():
    up = np.concatenate(
        [np.full(5, 50), 50 + 10 * np.arange(1, 13), np.full(10, 170), 170 + 10 * np.arange(1, 14)]
    )
    truth = np.stack([flight(up), flight(np.arange(400, 400 - 3 * S, -3))])
    assert vertical.first_climb(truth, LAW).tolist() == [16, S - 1]
    assert (vertical.given(truth, LAW, "mid_climb") - 1 - S).tolist() == [8, (S - 1) // 2]


def test_a_token_that_is_no_altitude_counts_as_the_one_before_and_is_reported():
    truth = flight(np.full(S, 100))[None]
    known, sample = vertical.given(truth, LAW, "0"), truth.copy()
    sample[0, 1 + S + 10 : 1 + S + 14] = LAW["nothing"]
    found = judged(sample, truth, known)
    assert found["mse"]["value"] == 0 and found["no_altitude"]["value"] == pytest.approx(
        4 / (S - 1)
    )


def test_a_jump_makes_a_flight_rough_and_a_fast_climb_does_not():
    truth = np.stack([flight(np.full(S, 100)), flight(np.full(S, 100))])
    known, sample = vertical.given(truth, LAW, "0"), truth.copy()
    sample[0, 1 + S + 20 :] = 130
    sample[1, 1 + S + 20 :] = 119
    assert judged(sample, truth, known)["smooth"]["value"] == 0.5


def test_a_sample_that_changed_its_prompt_or_has_nothing_to_produce_is_refused():
    truth = climbs(2)
    known, sample = vertical.given(truth, LAW, "10"), truth.copy()
    sample[1, 3] += 1
    with pytest.raises(DataError, match="flight 1"):
        judged(sample, truth, known)
    with pytest.raises(DataError, match="left to produce"):
        judged(truth, truth, np.full(2, truth.shape[1]))
    with pytest.raises(DataError, match="no first altitude"):
        judged(np.full_like(truth, 451), np.full_like(truth, 451), known)
    with pytest.raises(DataError, match="no flights"):
        vertical.feet(truth[:, 1:], LAW)


def test_a_constant_rate_is_exact_for_a_steady_climb_to_its_level_and_persistence_is_not():
    truth = np.stack(
        [
            flight(np.minimum(50 + 5 * np.arange(S), 200)),
            flight(np.maximum(300 - 6 * np.arange(S), 150)),
        ]
    )
    known = vertical.given(truth, LAW, "10")
    usual = vertical.rates(truth, LAW)
    assert 500 < usual[450] == usual[-1] < 600 and vertical.rates(truth[:1], LAW) == {
        -1: 500.0,
        450: 500.0,
    }
    assert np.array_equal(vertical.constant_rate(truth, known, LAW, usual), truth)
    kept = vertical.persistence(truth, known, LAW)
    assert (kept[0, known[0] :] == truth[0, known[0] - 1]).all() and judged(kept, truth, known)[
        "mse"
    ]["value"] > 1e6


def test_a_single_altitude_goes_at_the_usual_rate_of_its_type_towards_the_level():
    truth = flight(np.minimum(50 + 5 * np.arange(S), 200))[None]
    made = vertical.constant_rate(
        truth, vertical.given(truth, LAW, "0"), LAW, {450: 500.0, -1: 900.0}
    )
    assert np.array_equal(made, truth)
    assert not np.array_equal(
        vertical.constant_rate(truth, vertical.given(truth, LAW, "0"), LAW, {-1: 900.0}), truth
    )
