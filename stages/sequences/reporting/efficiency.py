"""Table 4.3: how long models learn until they are as good as GPT (thesis 4.3.2).

Two levels of the validation loss, each model in its own order (by the chain rule perfect models
share it): the one that an order and GPT both reach, and the printed table's, where GPT ends, with
2 % to spare. A step is read straight between two validations. One that was reached by the first of
them, or not by the last, is a bound, and so is its ratio.
Units: nats a token, steps.
"""

from statistics import fmean

from stages.claims.levels import AT
from stages.sequences import comparisons
from stages.sequences.reporting.arms import DOCUMENTS, About, Cells, Told, called
from stages.sequences.reporting.printed import METRICS, Companions, notes
from stages.tables.published import Printed
from stages.tables.table import NONE, Table, digits

UNKNOWN = "unknown"  # a ratio of which both numbers are bounds, the wrong ways round
ORDERS = ("random", "fractal", "curriculum")
TITLES = (
    "data set",
    "model",
    "seeds (GPT, model)",
    "loss of both [nats]",
    "steps of GPT",
    "steps of the model",
    "ratio",
    f"GPT's loss + {100 * comparisons.WITHIN:g} % [nats]",
    "its steps",
    "the model's steps",
    "their ratio",
    "printed ratio",
)


def counted(
    gpt: str, arm: str, found: tuple[float, dict[str, list[comparisons.Reached]]] | None
) -> tuple[str, ...] | None:
    """(loss, GPT's steps, the model's, their ratio), with what only bounds them; None where one has
    no history."""
    if found is None:
        return None
    target, reached = found
    taken = [fmean(one.step for one in reached[name]) for name in (gpt, arm)]
    cut = [comparisons.cut_off(reached[name]) for name in (gpt, arm)]
    bound = comparisons.ratio_of(cut[1], cut[0])
    return (
        f"{target:.3g}",
        *(f"{AT.get(one, '')}{count:,.0f}" for one, count in zip(cut, taken, strict=True)),
        UNKNOWN if bound == "both" else f"{AT.get(bound, '')}{taken[1] / taken[0]:.2f}",
    )


def pace(
    measured: comparisons.Ordered, gpt: str, arm: str, pair: list[Printed | None]
) -> tuple[str, ...] | None:
    """The row of two arms, `pair` the printed lengths of training; None where one was not run or
    left no history."""
    if not (measured.arm(gpt) and measured.arm(arm)):
        return None
    both, level = (
        counted(gpt, arm, find(measured, gpt, arm))
        for find in (comparisons.steps, comparisons.to_level)
    )
    if both is None or level is None:
        return None
    ratio, (first_one, second) = NONE, pair
    if first_one and second:
        ratio = (
            f"{second.mean / first_one.mean:.2f}‡ ({digits(second.mean)} / "
            f"{digits(first_one.mean)}, {first_one.table})"
        )
    seeds = f"{len(measured.arm(gpt))}, {len(measured.arm(arm))}"
    return (measured.dataset, called(arm), seeds, *both, *level, ratio)


def efficiency(cells: Cells, about: About, printed: Companions) -> Told | None:
    """Table 4.3; None where no data set has an order and left to right."""
    rows, used = [], []
    for dataset, one in about.items():
        if one.get("held_out"):  # there for its number of training sequences; validated once
            continue
        mine = {
            name.partition("/")[2]: content
            for name, content in cells.items()
            if name.startswith(dataset + "/")
        }
        measured = comparisons.Ordered(dataset, one | {"cells": mine})
        document = DOCUMENTS.get(one["kind"], "")
        for order in ORDERS:
            pair = [
                printed.get((document, name), {}).get(METRICS[-1])
                for name in ("left_to_right", order)
            ]
            for gpt, arm in measured.pairs("left_to_right", order):
                row = pace(measured, gpt, arm, pair)
                if row:
                    rows.append(row)
                    used += pair if all(pair) else []
    last = len(TITLES) - 1
    return (
        (Table("training efficiency", TITLES, tuple(rows), frozenset({0, 1, last})), notes(used))
        if rows
        else None
    )
