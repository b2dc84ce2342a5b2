"""Tables as people hand them over in Python, and what in them is no number, time or place.

Polars tables are taken as they are, of pandas ones the columns that are needed; times are numbers
(Unix seconds, or another unit as declared.py has it), datetimes (UTC where they have no zone) or
texts in ISO 8601. Rows count from 1.
"""

import difflib
from collections.abc import Iterable
from typing import Any

import polars as pl

from stages import columns as read
from stages.errors import InputError
from stages.winds.decoding import declared
from stages.winds.forecasts import PLACE
from stages.winds.nowcast import points

ASKED = (*PLACE, "ts_s")
# that a column of points or winds may have
NAMES = tuple(dict.fromkeys((*ASKED, "time", *declared.names())))
SHOWN = 5  # rows that an error names
SINGLE = (pl.Float16, pl.Float32)  # too coarse for Unix seconds: float32 holds one in 128 of them


def is_pandas(table: Any) -> bool:
    """Whether that is a pandas table."""
    return type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns")


def polars(table: Any, names: Iterable[str]) -> pl.DataFrame:
    """A table as Polars has it; of pandas those of the columns that it has, and the others by
    their names alone. InputError for what is no table."""
    if isinstance(table, pl.DataFrame):
        return table
    if is_pandas(table):
        own = [_of_pandas(table, name) for name in names if name in table.columns]
        others = {*filter(lambda name: isinstance(name, str), table.columns)} - {*names}
        return pl.DataFrame([*own, *(pl.Series(n, [None] * len(table)) for n in sorted(others))])
    raise InputError(
        "that is no table",
        found=type(table).__name__,
        expected="a Polars or pandas table; where points are asked for, an xarray dataset, too",
        remedy="call `.collect()` of it first"
        if isinstance(table, pl.LazyFrame)
        else "make one of it: `polars.DataFrame(...)`"
        if isinstance(table, dict | list)
        else "",
    )


def given(table: Any, names: Iterable[str]) -> pl.DataFrame:
    """As `polars`, of an xarray dataset, too: a row a cell of its grid."""
    return of_xarray(table, names)[0] if hasattr(table, "data_vars") else polars(table, names)


def of_xarray(dataset: Any, names: Iterable[str]) -> tuple[pl.DataFrame, Any, Any]:
    """Those of the variables that an xarray dataset has as columns, a row a cell of the grid that
    they span together, and the grid's shape and dimensions."""
    import xarray

    there = [name for name in names if name in dataset.variables]
    spread = xarray.broadcast(*(dataset[name].reset_coords(drop=True) for name in there))
    columns = []
    for name, part in zip(there, spread, strict=True):
        values = part.values.ravel()
        if values.dtype == object:
            columns.append(read.of_list(name, [*values]))
        else:
            columns.append(read.of_array(name, values))
    shape, dims = (spread[0].shape, spread[0].dims) if there else ((), ())
    return pl.DataFrame(columns), shape, dims


def _of_pandas(table: Any, name: str) -> pl.Series:
    column = table[name]
    if hasattr(column, "columns"):
        raise InputError("several columns have one name", found=name, remedy="rename them")
    return read.of_pandas(column, name)


def timed(table: pl.DataFrame) -> pl.DataFrame:
    """A table with Unix seconds in ts_s where it has a column `time` alone."""
    if "ts_s" in table.columns or "time" not in table.columns:
        return table
    return table.with_columns(seconds(table["time"], "the column time").alias("ts_s"))


def asked(table: pl.DataFrame) -> pl.DataFrame:
    """A table of points as ASKED, float64. InputError for columns that are missing, and for a row
    that is no place or no time."""
    told = {"ts_s": "ts_s" if "ts_s" in table.columns else "time"}
    rows = columns(timed(table), ASKED, "the points")
    first_s, end_s = points.TIMES_S
    problems = []
    for name in ASKED:
        good = rows[name].is_finite().fill_null(False)
        if name == "ts_s":
            good &= ((rows[name] >= first_s) & (rows[name] < end_s)).fill_null(False)
        bad = (~good).arg_true().to_list()
        value = ("null" if rows[name][i] is None else f"{rows[name][i]:.12g}" for i in bad)
        problems += [
            f"{told.get(name, name)} {v} of row {i + 1}" for i, v in zip(bad, value, strict=True)
        ]
    if problems:
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        raise InputError(
            "a point is no place and time",
            found="; ".join(problems[:SHOWN] + more),
            expected=f"finite numbers; times from {points.YEARS}",
            remedy="mend these rows, or leave them out (rows count from 1)",
        )
    return rows


def columns(table: pl.DataFrame, names: tuple[str, ...], what: str) -> pl.DataFrame:
    """Those columns as float64, ts_s as Unix seconds; of those that are missing what other names
    with a unit tell (`declared.py`: alt_m, u_kn). InputError for one that is missing or holds no
    numbers."""
    ways = declared.ours(table.schema)
    table = table.with_columns(
        ways[name] for name in names if name in ways and name not in table.columns
    )
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(
            f"{what} lack columns" if what.endswith("s") else f"{what} lacks columns",
            expected=", ".join(names),
            found=", ".join(f"no {name}{_meant(name, table.columns)}" for name in missing),
        )
    kinds = {"ts_s": seconds}
    return table.select(kinds.get(name, numbers)(table[name], what) for name in names)


def _meant(name: str, there: list[str]) -> str:
    """A hint at a column of nearly that name, which no other column's name is."""
    other = [one for one in there if one not in (*ASKED, "time")]
    close = difflib.get_close_matches(name, other, n=1)
    return f"; did you mean {name} by {close[0]!r}?" if close else ""


def numbers(column: pl.Series, what: str) -> pl.Series:
    """A column as float64, null where it is. InputError, naming the row, for what is no number."""
    if column.dtype == pl.Object:
        column = read.of_list(column.name, column.to_list())
    refused = InputError(
        f"a column of {what} holds no numbers", found=f"{column.name}: {column.dtype}"
    )
    if column.dtype == pl.Boolean or column.dtype.is_temporal() or column.dtype.is_nested():
        raise refused
    try:
        found = column.cast(pl.Float64, strict=False)
    except pl.exceptions.PolarsError:
        raise refused from None
    lost = (found.is_null() & column.is_not_null()).arg_true()
    if len(lost):
        raise InputError(
            f"a column of {what} holds no numbers",
            found=f"{column.name} {column[int(lost[0])]!r} of row {lost[0] + 1}",
            remedy="mend this row, or leave it out (rows count from 1)",
        )
    return found


def seconds(column: pl.Series, what: str) -> pl.Series:
    """A column of times as Unix seconds, float64, null where it is. InputError, naming the row, for
    what is no time."""
    if column.dtype == pl.Object:
        column = read.of_list(column.name, column.to_list())
    refuse_single(column.name, column.dtype, what)
    if column.dtype in (pl.Datetime, pl.Date):
        return column.cast(pl.Datetime("us")).cast(pl.Int64) / 1e6
    if column.dtype != pl.String:
        found = numbers(column, what).to_frame()
        return found.select(declared.unix_s(pl.col(column.name))).to_series()
    told: list[float | None] = []
    for row, text in enumerate(column, 1):
        try:
            told.append(None if text is None else points.parse_time(text))
        except InputError as error:
            raise InputError(
                error.what, found=f"{column.name} {text!r} of row {row}", expected=error.expected
            ) from None
    return pl.Series(column.name, told, dtype=pl.Float64)


def refuse_single(name: str, kind: pl.DataType | None, where: str) -> None:
    """InputError for a column of times in single precision, which are no more the moments that
    were meant."""
    if kind in SINGLE:
        raise InputError(
            "times of that precision are off by up to a minute",
            where=where,
            found=f"{name}: {kind}",
            expected="Unix seconds as Float64 or whole numbers, or datetimes",
            remedy="keep times as float64 from where they are read: rounded ones do not come back",
        )
