"""How unsure a claim on winds is: one training or several, measured spreads, paired minutes, and
runs of them written out."""

import numpy as np
import pytest
from known_spreads import alike
from scipy import stats
from wind_numbers import ALL, CHAPTER_1, LEARNED, NEAREST, ONE, compared, entry, made

from stages.claims.levels import half_width
from stages.scores import runs
from stages.spreads import PRIOR
from stages.units import KNOT_M_S
from stages.winds import claims, paired
from stages.winds.paired import Side


def test_pairing_decides_what_unpaired_minutes_could_not(tmp_path):
    """Minutes differ by far more than the models do: the difference is still seen, because both
    are drawn alike."""
    home = made(tmp_path, CHAPTER_1 | {f"{ONE}-s0": 7.6}, jitter=0.01)
    part = entry(home, "W-1")["compared"][f"{ONE} < {NEAREST}"]
    assert part["verdict"] == "holds" and part["interval"][1] - part["interval"][0] < 0.3
    (alone,), _ = paired.errors(claims.WindEvaluation(home / "evaluated/toy"), [Side(NEAREST)])
    low, high = runs.interval(float(alone.by_seed[0]), alone.without[:, 0])
    assert high - low > 1.0


def test_without_a_measured_spread_one_seed_decides_nothing_and_the_reason_is_given(tmp_path):
    got = entry(made(tmp_path, CHAPTER_1 | {f"{LEARNED}-s0": 5.0}, spread=None), "W-1")
    assert got["verdict"] == "undecided" and got["interval"] is None
    for name in (f"{ONE} < {NEAREST}", f"{ONE} < persistence"):
        part = got["compared"][name]
        assert part["verdict"] == "undecided" and "interval" not in part
    assert "of one seed, and the spread over seeds was not measured" in got["why"]


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


def test_the_interval_of_a_difference_is_that_of_six_runs_and_of_the_seeds(tmp_path):
    """Three seeds, 60 minutes: Student's of what the difference is without each ten minutes, and
    of the seeds, added as Welch and Satterthwaite do."""
    cells = {f"msa-shared-5k-s{s}": v for s, v in enumerate((5.0, 6.0, 7.0))}
    home = made(tmp_path, ALL | cells, slices=60)
    measured = claims.WindEvaluation(home / "evaluated/toy")
    found = claims.below(measured, "msa-shared-5k", "knn")
    mine = measured.squares("msa-shared-5k", "all", ("all",)).select("e0", "e1", "e2").to_numpy()
    other = measured.squares("knn", "all", ("all",)).select("e0").to_numpy()

    def errors(table, keep):
        return np.sqrt(table[keep].sum(0) / (2 * 50 * keep.sum())) / KNOT_M_S

    def difference(keep):
        return errors(other, keep)[0] - errors(mine, keep).mean()

    every = np.ones(60, bool)
    without = np.array([difference(np.arange(60) // 10 != run) for run in range(6)])
    minutes = 5 / 6 * np.square(without - without.mean()).sum()
    training = errors(mine, every).var(ddof=1) / 3
    freedom = (minutes + training) ** 2 / (minutes**2 / 5 + training**2 / 2)
    half = stats.t.ppf(0.95, freedom) * np.sqrt(minutes + training)
    assert found.numbers["difference_kn"] == pytest.approx(difference(every))
    value = found.numbers["difference_kn"]
    assert found.interval == pytest.approx([value - half, value + half])


@pytest.mark.parametrize("count", [2, 3])
def test_a_few_seeds_hold_what_a_90_percent_interval_should(tmp_path, count):
    """Seeds whose true mean is the other's error: drawn with replacement, two of them held 50 %,
    three 61 %. Minutes are all alike."""
    home = made(tmp_path, {"knn": 8.0}, jitter=0, hardness=0, spread=None)
    measured = claims.WindEvaluation(home / "evaluated/toy")
    rng, hits = np.random.default_rng(0), 0
    knn = paired.Errors("knn", np.array([8.0]), np.full((6, 1), 8.0))
    for _ in range(1000):
        drawn = 8 + rng.normal(0, 0.3, count)
        arm = paired.Errors("msa", drawn, np.tile(drawn, (6, 1)))
        measured.cells = {"knn": {}} | {f"msa-s{k}": {} for k in range(count)}
        levels = paired.trainings(measured, [arm, knn], lambda e: e[1] - e[0], 40)
        hits += abs(8 - drawn.mean()) <= half_width(levels)
    assert 0.87 * 1000 < hits < 0.93 * 1000


@pytest.mark.parametrize("apart", [0.0, 0.001, 0.3])
def test_a_second_seed_never_makes_training_surer_than_its_kind_is(tmp_path, apart):
    """Two seeds may agree by chance."""
    one = {"persistence": 9.0, f"{ONE}-s0": 6.0}
    quiet = {"spread": 0.02, "jitter": 0, "hardness": 0}
    alone = compared(tmp_path / "a", ONE, "persistence", one, **quiet)
    both = compared(tmp_path / "b", ONE, "persistence", one | {f"{ONE}-s1": 6.0 + apart}, **quiet)
    assert np.diff(both.interval) > np.diff(alone.interval)


def test_one_minute_decides_nothing(tmp_path):
    got = entry(made(tmp_path, CHAPTER_1, slices=1), "W-1")
    assert got["verdict"] == "undecided" and "1 test minute" in got["why"]
