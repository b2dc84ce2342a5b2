"""Columns as Polars has them, of what people hand over: pandas columns, NumPy arrays, lists of
Python's own values. Rows count from 1.
"""

import datetime as dt
import numbers
from typing import Any

import numpy as np
import polars as pl

from stages.errors import InputError

RESOLUTIONS = ("ms", "us", "ns")  # of NumPy's datetimes and durations, that Polars knows


def of_pandas(column: Any, name: str) -> pl.Series:
    """A column of pandas; datetimes in UTC, without their zone."""
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    values = column.to_numpy()
    if values.dtype != object:
        return of_array(name, values)
    missing = column.isna().to_numpy()
    return of_list(name, [None if gone else v for v, gone in zip(values, missing, strict=True)])


def of_array(name: str, values: np.ndarray) -> pl.Series:
    """A column of an array (N,); datetimes and durations of another resolution than Polars has
    become microseconds."""
    if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] not in RESOLUTIONS:
        values = values.astype(f"{values.dtype.kind}8[us]")
    return pl.Series(name, values)


def of_list(name: str, values: list[Any]) -> pl.Series:
    """A column of Python's own values, or NumPy's; datetimes in UTC, without their zone. InputError
    for those of which none can be made, and, naming the row, for one of another kind than the
    first: a number beside a datetime has no unit, and beside a truth is none."""
    if values and all(isinstance(value, np.datetime64 | np.timedelta64) for value in values):
        return of_array(name, np.array(values))
    plain = [_plain(value) for value in values]
    kinds = [(row, _kind(value)) for row, value in enumerate(plain, 1) if value is not None]
    if other := next((one for one in kinds if one[1] != kinds[0][1]), None):
        raise InputError(
            "a column holds values of two kinds",
            where=name,
            found=f"{kinds[0][1]} {values[kinds[0][0] - 1]!r} of row {kinds[0][0]}, "
            f"{other[1]} {values[other[0] - 1]!r} of row {other[0]}",
            expected="one kind: numbers, datetimes or texts",
            remedy="mend these rows (rows count from 1)",
        )
    try:
        return pl.Series(name, plain, strict=False)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            "a column holds no numbers, times or texts",
            found=f"{name}: {' '.join(str(error).split())[:200]}",
        ) from None


def _plain(value: Any) -> Any:
    """Python's own value: Polars takes a column's type from the first of NumPy's, and cuts the
    rest to it."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype(f"{value.dtype.kind}8[us]").item()
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def _kind(value: Any) -> str:
    """What a value is, in a word."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, numbers.Number):
        return "number"
    if isinstance(value, dt.date):
        return "date"
    return "text" if isinstance(value, str) else type(value).__name__
