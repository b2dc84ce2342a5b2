"""The spread of training: numbers have kinds and metrics, and what was planted is measured."""

import math
import statistics
from pathlib import Path

import numpy as np
import pytest
from known_spreads import alike, content
from scipy import stats

from stages import files, spreads
from stages.spreads import ALL, ROUNDING, Number, Spreads, numbers
from stages.tables import parts

ROOT = Path(__file__).parents[1]
TABLES = sorted(ROOT.glob("reports/*/mini/metrics.json"))


def entry(value, half=0.0):
    return {"value": value, "low": value - half, "high": value + half, "unit": "1", "n": 10}


def run(values, half=0.0):
    """A run's table: cell -> metric -> value."""
    cells = {
        cell: {"metrics": {name: entry(value, half) for name, value in metrics.items()}}
        for cell, metrics in values.items()
    }
    return {"cells": cells}


def seeded(arms):
    """Cells of arms: arm -> MSE by seed."""
    return {
        f"d/{arm}-s{k}": {"mse": one}
        for arm, values in arms.items()
        for k, one in enumerate(values)
    }


# --- numbers


@pytest.mark.parametrize("name", ["mmd_p", "log_likelihood_turned", "lost_shifted", "gap"])
def test_what_has_no_zero_of_its_own_is_scaled_by_one_and_anything_else_by_its_size(name):
    first, second = (
        {"cells": {"d/msa-s0": {"metrics": {name: {"value": p}, "mse": entry(p, half=0.5)}}}}
        for p in (0.25, 0.75)
    )
    found = spreads.measure(first, second)["msa"]
    assert found[name]["scaled"] == found[name]["absolute"] == pytest.approx(0.5**1.5, 1e-4)
    assert found["mse"]["scaled"] == pytest.approx(0.5**0.5 * 0.5 / (0.5 + 0.5), 1e-4)


def leaves(one):
    """How many numbers are in a JSON value, counted by another way: those of its text."""
    if isinstance(one, dict):
        return sum(map(leaves, one.values()))
    if isinstance(one, list):
        return sum(map(leaves, one))
    return int(type(one) in (int, float))


@pytest.mark.parametrize("file", TABLES, ids=lambda file: file.parts[-3])
def test_every_number_of_a_published_table_is_listed_once_with_its_value(file):
    table = parts.here(file.parent)
    listed = list(numbers(table))
    assert len(listed) == leaves(table) > 100 and len({one.path for one in listed}) == len(listed)
    for one in listed[:: len(listed) // 50]:
        at = table
        for step in one.path:
            at = at[int(step)] if isinstance(at, list) else at[step]
        assert at == one.value
    assert all(one.size >= 0 and one.half >= 0 and math.isfinite(one.scale) for one in listed)


def test_there_are_published_tables():
    assert len(TABLES) >= 6


def test_lists_are_numbered_and_truths_texts_and_nulls_are_no_numbers():
    given = {"a": [1, {"b": 2.5}, [3]], "yes": True, "text": "4", "none": None, "zero": 0}
    listed = {one.path: one.value for one in numbers(given)}
    assert listed == {("a", "0"): 1, ("a", "1", "b"): 2.5, ("a", "2", "0"): 3, ("zero",): 0}


def test_bounds_and_deviations_have_the_size_and_the_interval_of_their_number():
    given = {"value": -4.0, "low": -5.0, "high": -2.0, "std": 0.1, "n": 10}
    listed = {one.path[0]: (one.size, one.half) for one in numbers(given)}
    assert listed == dict.fromkeys(("value", "low", "high", "std"), (4.0, 1.5)) | {"n": (10.0, 0.0)}
    alone = {one.path[0]: one.scale for one in numbers({"low": 1.0, "high": 3.0, "mean": None})}
    assert alone == {"low": 1.0, "high": 3.0}


@pytest.mark.parametrize(
    ("address", "kind", "metric"),
    [
        ("cells/simulated/msa-shared-5k-s0:metrics/mse/value", "msa", "mse"),
        ("cells/simulated/msa-shared-5k-s12:metrics/mse/low", "msa", "mse"),
        ("cells/simulated/msa-shared-5k-s0:metrics/mse/n", "msa", "mse.n"),
        ("cells/simulated/persistence:metrics/mse/value", "", "mse"),
        ("cells/points/boxes-aniso-k100:metrics/seen/value", "", "seen"),
        (
            "cells/mazes/sigma_gpt-random-tiny-s0:samplers/own/prompt/metrics/valid/value",
            "sigma_gpt",
            "valid",
        ),
        ("cells/sines/msa-tied-5k-s0:probes/overlap/25/value", "msa", "overlap"),
        ("cells/walks/sigma_gpt-random-60k-s1:posteriors/10%/value", "sigma_gpt", "posteriors"),
        ("arms/simulated/gen-shared-20k:metrics/rmse/mean", "gen", "rmse"),
        ("arms/simulated/gen-shared-20k:metrics/rmse/std", "gen", "rmse"),
        ("arms/simulated/persistence:metrics/rmse/mean", "", "rmse"),
    ],
)
def test_kinds_and_metrics_of_addresses(address, kind, metric):
    cell, _, rest = address.partition(":")
    group, name = cell.split("/", 1)
    one = Number((group, name, *rest.split("/")), 1.0, 1.0)
    assert (one.kind, one.metric) == (kind, metric)


def test_what_rests_on_several_cells_is_of_all_kinds():
    assert Number(("about", "texts", "n"), 1.0, 1.0).kind == ALL


# --- what is measured


def test_the_spread_of_two_runs_by_hand():
    """Two cells of a kind differ by 0.2 and 0.4 around 1 and 2; the untrained is left out."""
    cells = ("d/a-x-s0", "d/a-y-s0", "d/mean")
    first, second = (
        run({cell: {"mse": one} for cell, one in zip(cells, values, strict=True)}, 0.5)
        for values in ((0.9, 1.8, 3.0), (1.1, 2.2, 9.0))
    )
    got = spreads.measure(first, second)
    assert set(got) == {"a", ALL} and set(got["a"]) == {"mse", "mse.n", ALL}
    # value, low and high move alike; two runs differ by the square root of two deviations
    expected = {
        "absolute": math.sqrt((0.2**2 + 0.4**2) / 2 / 2),
        "relative": math.sqrt((0.2**2 + 0.2**2) / 2 / 2),
        "scaled": math.sqrt(((0.2 / 1.5) ** 2 + (0.4 / 2.5) ** 2) / 2 / 2),
    }
    assert {name: got["a"]["mse"][name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert got["a"]["mse"]["freedom"] == 2
    assert got["a"]["mse.n"] == {"relative": 0, "absolute": 0, "scaled": 0, "freedom": 2}
    # of all numbers together: three of four of each cell moved so
    share = math.sqrt(3 / 4)
    assert got["a"][ALL]["absolute"] == pytest.approx(expected["absolute"] * share, rel=1e-4)
    assert got[ALL] == {ALL: got["a"][ALL]}


def test_an_arm_on_its_own_set_has_the_spread_that_it_showed_there():
    """Sure on one set, by luck on another: the pooled kind would hide it."""
    cells = {
        f"{dataset}/{arm}-w8-s{seed}": {"ll": 1 + step * seed}
        for dataset, step in (("sure", 0.01), ("luck", 1.0))
        for arm in ("a-x", "b-x", "c-x")
        for seed in range(3)
    }
    known = Spreads({"seeds": spreads.of_seeds(run(cells), by_set=True)})
    assert known.kind("a-x-w8-s0", "sure") == "a-x on sure"
    assert known.kind("a-x-w8-s0", "new") == "a" and known.kind("mean", "sure") == ""
    assert known.seeds["a-x on sure"]["ll"]["absolute"] == pytest.approx(0.01, rel=1e-3)
    assert known.seeds["a"]["ll"]["absolute"] == pytest.approx(math.sqrt((1 + 1e-4) / 2), rel=1e-3)
    # moderated by the arms on the same set; half of all variances of two degrees of freedom lie
    # below ln 2 of the true one
    lucky = known.of("a-x on luck", "ll").absolute
    assert lucky == pytest.approx(math.sqrt((2 * 1 + 4 * 1 / math.log(2)) / 6), rel=1e-3)
    sure = known.of("b-x on sure", "ll").absolute
    assert sure == pytest.approx(0.01 * math.sqrt((2 + 4 / math.log(2)) / 6), rel=1e-3)
    pooled = known.seeds["a"]["ll"]["absolute"]
    assert known.of("a", "ll").absolute == pytest.approx(alike(pooled, 4))


def test_a_planted_spread_is_measured_within_sampling_error():
    rng, cells, size = np.random.default_rng(0), 400, 0.03
    truths = rng.lognormal(0, 1, cells)

    def trained(kinds):
        return run(
            {
                f"d/{kind}-x{k}-s0": {"mse": truth * (1 + kinds[kind] * rng.normal())}
                for kind in kinds
                for k, truth in enumerate(truths)
            }
        )

    kinds = {"a": size, "b": 3 * size}
    got = spreads.measure(trained(kinds), trained(kinds))
    for kind, planted in kinds.items():
        row = got[kind]["mse"]
        assert row["freedom"] == cells
        error = 4 * planted / math.sqrt(2 * cells)  # four standard errors of a standard deviation
        assert row["relative"] == pytest.approx(planted, abs=error)


def test_runs_that_agree_to_the_last_bit_move_nothing():
    one = run({"d/a-x-s0": {"mse": 0.9}})
    assert all(
        row[name] == 0
        for by in spreads.measure(one, one).values()
        for row in by.values()
        for name in ("relative", "absolute", "scaled")
    )


def test_the_spread_over_seeds_is_the_pooled_variance():
    arms = {"a-x": (1.0, 1.3, 1.1), "a-y": (5.0, 4.0, 4.4), "b-z": (2.0,)}
    got = spreads.of_seeds(run(seeded(arms), half=0.25))
    assert set(got) == {"a"}  # of an arm of one seed nothing is known
    pooled = [arms["a-x"], arms["a-y"]]
    variances = [statistics.variance(one) for one in pooled]
    means = [statistics.mean(one) for one in pooled]
    row = got["a"]["mse"]
    assert row["absolute"] == pytest.approx(math.sqrt(statistics.mean(variances)), rel=1e-4)
    for name, more in (("relative", 0.0), ("scaled", 0.25)):
        squares = [one / (mean + more) ** 2 for one, mean in zip(variances, means, strict=True)]
        assert row[name] == pytest.approx(math.sqrt(statistics.mean(squares)), rel=1e-4)
    assert row["freedom"] == got["a"][ALL]["freedom"] == 4


def test_arms_of_more_seeds_weigh_by_their_degrees_of_freedom():
    arms = {"a-x": (1.0, 1.3), "a-y": (5.0, 4.0, 4.4, 4.9, 5.2)}
    row = spreads.of_seeds(run(seeded(arms)))["a"]["mse"]
    pooled = (statistics.variance(arms["a-x"]) + 4 * statistics.variance(arms["a-y"])) / 5
    assert row["absolute"] == pytest.approx(math.sqrt(pooled), rel=1e-4) and row["freedom"] == 5


def test_two_measurements_are_pooled_by_their_degrees_of_freedom():
    first, second = (
        content(kinds, size, freedom)["seeds"]
        for kinds, size, freedom in ((("a", "b"), 0.1, 1), (("a", "c"), 0.4, 3))
    )
    got = spreads.pooled(first, second)
    assert set(got) == {"a", "b", "c"} and got["b"] == first["b"] and got["c"] == second["c"]
    root = pytest.approx(math.sqrt((0.1**2 + 3 * 0.4**2) / 4), rel=1e-4)
    assert got["a"][ALL] == {"relative": root, "absolute": root, "scaled": root, "freedom": 4}
    assert spreads.pooled({}, first) == first


# --- what follows


FACTOR = stats.t.ppf(0.995, 4) * math.sqrt(2)


@pytest.mark.parametrize("freedom", [1, 3, 10])
def test_of_a_hundred_new_runs_ninety_eight_are_within_the_tolerance(freedom):
    """The spread of nine kinds measured from `freedom` pairs of runs, then one more pair of one."""
    rng, inside, repeats, size = np.random.default_rng(0), 0, 10_000, 0.02
    number = Number(("cells", "d/k0-x-s0", "metrics", "mse", "value"), 1.0, 1.0)
    for _ in range(repeats):
        pairs = rng.normal(0, size, (9, freedom, 2))
        measured = np.sqrt(np.mean((pairs[..., 0] - pairs[..., 1]) ** 2, 1) / 2)
        rows = [content((f"k{k}",), one, freedom)["seeds"] for k, one in enumerate(measured)]
        known = Spreads({"seeds": {kind: row for table in rows for kind, row in table.items()}})
        one, other = rng.normal(1, size, 2)
        inside += abs(one - other) <= known.tolerance(number)
    assert (
        inside / repeats > 0.975
    )  # of nine variances of one pair each the median is itself unsure


def test_a_kind_of_few_trainings_is_moderated_by_the_median_of_the_kinds():
    sizes, table = {"a": 0.5, "b": 0.1, "c": 0.2}, {}
    for kind, size in sizes.items():
        table |= content((kind,), size, 1)["seeds"]
    known = Spreads({"seeds": table}).of("a", "mse")
    below = stats.chi2.ppf(0.5, 1)  # of the true variance half of one degree's lie below .45
    assert known.relative == pytest.approx(math.sqrt((0.5**2 + 4 * 0.2**2 / below) / 5))
    assert known.freedom == 5
    table |= content(("a",), 0.5, 1000)["seeds"]
    assert Spreads({"seeds": table}).of("a", "mse").relative == pytest.approx(0.5, rel=5e-3)


@pytest.mark.parametrize("freedom", [1, 2, 8])
def test_an_interval_by_moderated_spreads_holds_the_next_training_as_often_as_it_says(freedom):
    """Sixteen kinds that move alike, each measured by few trainings; 90 % of one more each."""
    rng, held = np.random.default_rng(freedom), []
    for _ in range(150):
        variances = rng.chisquare(freedom, 16) / freedom
        rows = [content((f"k{k}",), size, freedom) for k, size in enumerate(np.sqrt(variances))]
        table = {kind: row for one in rows for kind, row in one["seeds"].items()}
        for kind in table:
            known = Spreads({"seeds": table}).of(kind, "mse")
            half = stats.t.ppf(0.95, known.freedom) * known.absolute
            held.append(abs(rng.normal()) < half)
    assert 0.88 < np.mean(held) < 0.94


def test_an_arm_on_a_data_set_is_moderated_by_the_arms_on_it_alone():
    """Those on another set are told in another unit."""
    table = {}
    for kind, size in {"a on x": 0.1, "b on x": 0.2, "c on x": 0.3, "a on y": 50.0}.items():
        table |= content((kind,), size, 4)["seeds"]
    below = stats.chi2.ppf(0.5, 4) / 4
    known = Spreads({"seeds": table})
    middle = math.sqrt((4 * 0.1**2 + 4 * 0.2**2 / below) / 8)
    assert known.of("a on x", "mse").absolute == pytest.approx(middle)
    assert known.of("a on y", "mse").absolute == 50.0  # alone on its set


def test_the_tolerance_is_that_of_rounding_and_of_seeds_where_rounding_was_not_measured():
    number = Number(("cells", "d/a-x-s0", "metrics", "mse", "value"), 4.0, 4.0, 1.0)
    rounding, seeds = (content(("a",), size)["seeds"] for size in (0.1, 0.3))
    both = Spreads({"rounding": rounding, "seeds": seeds})
    assert both.tolerance(number) == pytest.approx(FACTOR * 0.1 * 5)
    assert Spreads({"seeds": seeds}).tolerance(number) == pytest.approx(FACTOR * 0.3 * 5)
    assert both.of("a", "mse").relative == pytest.approx(0.3)  # what a claim asks: the larger


def test_rounding_alone_does_not_tell_how_far_seeds_differ():
    rounding = content(("a", "b"), 0.001)["seeds"]
    assert Spreads({"rounding": rounding}).of("a", "mse") is None
    seeds = content(("b",), 0.2, 4)["seeds"] | content(("c on x",), 9.0)["seeds"]
    known = Spreads({"rounding": rounding, "seeds": seeds})
    # of a kind of one seed, what is typical of the others'
    typical = 0.2 * math.sqrt(4 / stats.chi2.ppf(0.5, 4))
    for by in ("relative", "absolute"):
        assert getattr(known.of("a", "mse", by), by) == pytest.approx(typical)
    assert known.of("a", "mse").freedom == spreads.PRIOR
    assert known.of("a", "share", "absolute") is None


def test_a_metric_that_was_not_measured_moves_as_the_kinds_metrics_do_together():
    rows = content(("a",), 0.1)
    rows["seeds"]["a"]["mse"] = {"relative": 0.5, "absolute": 0.5, "scaled": 0.5, "freedom": 20}
    known = Spreads(rows)
    assert known.of("a", "mse").relative == pytest.approx(0.5)
    assert known.of("a", "rmse").relative == pytest.approx(0.1)


def test_no_other_metrics_absolute_spread_stands_in_for_one_that_was_not_measured():
    """An error of a million moves by thousands; what a share moves by it does not tell."""
    rows = content(("a",), 0.1)
    of_errors = {"relative": 0.1, "absolute": 5000.0, "scaled": 0.1, "freedom": 20}
    rows["seeds"]["a"] |= {"mse": of_errors, ALL: of_errors}
    known = Spreads(rows)
    assert known.of("a", "mse", "absolute").absolute == pytest.approx(5000.0)
    assert known.of("a", "share", "absolute") is None
    assert known.of("a", "share").relative == pytest.approx(0.1)


def test_what_was_never_trained_moves_by_rounding_and_of_a_kind_never_measured_nothing_is_known():
    known = Spreads(content(("a",), 0.1))
    untrained = Number(("cells", "d/mean", "metrics", "mse", "value"), 4.0, 4.0, 1.0)
    other = Number(("cells", "d/b-x-s0", "metrics", "mse", "value"), 4.0, 4.0)
    assert known.tolerance(untrained) == ROUNDING * 5.0
    assert known.tolerance(other) is None and Spreads({}).of("b", "mse") is None
    still = Number(("cells", "d/a-x-s0", "metrics", "mse", "value"), 4.0, 4.0)
    assert Spreads(content(("a",), 0.0)).tolerance(still) == ROUNDING * 4.0


def test_a_count_that_never_moved_may_move_by_one_item_and_no_further():
    """A mean of whole steps over a hundred windows, and a share of which all agree; in the real
    form of a table, for a kind whose measured spread is zero."""
    rng = np.random.default_rng(1)
    steps = rng.integers(0, 40, 100) / 24
    half = stats.norm.ppf(0.95) * steps.std() / math.sqrt(len(steps))
    told = {"low": steps.mean() - half, "high": steps.mean() + half, "unit": "days", "n": 100}
    share = {"value": 0.0, "low": 0.0, "high": 0.0, "unit": "1", "n": 50}
    table = {"vpt": {"value": steps.mean()} | told, "zero": share}
    known = Spreads(content(("a",), 0.0))
    most = {
        number.path[-2]: known.tolerance(number)
        for number in numbers({"cells": {"d/a-x-s0": {"metrics": table}}})
        if number.path[-1] == "value"
    }
    one_step, item = 1 / 24 / len(steps), steps.std() / len(steps)
    assert most == pytest.approx({"vpt": item, "zero": 1 / 50})
    assert one_step < most["vpt"] < half / 4  # an error that an interval would show is still found
    still = {"d/mean": {"metrics": table}}  # never trained: no item moves
    assert all(
        known.tolerance(number) == ROUNDING * number.scale for number in numbers({"cells": still})
    )


def test_files_are_read_back_as_they_were_written(tmp_path):
    home = tmp_path / "reports/any_order/mini"
    assert Spreads.read(home).of("a", "mse") is None
    first, second = (run(seeded({"a-x": (one, 1.5)})) for one in (1.0, 1.1))
    measured = {"rounding": spreads.measure(first, second), "seeds": spreads.of_seeds(second)}
    files.write_json(tmp_path / spreads.place("any_order", "mini"), measured)
    number = next(numbers(first))
    known = Spreads.read(home)
    assert known.of("a", "mse") == Spreads(measured).of("a", "mse") is not None
    assert known.tolerance(number) == Spreads(measured).tolerance(number)
