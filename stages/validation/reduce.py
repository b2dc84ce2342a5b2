"""Polars reduces, lazily and streaming: a table of millions of rows becomes a summary of a few,
which GX can judge.

Great Expectations 1.24 takes no Polars frames and holds whole pandas ones, so
no rule sees a row: it sees shares, counts and extents. The rows behind a failed rule are looked up
afterwards (`examples`). Shares are of all rows, 0 to 1.
"""

from typing import Any

import polars as pl

EXAMPLES = 10
YEAR_2000_S, YEAR_2100_S = 946684800.0, 4102444800.0


def share(condition: pl.Expr) -> pl.Expr:
    """Share of rows where `condition` holds; a null condition counts as not holding; 0 of no
    rows is 0."""
    return condition.fill_null(False).mean().fill_null(0.0)


def outside(name: str, low: float, high: float) -> pl.Expr:
    """Rows whose number is there but not within [low, high]; a null or not-a-number is
    `absent`'s matter."""
    return pl.col(name).is_not_nan() & ~pl.col(name).is_between(low, high)


def absent(name: str) -> pl.Expr:
    """Rows with a null, a not-a-number or an infinity in a float column."""
    return ~pl.col(name).is_finite().fill_null(False)


def summary(lazy: pl.LazyFrame, **columns: pl.Expr) -> dict[str, Any]:
    """One pass over the file: the named aggregates."""
    return lazy.select(**columns).collect(engine="streaming").row(0, named=True)


def schema_rows(lazy: pl.LazyFrame) -> list[dict[str, str]]:
    """The file's columns with their types, as rows to be compared with what is expected."""
    return [{"column": f"{name}: {dtype}"} for name, dtype in lazy.collect_schema().items()]


def examples(lazy: pl.LazyFrame, rows: pl.Expr) -> tuple[int, list[dict[str, Any]]]:
    """How many rows `rows` picks, and file and record of the first ten, in file order."""
    found = lazy.filter(rows).select("file", "record")
    return found.select(pl.len()).collect(engine="streaming").item(), found.head(EXAMPLES).collect(
        engine="streaming"
    ).to_dicts()
