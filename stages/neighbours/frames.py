"""A search whose points or queries are tables: their columns as numbers, its answer as a table.

Tables are Polars or pandas frames. A search compares times as numbers, so moments of any resolution
and zone become Unix seconds: two columns then count the same unit from the same moment, and no
query sees a point of its future. Names of trajectories become whole numbers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from stages import columns
from stages.errors import InputError
from stages.neighbours.contract import AXES

DOUBLE, MOST_SINGLE = 8, 1 << 24  # bytes; whole numbers to which float32 knows each


def is_frame(given: Any) -> bool:
    """Whether that is a table of Polars or pandas. InputError for one that is not collected."""
    if isinstance(given, pl.LazyFrame):
        raise InputError(
            "that is no table", found="a LazyFrame", expected="its rows", remedy="collect() it"
        )
    return type(given).__module__.partition(".")[0] in ("polars", "pandas") and hasattr(
        given, "columns"
    )


def places(given: Any, names: Sequence[str], what: str) -> Any:
    """Of a table the float64 places (N, 4) in its columns of those names, the last of them in Unix
    seconds where it holds moments; of lists the same as they are, of arrays and tensors themselves.
    InputError for columns that it lacks, for what is no number, and for Unix seconds in single
    precision, which tells no past from future."""
    if isinstance(given, list | tuple):
        return np.asarray(given, np.float64)
    if not is_frame(given):
        if given.dtype.itemsize < DOUBLE and len(given) and abs(given[:, -1]).max() > MOST_SINGLE:
            raise InputError(
                f"times of the {what} are off by up to a minute",
                found=f"{given.dtype}: {float(abs(given[:, -1]).max()):.12g}",
                expected="float64, as they were measured: rounded ones do not come back",
            )
        return given
    if len(names) != AXES:
        raise InputError(
            "places have four columns",
            where="columns",
            expected="those of x, y, z and time",
            found=", ".join(names),
        )
    read = (numbers(column(given, name, what), what, name == names[-1]) for name in names)
    return np.stack([*read], 1)


def column(table: Any, name: str, what: str) -> pl.Series:
    """A column of a table. InputError where it lacks it."""
    if name not in table.columns:
        raise InputError(
            f"the {what} lack a column",
            found=", ".join(map(str, table.columns)),
            expected=name,
            remedy="name the columns of x, y, z and time: columns=(...)",
        )
    values = table[name]
    if isinstance(values, pl.Series):
        return values
    return columns.of_pandas(values, name)


def numbers(column: pl.Series, what: str, moments: bool) -> np.ndarray:
    """A column (N,) as float64, not a number where it is null. `moments`: it may hold datetimes,
    UTC where they have no zone. InputError, naming the row, for anything else."""
    moment = moments and column.dtype in (pl.Datetime, pl.Date)
    if not (moment or column.dtype.is_numeric() or column.dtype == pl.Null):
        first = column.is_not_null().arg_max() or 0
        raise InputError(
            f"a column of the {what} holds no numbers",
            found=f"{column.name} {column[first]!r} of row {first + 1}, {column.dtype}",
            expected="numbers, or datetimes" if moments else "numbers",
            remedy="make numbers of it first (rows count from 1)",
        )
    if moment:
        column = column.cast(pl.Datetime("us")) if column.dtype == pl.Date else column
        column = column.dt.epoch("us").cast(pl.Float64) / 1e6
    found: np.ndarray = column.cast(pl.Float64).to_numpy()
    return found


def owners(given: Any, points: Any) -> Any:
    """Whose each point is (N,), numbered: of a column's name its values, of texts their ranks; of
    whole numbers themselves. InputError for a point of nobody."""
    if isinstance(given, str):
        if not is_frame(points):
            raise InputError(
                "only a table has columns",
                where="trajectory",
                found=repr(given),
                expected="numbers",
            )
        given = column(points, given, "points").to_list()
    if given is None or np.asarray(given).dtype.kind in "iub":
        return given
    names = np.asarray(given).tolist()
    missing = [row for row, name in enumerate(names, 1) if name is None or name != name]
    if missing:
        raise InputError(
            "a point has no trajectory",
            where="trajectory",
            found=f"{names[missing[0] - 1]!r} of row {missing[0]}",
            expected="a number or a text for each point",
            remedy="name it, or leave the point out (rows count from 1)",
        )
    return np.unique(np.asarray(names).astype(str), return_inverse=True)[1]


def table(found: Sequence[np.ndarray], kind: Any) -> Any:
    """A row a neighbour, nearest first within a query: query and index (rows of the two tables,
    from 0) and square_distance; pandas where `kind` is."""
    square, index, seen, _ = found
    query = np.nonzero(seen)[0]
    rows = pl.DataFrame({"query": query, "index": index[seen], "square_distance": square[seen]})
    return rows.to_pandas() if type(kind).__module__.startswith("pandas") else rows
