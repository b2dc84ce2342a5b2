"""A search whose points or queries are tables: their columns as arrays, its answer as a table.

Tables are Polars or pandas frames; both give NumPy arrays of the columns that are named.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from stages.errors import InputError
from stages.neighbours.contract import AXES


def is_frame(given: Any) -> bool:
    """Whether that is a table of Polars or pandas."""
    return type(given).__module__.partition(".")[0] in ("polars", "pandas") and hasattr(
        given, "columns"
    )


def places(given: Any, columns: Sequence[str], what: str) -> Any:
    """Of a table the float64 places (N, 4) in its `columns`, of anything else itself. InputError
    for columns that it lacks."""
    if not is_frame(given):
        return given
    if len(columns) != AXES:
        raise InputError(
            "places have four columns",
            where="columns",
            expected="those of x, y, z and time",
            found=", ".join(columns),
        )
    return np.stack([column(given, name, what).astype(np.float64) for name in columns], 1)


def column(table: Any, name: str, what: str) -> np.ndarray:
    """A column of a table. InputError where it lacks it."""
    if name not in table.columns:
        raise InputError(
            f"the {what} lack a column",
            found=", ".join(map(str, table.columns)),
            expected=name,
            remedy="name the columns of x, y, z and time: columns=(...)",
        )
    values: np.ndarray = table[name].to_numpy()
    return values


def owners(given: Any, points: Any) -> Any:
    """Whose each point is (N,): of a column's name its values, numbered."""
    if not isinstance(given, str):
        return given
    if not is_frame(points):
        raise InputError(
            "only a table has columns", where="trajectory", found=repr(given), expected="numbers"
        )
    return np.unique(column(points, given, "points"), return_inverse=True)[1]


def table(found: Sequence[np.ndarray], kind: Any) -> Any:
    """A row a neighbour, nearest first within a query: query and index (rows of the two tables,
    from 0) and square_distance; pandas where `kind` is."""
    square, index, seen, _ = found
    query = np.nonzero(seen)[0]
    rows = pl.DataFrame({"query": query, "index": index[seen], "square_distance": square[seen]})
    return rows.to_pandas() if type(kind).__module__.startswith("pandas") else rows
