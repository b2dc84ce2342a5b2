"""Answers to the same items, compared item by item: against the textbook's paired test, groups,
subsets, and what is not paired."""

import math

import numpy as np
import pytest
from known_spreads import alike, content
from scipy import stats

from stages import files
from stages.claims.levels import Side
from stages.claims.paired import PairedEvaluation, combined, difference, evaluations
from stages.errors import DataError
from stages.scores import items
from stages.scores.items import Items
from stages.spreads import PRIOR, Spreads

SPREAD = 0.01
KNOWN = Spreads(content(("a", "b", "c"), SPREAD, 400))
LEFT, RIGHT = Side("a-x", ("metrics", "rmse")), Side("b-x", ("metrics", "rmse"))
GROUPS = np.repeat(np.arange(12), 5)


def scores(group=GROUPS, seed=0, within=0.02):
    """Two answers to items that differ a lot in how hard they are, the second .1 worse."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 1, group.max() + 1)[group] + rng.normal(0, 0.3, len(group))
    return hard, hard + 0.1 + rng.normal(0, within, len(group))


def measured(arms, group=GROUPS, kept=True, known=KNOWN):
    cells, found = {}, {}
    for name, one in arms.items():
        value, half = float(np.nanmean(one)), 1.6449 * float(np.nanstd(one)) / math.sqrt(12)
        number = {"value": value, "low": value - half, "high": value + half, "n": len(one)}
        cells[f"{name}-s0"] = {"metrics": {"rmse": number}}
        found[f"{name}-s0"] = {"rmse": one}
    return PairedEvaluation("set", cells, known, Items(group, found) if kept else None)


def part(evaluation):
    return difference(evaluation, "it", LEFT, RIGHT, 0.0, False)


def test_the_interval_is_the_paired_tests_with_the_spread_of_training_added():
    group = np.arange(60)
    one, other = scores(group)
    found = part(measured({"a-x": one, "b-x": other}, group))
    scatter = float(np.var(one - other, ddof=1)) / 60
    spread = alike(SPREAD, 400)
    total = scatter + 2 * spread**2
    degrees = total**2 / (scatter**2 / 59 + 2 * spread**4 / (400 + PRIOR))
    half = stats.t.ppf(0.95, degrees) * math.sqrt(total)
    middle = one.mean() - other.mean()
    assert found.interval == pytest.approx([middle - half, middle + half], rel=1e-6)
    assert found.verdict == "holds" and "60 groups" in found.why
    untrained = measured({"exact": one, "prior": other}, group)
    untrained.cells = {name.removesuffix("-s0"): one for name, one in untrained.cells.items()}
    kept = {name.removesuffix("-s0"): one for name, one in untrained.items.cells.items()}
    untrained.items = Items(group, kept)
    sides = (Side(name, ("metrics", "rmse")) for name in ("exact", "prior"))
    alone = difference(untrained, "it", *sides, 0.0, False)
    textbook = stats.ttest_rel(one, other).confidence_interval(0.90)
    assert alone.interval == pytest.approx([textbook.low, textbook.high], rel=1e-6)


def test_pairing_decides_what_independent_arms_leave_open():
    one, other = scores()
    arms = {"a-x": one, "b-x": other}
    assert part(measured(arms)).verdict == "holds"
    assert part(measured(arms, kept=False)).verdict == "undecided"
    blind = part(measured(arms, known=Spreads({})))
    assert blind.verdict == "undecided" and "one seed" in blind.why


def test_items_of_one_day_count_as_one():
    one, other = scores()
    days = np.random.default_rng(3).normal(0, 0.5, 12)[GROUPS]
    arms = {"a-x": one, "b-x": other + days}
    wide = part(measured(arms)).interval
    narrow = part(measured(arms, np.arange(60))).interval
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])


def test_a_difference_of_differences_of_two_parts_of_the_items():
    rng = np.random.default_rng(1)
    few = np.arange(60) < 24
    off, both = rng.normal(2, 0.3, 60), rng.normal(1, 0.3, 60)
    sides, cells, kept = {}, {}, {}
    for metric, its, sign in (("rmse_few", few, 1.0), ("rmse_many", ~few, -1.0)):
        for arm, values, turn in (("a-x", off, 1.0), ("b-x", both, -1.0)):
            sides[Side(arm, ("metrics", metric))] = sign * turn
            number = {"value": float(values[its].mean()), "n": int(its.sum())}
            cells.setdefault(f"{arm}-s0", {"metrics": {}})["metrics"][metric] = number
            kept.setdefault(f"{arm}-s0", {})[metric] = np.where(its, values, np.nan)
    found = combined(
        PairedEvaluation("set", cells, KNOWN, Items(np.arange(60), kept)),
        "it",
        "gap",
        sides,
        0.0,
        True,
    )
    gaps = [(off - both)[its] for its in (few, ~few)]
    assert found.numbers["value"] == pytest.approx(gaps[0].mean() - gaps[1].mean())
    scatter = sum(float(np.var(gap)) / len(gap) for gap in gaps) * 60 / 59
    total = scatter + 4 * SPREAD**2
    width = (found.interval[1] - found.interval[0]) / 2 / math.sqrt(total)
    assert 1.64 < width < 1.69


def test_scores_that_are_not_of_these_items_are_not_paired():
    one, other = scores()
    arms = {"a-x": one, "b-x": other}
    whole = measured(arms)
    cut = measured(arms)
    cut.items = Items(GROUPS, {"a-x-s0": {"rmse": one}, "b-x-s0": {"rmse": other[:9]}})
    alone = part(measured(arms, kept=False))
    assert part(cut).interval == alone.interval != part(whole).interval


def test_kept_items_come_back_whole_or_are_refused_by_name(tmp_path):
    home, folder = tmp_path, tmp_path / "evaluated/set"
    folder.mkdir(parents=True)
    one, other = scores()
    made = measured({"a-x": one, "b-x.y": other})
    files.write_json(folder / "metrics.json", {"cells": made.cells})
    assert evaluations(home, items.read)["set"].items is None
    items.write(folder, made.items)
    read = evaluations(home, items.read)["set"].items
    np.testing.assert_array_equal(read.cells["b-x.y-s0"]["rmse"], other)
    np.testing.assert_array_equal(read.group, GROUPS)
    path = folder / items.FILE
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="single items cannot be read"):
        items.read(folder)
    items.write(folder, Items(GROUPS, {"a-x-s0": {"rmse": one[:4]}}))
    with pytest.raises(DataError, match="not of every item"):
        items.read(folder)
