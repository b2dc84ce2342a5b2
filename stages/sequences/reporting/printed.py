"""The printed numbers that belong beside models of sequences; ‡ marks one about which the document
leaves something open."""

import re
from collections.abc import Iterable
from typing import Any

import polars as pl

from stages.sequences.reporting.arms import DOCUMENTS, order_of, spread, varied
from stages.tables.published import Printed, listed, named, read
from stages.tables.table import NONE, digits

METRICS = ("accuracy", "mse", "perplexity", "training_length_to_reference")
Companions = dict[tuple[str, str], dict[str, Printed]]


def companions(experiment: str) -> Companions:
    """For each (data set as printed, arm) of companions.csv: metric -> the printed number; the
    first table that prints one counts.

    An arm is an order's name or diffusion; `ORDER-SIZE-PROMPT` of table D.1. DataError for a row
    that finds none, or stands twice.
    """
    rows, found = read().filter(pl.col("metric").is_in(METRICS)), {}
    for row in listed(experiment, ("arm", "dataset", "table")):
        for r in named(rows, row, ("dataset", "variant", "size"), experiment).iter_rows(named=True):
            one = Printed(r["table"], r["dataset"], r["mean"], r["std"], r["note"] or "")
            found.setdefault((r["dataset"], row["arm"]), {}).setdefault(r["metric"], one)
    return found


def beside(printed: Companions, about: dict[str, Any], arm: str) -> dict[str, Printed]:
    """What the documents print of an arm's samples, by metric: nothing where few sequences train
    (`held_out`), nor of a variant that is ours."""
    alike = not about.get("held_out") and not varied(arm)
    return printed.get((DOCUMENTS.get(about["kind"], ""), order_of(arm)), {}) if alike else {}


def open_in(printed: Printed) -> bool:
    """Whether a printed number's note says that the document leaves something open."""
    return bool(re.search("not stated|without|not comparable|says", printed.note))


def theirs(printed: Printed | None) -> str:
    """'98.3 ± 0.67‡ (thesis 4.2)'."""
    if printed is None:
        return NONE
    wide = f" ± {spread(printed.std)}" if printed.std is not None else ""
    return f"{digits(printed.mean)}{wide}{'‡' if open_in(printed) else ''} ({printed.table})"


def notes(rows: Iterable[Printed | None]) -> str:
    """What ‡ means under a table of these printed numbers, each note once; '' without any."""
    found = dict.fromkeys(
        (row.table, re.sub(r"; row printed \"\w+\"", "", row.note))
        for row in rows
        if row and open_in(row)
    )
    return "; ".join(f"‡ {table}: {note}" for table, note in found)
