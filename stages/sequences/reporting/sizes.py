"""Memorisation against the number of training sequences, as a table and as figure 4.5 (thesis
4.3.6).

Data sets that differ in their training sequences alone (about: `held_out`) make a family; a row is
an arm at one size: how many of the training prompts and of the test prompts it answers, their
difference, nats a token in its own order. The figure has a colour an order, training prompts
dashed, test prompts full; companions a level each. `cells` and `about` are those of
tables.py.
Units: shares in %, nats a token; [ ] and bars are 90 % intervals.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stages.sequences import comparisons, memory_claims
from stages.sequences.reporting.arms import (
    RANKS,
    SHOWN,
    About,
    Cells,
    Told,
    at,
    called,
    number,
    ranked,
    short,
    standing,
)
from stages.tables.table import NONE, Table

COMPANIONS = ("uniform", "marginals")
Point = tuple[
    int, dict[str, Any], dict[str, Any]
]  # training sequences, accuracy on training and on test prompts


def families(cells: Cells, about: About) -> list[list[str]]:
    """Data sets that differ in their training sequences alone (memory_claims.py), by rising
    number of those."""
    mine = {
        dataset: {
            name.partition("/")[2]: one
            for name, one in cells.items()
            if name.startswith(dataset + "/")
        }
        for dataset in about
    }
    found = memory_claims.families(
        [
            comparisons.Ordered(dataset, one | {"cells": mine[dataset]})
            for dataset, one in about.items()
        ]
    )
    return [[one.dataset for one in family] for family in found]


def points(cells: Cells, about: About, family: list[str], arm: str) -> list[tuple[str, Point]]:
    """(data set, what an arm answers there) by size, where it was measured on both."""
    found = []
    for dataset in family:
        if arm not in ranked(cells, dataset):
            continue
        key = comparisons.share_of(about[dataset]["kind"])
        path = standing(cells, about[dataset], dataset, arm)
        both = (
            at(cells, dataset, arm, "memorised", key),
            at(cells, dataset, arm, *path, key) if path else None,
        )
        if all(both):
            found.append((dataset, (about[dataset]["sequences"]["train"], *both)))
    return found


def arms_of(cells: Cells, family: list[str]) -> list[str]:
    """The trained arms of a family, in the order of the tables."""
    return list(
        dict.fromkeys(
            arm
            for dataset in reversed(family)
            for arm in ranked(cells, dataset)
            if arm not in RANKS[:4]
        )
    )


def trained(cells: Cells, about: About, family: list[str], arm: str) -> list[tuple[str, ...]]:
    """A row a size of a trained arm."""
    rows = []
    for dataset, (size, train, test) in points(cells, about, family, arm):
        nats = [
            number(at(cells, dataset, arm, *path))
            for path in (("memorised", "nats"), ("metrics", "nats_val"))
        ]
        rows.append(
            (
                called(arm),
                dataset,
                f"{size:,}",
                str(train["seeds"]),
                number(train, 100, True),
                number(test, 100, True),
                f"{100 * (train['mean'] - test['mean']):.1f}",
                number(at(cells, dataset, arm, "memorised", "repeated"), 100),
                *nats,
                memory_claims.state(train["mean"], test["mean"]),
            )
        )
    return rows


def companion(cells: Cells, about: About, dataset: str, arm: str) -> dict[str, Any] | None:
    """What a companion answers of test prompts on a data set; None where it was not measured."""
    path = standing(cells, about[dataset], dataset, arm) if arm in ranked(cells, dataset) else None
    share = comparisons.share_of(about[dataset]["kind"])
    return at(cells, dataset, arm, *path, share) if path else None


def table(cells: Cells, about: About) -> Told | None:
    """A row an arm and size; None where no data sets differ in size alone."""
    rows = []
    for family in families(cells, about):
        last = family[-1]
        rows += [
            row for arm in arms_of(cells, family) for row in trained(cells, about, family, arm)
        ]
        for arm in COMPANIONS:
            if level := companion(cells, about, last, arm):
                size, seeds = about[last]["sequences"]["train"], str(level["seeds"])
                nats = number(at(cells, last, arm, "metrics", "nats_val"))
                told = (seeds, NONE, number(level, 100, True), NONE, NONE, NONE, nats, NONE)
                rows.append((called(arm), last, f"{size:,}", *told))
    titles = (
        "model",
        "data set",
        "training sequences",
        "seeds",
        "training prompts [%]",
        "test prompts [%]",
        "difference [points]",
        "training sequence repeated [%]",
        "nats, training",
        "nats, validation",
        "state",
    )
    half = f"{100 * memory_claims.HALF:.0f}"
    words = (
        "what is counted is the first measure of the data set's own table; 'memorises': a "
        f"difference above {half} points; 'generalises': a smaller one, with above {half} % of the "
        "training prompts answered; 'neither': those were not learned in this profile's steps"
    )
    return (
        (Table("memorisation", titles, tuple(rows), frozenset({0, 1, 10})), words) if rows else None
    )


def figure(
    cells: Cells, about: About, family: list[str], colour: Callable[[str], str], path: Path
) -> bool:
    """Figure 4.5 of one family: shares of training (dashed) and test prompts (full) against
    training sequences. False with no arm."""
    from stages.figures.drawing import plt, save  # with matplotlib

    drawn = {
        arm: [one for _, one in points(cells, about, family, arm)] for arm in arms_of(cells, family)
    }
    drawn = {arm: found for arm, found in drawn.items() if found}
    if not drawn:
        return False
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for arm, found in drawn.items():
        x = [size for size, _, _ in found]
        for place, style, mark, words in ((1, "--", "o", "training"), (2, "-", "s", "test")):
            values: Any = [one[place] for one in found]
            ends: Any = [
                [100 * one.get(end, one["mean"]) for one in values] for end in ("low", "high")
            ]
            axes.plot(
                x,
                [100 * one["mean"] for one in values],
                style,
                marker=mark,
                ms=5,
                mfc="white" if place == 1 else None,
                lw=1.6,
                color=colour(arm),
                label=f"{short(arm)}: {words}",
            )
            axes.vlines(x, *ends, color=colour(arm), lw=1, alpha=0.7)
    last = family[-1]
    for arm in COMPANIONS[:1]:
        if level := companion(cells, about, last, arm):
            axes.axhline(
                100 * level["mean"], color="#8a929c", lw=0.9, ls=":", label=f"{short(arm)}: test"
            )
    title = next(
        (
            title
            for key, title, _ in SHOWN[about[last]["kind"]]
            if key == comparisons.share_of(about[last]["kind"])
        ),
        "share [%]",
    )
    axes.set(xlabel="training sequences", ylabel=title, xscale="log", ylim=(-4, 104))
    sizes = [about[dataset]["sequences"]["train"] for dataset in family]
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
    save(figure, path, dpi=80)
    return True


def draw(cells: Cells, about: About, colour: Callable[[str], str], folder: Path) -> None:
    """A figure a family into `folder`, under the name of its largest data set:
    DATASET-sizes.png."""
    for family in families(cells, about):
        figure(cells, about, family, colour, folder / f"{family[-1]}-sizes.png")
