"""Tables that `tradewind.neighbours` is handed, in Polars or pandas, as plain numbers: moments of
any resolution and zone become Unix seconds, names of trajectories whole numbers.

A search compares times as numbers, so two columns of times must count the same unit from the same
moment; only then does no query see a point of its future.
"""

import sys
from typing import Any

import numpy as np
import polars as pl

from stages import neighbours
from stages.errors import InputError
from stages.neighbours import frames
from stages.winds.nowcast import handed


class Search(neighbours.Search):
    """The package of the searches, whose call takes tables whatever kind their times have."""

    def __call__(
        self,
        points: Any,
        queries: Any,
        k: int,
        *,
        window: float | None = 0.0,
        scale: Any = 1.0,
        method: str = "compiled",
        trajectory: Any = None,
        columns: tuple[str, str, str, str] = ("x", "y", "z", "t"),
    ) -> Any:
        """As neighbours.Search. The last of `columns` may hold datetimes, UTC where they have no
        zone: they become Unix seconds, of which `window` then counts. `trajectory` (N,) may be
        texts. InputError, too, for a column of a table that holds no numbers."""
        return super().__call__(
            numbered(points, columns, "the points"),
            numbered(queries, columns, "the queries"),
            k,
            window=window,
            scale=scale,
            method=method,
            trajectory=owners(trajectory, points),
            columns=columns,
        )


def install() -> None:
    """Let the package be called so. Here, not there: trained winds rest on the package's code, and
    tables are nothing to them."""
    sys.modules[neighbours.__name__].__class__ = Search


def numbered(given: Any, columns: tuple[str, ...], what: str) -> Any:
    """Of a table its `columns` as float64, the last of them in Unix seconds where it holds moments;
    anything else, and a table without one of them, itself. InputError, naming column and row, for
    what is no number."""
    if isinstance(given, pl.LazyFrame):
        handed.polars(given, columns)  # which refuses it
    if not frames.is_frame(given) or not {*columns} <= {*given.columns}:
        return given
    table = handed.polars(given, columns)
    made = pl.DataFrame({name: plain(table[name], what, name == columns[-1]) for name in columns})
    return made.to_pandas() if handed.is_pandas(given) else made


def plain(column: pl.Series, what: str, moments: bool) -> np.ndarray:
    """A column (N,) as float64, not a number where it is null. `moments`: it may hold datetimes.
    InputError, naming the row, for texts, truths, durations and other things."""
    if column.dtype == pl.Object:
        column = handed.listed(column.name, column.to_list())
    moment = moments and column.dtype in (pl.Datetime, pl.Date)
    if not (moment or column.dtype.is_numeric() or column.dtype == pl.Null):
        first = column.is_not_null().arg_max() or 0
        raise InputError(
            f"a column of {what} holds no numbers",
            found=f"{column.name} {column[first]!r} of row {first + 1}, {column.dtype}",
            expected="numbers, or datetimes" if moments else "numbers",
            remedy="make numbers of it first (rows count from 1)",
        )
    values = handed.seconds(column, what) if moment else column
    found: np.ndarray = values.cast(pl.Float64).to_numpy()
    return found


def owners(given: Any, points: Any) -> Any:
    """Whose each point is: names (N,), a list or a column, and the column of a table of points by
    its name, as whole numbers; anything else itself. InputError for a point of nobody."""
    if given is None:
        return None
    if isinstance(given, str):
        if not frames.is_frame(points) or given not in points.columns:
            return frames.owners(given, points)  # which refuses it
        given = handed.polars(points, (given,))[given].to_list()
    values = np.asarray(given)
    if values.ndim != 1 or values.dtype.kind in "iub":
        return given
    names = values.tolist()
    missing = [i for i, name in enumerate(names, 1) if name is None or name != name]
    if missing:
        raise InputError(
            "a point has no trajectory",
            where="trajectory",
            found=f"{names[missing[0] - 1]!r} of row {missing[0]}",
            expected="a number or a text for each point",
            remedy="name it, or leave the point out (rows count from 1)",
        )
    return np.unique(values.astype(str), return_inverse=True)[1]
