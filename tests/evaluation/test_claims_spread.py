"""How unsure a claim on winds is: one training or several, measured spreads, paired minutes, and a
bootstrap written out."""

import numpy as np
import pytest
from known_spreads import alike
from scipy import stats
from wind_numbers import ALL, CHAPTER_1, LEARNED, NEAREST, ONE, compared, entry, made

from stages.spreads import PRIOR
from stages.units import KNOT_M_S
from stages.winds import claims


def test_pairing_decides_what_unpaired_minutes_could_not(tmp_path):
    """Minutes differ by far more than the models do: the difference is still seen, because both
    are drawn alike."""
    home = made(tmp_path, CHAPTER_1 | {f"{ONE}-s0": 7.6}, jitter=0.01)
    part = entry(home, "W-1")["compared"][f"{ONE} < {NEAREST}"]
    assert part["verdict"] == "holds" and part["interval"][1] - part["interval"][0] < 0.3
    measured = claims.WindEvaluation(home / "evaluated/toy")
    ((_, draws),) = claims.errors(measured, [claims.Side(NEAREST)])[0]
    assert np.quantile(draws, 0.95) - np.quantile(draws, 0.05) > 1.0


def test_without_a_measured_spread_one_seed_decides_nothing_and_the_reason_is_given(tmp_path):
    got = entry(made(tmp_path, CHAPTER_1 | {f"{LEARNED}-s0": 5.0}, spread=None), "W-1")
    assert got["verdict"] == "undecided" and got["interval"] is None
    for name in (f"{ONE} < {NEAREST}", f"{ONE} < persistence"):
        part = got["compared"][name]
        assert part["verdict"] == "undecided" and "interval" not in part
    assert "of one seed, and the spread of training was not measured of its kind" in got["why"]


def test_several_seeds_and_what_was_never_trained_need_no_spread(tmp_path):
    cells = ALL | {f"msa-shared-5k-s{s}": 5 + 0.1 * s for s in range(3)}
    part = compared(tmp_path, "msa-shared-5k", "kernel", cells, spread=None)
    assert part.verdict == "holds" and part.numbers["seeds"] == 3
    measured = claims.WindEvaluation(tmp_path / "reports/wind_nowcast/mini/evaluated/toy")
    assert claims.below(measured, "kernel", "hour_average").verdict == "holds"
    assert claims.below(measured, "hour_average", "kernel").verdict == "fails"


@pytest.mark.parametrize(
    ("spread", "verdicts"), [(0.01, ["holds", "fails"]), (0.3, ["undecided", "undecided"])]
)
def test_a_wide_spread_turns_what_one_seed_says_into_undecided(tmp_path, spread, verdicts):
    measured = claims.WindEvaluation(made(tmp_path, CHAPTER_1, spread=spread) / "evaluated/toy")
    pairs = ((ONE, NEAREST), (NEAREST, ONE))
    assert [claims.below(measured, *pair).verdict for pair in pairs] == verdicts


@pytest.mark.parametrize(("spread", "verdict"), [(0.05, "holds"), (0.2, "undecided")])
def test_leaving_the_hull_is_decided_with_the_spread_of_training(tmp_path, spread, verdict):
    hulls = {"msa-shared-5k-s0": (0.2, 0.19, 0.21)}
    home = made(tmp_path, ALL | {"msa-shared-5k-s0": 5.0}, hulls=hulls, spread=spread, freedom=5)
    half = np.hypot(0.01, stats.t.ppf(0.95, 5 + PRIOR) * alike(spread, 5))
    got = entry(home, "I-10")
    assert got["verdict"] == verdict and got["interval"] == pytest.approx([0.2 - half, 0.2 + half])
    cells = ALL | {"msa-shared-5k-s0": 5.0}
    blind = entry(made(tmp_path / "b", cells, hulls=hulls, spread=None), "I-10")
    assert blind["verdict"] == "undecided" and "no spread of training was measured" in blind["why"]


@pytest.mark.parametrize("freedom", [2, 5, 30])
def test_one_training_against_what_is_not_trained_has_students_interval(tmp_path, freedom):
    """Minutes all alike: nothing but training varies."""
    cells = {"persistence": 9.0, f"{ONE}-s0": 6.0}
    part = compared(
        tmp_path, ONE, "persistence", cells, spread=0.02, freedom=freedom, jitter=0, hardness=0
    )
    sides = stats.t.ppf([0.95, 0.05], freedom + PRIOR)
    ends = 9 - 6 * np.exp(alike(0.02, freedom) * sides)
    assert part.interval == pytest.approx(ends, abs=0.15 * (ends[1] - ends[0]) / 2)


def test_two_arms_of_one_kind_share_the_one_measurement_of_its_spread(tmp_path):
    """Student's with one degree is Cauchy's: two add as a + b, one as a root of squares."""
    cells = {"msa-shared-5k-s0": 5.0, "msa-swept-5k-s0": 6.0}
    part = compared(
        tmp_path,
        "msa-shared-5k",
        "msa-swept-5k",
        cells,
        spread=1e-4,
        freedom=1,
        kinds=("msa",),
        jitter=0,
        hardness=0,
    )
    half = stats.t.ppf(0.95, 1) * 1e-4 * np.hypot(5, 6)
    assert np.diff(part.interval) / 2 == pytest.approx(half, rel=0.25)
    assert np.mean(part.interval) == pytest.approx(1, abs=0.3 * half)


def test_resampled_errors_agree_with_a_bootstrap_written_out(tmp_path):
    """Three seeds, 60 minutes: spread of the mean RMSE over drawn minutes (in runs) and seeds."""
    cells = {f"msa-shared-5k-s{s}": v for s, v in enumerate((5.0, 6.0, 7.0))}
    measured = claims.WindEvaluation(made(tmp_path, ALL | cells, slices=60) / "evaluated/toy")
    ((value, draws),), seeds, slices = claims.errors(
        measured, [Side := claims.Side("msa-shared-5k")]
    )
    frame, _ = measured.squares(Side.arm, Side.by, Side.bins)
    table = frame.select("e0", "e1", "e2").to_numpy()
    rng, expected = np.random.default_rng(1), []
    for _ in range(4000):
        rows = np.concatenate([np.arange(s, s + 10) % 60 for s in rng.integers(60, size=6)])
        rmse = np.sqrt(table[rows].sum(0) / (2 * 50 * 60)) / KNOT_M_S
        expected.append(rmse[rng.integers(3, size=3)].mean())
    assert (seeds, slices) == (3, 60) and value == pytest.approx(
        (np.sqrt(table.sum(0) / 6000) / KNOT_M_S).mean()
    )
    assert draws.mean() == pytest.approx(
        np.mean(expected), rel=0.02
    ) and draws.std() == pytest.approx(np.std(expected), rel=0.08)


def test_one_minute_decides_nothing(tmp_path):
    got = entry(made(tmp_path, CHAPTER_1, slices=1), "W-1")
    assert got["verdict"] == "undecided" and "1 test minute" in got["why"]
