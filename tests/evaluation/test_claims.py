"""Claims: verdicts on tables made by hand whose answer is known."""

import numpy as np
import polars as pl
import pytest
from known_spreads import alike
from scipy import stats
from wind_numbers import ALL, CHAPTER_1, LEARNED, NARROW, NEAREST, ONE, entry, made

from stages import files
from stages.errors import DataError
from stages.spreads import PRIOR
from stages.winds import claims


def test_every_claim_once_for_each_data_set(tmp_path):
    home = made(tmp_path, ALL)
    (home / "evaluated/toy").rename(home / "evaluated/b")
    made(tmp_path, ALL)
    for experiment, names in (
        ("wind_baselines", ["W-1"]),
        ("wind_nowcast", ["I-1", "I-5", "I-10", "I-12", "I-14"]),
    ):
        assert [(c["id"], c["dataset"]) for c in claims.check(home, experiment)] == [
            (i, d) for i in names for d in ("b", "toy")
        ]


def test_w1_waits_for_its_learned_scales_by_name(tmp_path):
    got = entry(made(tmp_path, CHAPTER_1), "W-1")
    assert got["verdict"] == "undecided" and "no trained gka_mlp_tnn" in got["why"]
    reached = {name: part["verdict"] for name, part in got["compared"].items()}
    assert (
        reached.pop(f"gka_mlp_tnn < {ONE}") == "undecided"
        and set(reached.values()) == {"holds"}
        and len(reached) == 6
    )
    assert got["compared"][f"{ONE} < {NEAREST}"]["difference_kn"] == pytest.approx(2.0, rel=0.1)


def test_w1_holds_with_all_models(tmp_path):
    got = entry(made(tmp_path, CHAPTER_1 | {f"{LEARNED}-s0": 5.0, f"{LEARNED}-s1": 5.1}), "W-1")
    assert got["verdict"] == "holds" and got["interval"][0] > 0 and got["seeds"] == 2


def test_w1_is_asked_of_neighbours_chosen_under_the_learned_scale(tmp_path):
    learned, one = (f"{model}-requery-none" for model in ("gka_mlp_tnn", "gka_tnn"))
    arms = CHAPTER_1 | {f"{LEARNED}-s0": 9.0, f"{learned}-s0": 5.0, f"{one}-s0": 6.5}
    got = entry(made(tmp_path, arms), "W-1")
    assert {f"{learned} < {one}", f"{one} < {NEAREST}"} <= got["compared"].keys()
    assert got["verdict"] == "holds" and not any(LEARNED in name for name in got["compared"])


def test_w1_fails_when_a_reached_part_fails(tmp_path):
    got = entry(made(tmp_path, CHAPTER_1 | {f"{ONE}-s0": 8.5}), "W-1")
    assert (
        got["verdict"] == "fails"
        and got["why"].startswith(f"{ONE} < {NEAREST}")
        and got["interval"][1] < 0
    )


def test_w1_is_undecided_between_equals(tmp_path):
    got = entry(
        made(tmp_path, CHAPTER_1 | {f"{ONE}-s0": 8.0, f"{LEARNED}-s0": 5.0}, jitter=0.4), "W-1"
    )
    assert got["compared"][f"{ONE} < {NEAREST}"]["verdict"] == got["verdict"] == "undecided"
    low, high = got["compared"][f"{ONE} < {NEAREST}"]["interval"]
    assert low <= 0 <= high


def test_i1_names_what_is_missing_and_follows_the_order(tmp_path):
    got = entry(made(tmp_path / "a", ALL | {"msa-shared-5k-s0": 5.0}), "I-1")
    assert (
        got["verdict"] == "undecided"
        and all(name in got["why"] for name in ("tfs", "gen", "cnp"))
        and got["interval"] is None
    )
    models = {
        f"{m}-shared-5k-s{s}": v + 0.1 * s
        for m, v in (("msa", 5.0), ("tfs", 6.0), ("gen", 7.0), ("cnp", 8.0))
        for s in (0, 1, 2)
    }
    assert entry(made(tmp_path / "b", ALL | models), "I-1")["verdict"] == "holds"
    assert (
        entry(
            made(tmp_path / "c", ALL | models | {f"gen-shared-5k-s{s}": 9.0 for s in (0, 1, 2)}),
            "I-1",
        )["verdict"]
        == "fails"
    )


def test_i14_asks_every_operator_and_one_at_msas_level_refutes_it(tmp_path):
    def told(name, **errors):
        return entry(made(tmp_path / name, ALL | {"msa-shared-20k-s0": 5.0} | errors), "I-14")

    worse = {"gen-message_gat-20k-s0": 7.0, "gen-message_sg-20k-s0": 6.0}
    assert told("a", **worse)["verdict"] == "holds" and set(told("b", **worse)["compared"]) == {
        f"msa-shared-20k < {name[:-3]}" for name in worse
    }
    assert told("c", **worse, **{"gen-message_tag-20k-s0": 4.0})["verdict"] == "fails"
    plain = told("d", **{"gen-shared-20k-s0": 4.0})  # the plain step is no other operator
    assert plain["verdict"] == "undecided" and "no GEN with another operator" in plain["why"]


@pytest.mark.parametrize(("skill", "verdict"), [(0.5, "holds"), (-900.0, "undecided")])
def test_i14_compares_no_operator_that_diverged(tmp_path, skill, verdict):
    home = made(tmp_path, ALL | {"msa-shared-20k-s0": 5.0, "gen-message_le-20k-s0": 700.0})
    file = home / "evaluated/toy/metrics.json"
    content = files.read_json(file)
    content["cells"]["gen-message_le-20k-s0"]["metrics"]["nse"] = {
        "value": skill,
        "low": skill - 0.1,
        "high": skill + 0.1,
    }
    files.write_json(file, content)
    got = entry(home, "I-14")
    assert got["verdict"] == verdict
    assert ("gen-message_le-20k diverged" in got["why"]) == (verdict == "undecided")


@pytest.mark.parametrize(
    ("kernel", "msa", "verdict"),
    [
        ((5.0, 7.0, 12.0), (5.2, 6.5, 9.0), "holds"),  # keeps up, then loses
        ((8.0, 9.0, 12.0), (5.2, 6.5, 9.0), "fails"),  # never competitive
        ((5.0, 6.0, 8.0), (5.2, 6.5, 9.0), "fails"),
    ],
)  # better to the end
def test_i5(tmp_path, kernel, msa, verdict):
    names = ("005", "030", "120")
    leads = {
        "kernel": dict(zip(names, kernel, strict=True)),
        "msa-shared-5k-s0": dict(zip(names, msa, strict=True)),
    }
    got = entry(made(tmp_path, ALL | {"msa-shared-5k-s0": 6.0}, leads=leads), "I-5")
    assert (
        got["verdict"] == verdict
        and "one lead" in got["why"]
        and "msa-shared-5k < kernel at 120 min" in got["compared"]
    )


def test_i5_needs_two_leads(tmp_path):
    assert entry(made(tmp_path, ALL | {"msa-shared-5k-s0": 6.0}), "I-5")["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("kernel", "msa", "verdict"),
    [
        ((0, 0, 0), [(0.2, 0.1, 0.3), (0.3, 0.2, 0.4)], "holds"),
        ((0.05, 0.01, 0.1), [(0.2, 0.1, 0.3)], "fails"),
        ((0, 0, 0), [(0.0, 0.0, 0.0)], "undecided"),
        ((1e-5, 0, 1e-4), [(0.2, 0.1, 0.3)], "fails"),
        ((0, 0, 0), [(0.01, 0.0, 0.02)], "undecided"),
        ((0, 0, 0), [], "undecided"),
    ],
)
def test_i10(tmp_path, kernel, msa, verdict):
    cells = {f"msa-shared-5k-s{k}": share for k, share in enumerate(msa)}
    got = entry(
        made(tmp_path, ALL | dict.fromkeys(cells, 5.0), hulls={"kernel": kernel, **cells}), "I-10"
    )
    assert got["verdict"] == verdict
    if verdict == "holds":
        told = got["compared"]["msa-shared-5k leaves"]
        assert (
            told["hull_share"] == pytest.approx(0.25)
            and told["range_over_seeds"] == [0.1, 0.4]
            and got["seeds"] == 2
        )
        assert (
            "interval" not in told and got["interval"] is None
        )  # the ends of two seeds' intervals are no interval of their mean
        assert "25.0 % outside, range over seeds of the 90 % intervals [10.0, 40.0]" in got["why"]
    elif msa:  # the minutes' own interval and one training's, in quadrature
        value, low, high = msa[0]
        training = stats.t.ppf(0.95, 20 + PRIOR) * alike(NARROW, 20)
        ends = value - np.hypot(value - low, training), value + np.hypot(high - value, training)
        assert got["interval"] == pytest.approx(ends, rel=1e-12)
        assert "range over seeds" not in got["why"]


@pytest.mark.parametrize(("far", "verdict"), [(9.0, "holds"), (5.0, "undecided"), (3.0, "fails")])
def test_i12(tmp_path, far, verdict):
    distances = {
        "msa-shared-5k-s0": {"000-005 km": 5.0, "005-010 km": 6.0, "010-020 km": far},
        "hour_average": dict.fromkeys(("000-005 km", "005-010 km", "010-020 km"), 10.0),
    }
    got = entry(
        made(tmp_path, ALL | {"msa-shared-5k-s0": 6.0}, distances=distances, jitter=0.3), "I-12"
    )
    assert (
        got["verdict"] == verdict and len(next(iter(got["compared"].values()))) == 6
    )  # three bins, difference, interval, verdict


def test_i12_leaves_out_bins_with_few_points_and_bears_minutes_without_some(tmp_path):
    bins = {"000-005 km": 5.0, "005-010 km": 8.0, "160 km and more": 1.0}
    distances = {"msa-shared-5k-s0": bins, "hour_average": dict.fromkeys(bins, 10.0)}
    home = made(tmp_path, ALL | {"msa-shared-5k-s0": 6.0}, distances=distances)
    file = home / "evaluated/toy/slices.parquet"
    few = (pl.col("bin") == "160 km and more") & (pl.col("slice") > 5)
    absent = (pl.col("bin") == "000-005 km") & (pl.col("slice") < 75)
    pl.read_parquet(file).filter(~few & ~absent).write_parquet(file)
    got = entry(home, "I-12")
    assert (
        got["verdict"] == "holds"
        and list(got["compared"])
        == ["msa-shared-5k at 000-005 km < at 005-010 km, as shares of hour_average's error"]
        and got["slices"] == 40
    )


@pytest.mark.parametrize("winds", [(10.0, 10.0), (8.0, 16.0), (16.0, 8.0)])
def test_i12_is_not_decided_of_a_constant_whatever_the_winds_are_near_and_far(tmp_path, winds):
    """One wind for all places errs as much as the winds differ there: that is no cost of
    distance."""
    bins = dict(zip(("000-005 km", "040-080 km"), winds, strict=True))
    cells = ALL | {"msa-shared-5k-s0": 10.0}
    distances = dict.fromkeys(("msa-shared-5k-s0", "hour_average"), bins)
    (part,) = entry(made(tmp_path, cells, distances=distances), "I-12")["compared"].values()
    assert part["verdict"] == "undecided" and part["difference"] == pytest.approx(0, abs=0.02)


def heard(home, arm, error, shuffled):
    """Let an arm's metrics tell these errors, with its context as it is and shuffled."""
    path = home / "evaluated/toy/metrics.json"
    content = files.read_json(path)
    for cell, one in content["cells"].items():
        if cell.startswith(arm):
            one["metrics"] |= {
                "rmse_component_kn": {"value": error, "low": error - 0.1, "high": error + 0.1},
                "rmse_permuted_component_kn": {
                    "value": shuffled,
                    "low": shuffled - 0.1,
                    "high": shuffled + 0.1,
                },
            }
    files.write_json(path, content)


@pytest.mark.parametrize(
    ("shuffled", "verdicts"),
    [
        (15.0, {"I-10": "holds", "I-12": "holds"}),
        (6.0, dict.fromkeys(("I-10", "I-12"), "undecided")),
    ],
)
def test_i10_and_i12_are_decided_only_by_a_model_that_uses_its_context(
    tmp_path, shuffled, verdicts
):
    cells = {f"msa-shared-5k-s{k}": 6.0 + 0.01 * k for k in (0, 1)}
    bins = {"000-005 km": 5.0, "040-080 km": 9.0}
    distances = dict.fromkeys(cells, bins) | {"hour_average": dict.fromkeys(bins, 10.0)}
    hulls = dict.fromkeys(cells, (0.2, 0.19, 0.21))
    home = made(tmp_path, ALL | cells, distances=distances, hulls=hulls)
    heard(home, "msa", 6.0, shuffled)
    for name, verdict in verdicts.items():
        got = entry(home, name)
        assert got["verdict"] == verdict
        assert ("untrained: " in got["why"]) == (verdict == "undecided")


def test_a_short_test_decides_nothing_and_says_so(tmp_path):
    """40 minutes in a row: the difference of a whole knot is told, no interval of it."""
    got = entry(made(tmp_path, CHAPTER_1 | {f"{LEARNED}-s0": 5.0}, step=1), "W-1")
    assert got["verdict"] == "undecided" and got["interval"] is None
    assert "a test of 40 minutes; too short for an interval" in got["why"]


def test_same_input_same_verdicts(tmp_path):
    home = made(tmp_path, ALL | {"msa-shared-5k-s0": 6.0})
    assert claims.check(home, "wind_nowcast") == claims.check(home, "wind_nowcast")


def test_an_evaluation_without_slices_is_an_error(tmp_path):
    home = made(tmp_path, ALL)
    (home / "evaluated/toy/slices.parquet").unlink()
    with pytest.raises(DataError, match=r"no slices\.parquet"):
        claims.check(home, "wind_nowcast")
