"""Causal nearest neighbours (contract.py), by any of the searches (methods.py). The package can be
called: `tradewind.neighbours(points, queries, k)`."""

import sys
from types import ModuleType
from typing import Any


class Search(ModuleType):
    """A package whose call is a search, so that one name is both."""

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
        """The k nearest points of each query among those measured at least `window` before it.

        points (N, 4) and queries (M, 4): x, y, z, t in any units, arrays or tensors of one dtype,
        float32 or float64; window in the unit of t, None: every point is seen; scale: a number,
        (4,) or (M, 4), what a squared difference of an axis counts; method: linear, kdtree,
        forest, trajectory, boxes or compiled, the same answers at another speed; trajectory (N,)
        says whose the points are, in numbers or texts. Gives Neighbours (square_distance, index
        and mask, each (M, k), and comparisons (M,)): tensors where points are a tensor, else NumPy
        arrays.
        Points and queries may be Polars or pandas tables, too, with their places in `columns`, and
        trajectory a column of the points': the answer then is such a table, a row a neighbour
        (query, index, square_distance). The last column may hold datetimes: they become Unix
        seconds, of which `window` then counts. InputError. Source: thesis, equation 1.3.
        """
        import torch

        from stages.neighbours import contract, frames, methods

        own = frames.owners(trajectory, points)
        own = None if own is None else torch.as_tensor(own, dtype=torch.int64)
        weights = scale if isinstance(scale, int | float) else torch.as_tensor(scale)
        known = torch.as_tensor(frames.places(points, columns, "points"))
        asked = torch.as_tensor(frames.places(queries, columns, "queries"))
        found = methods.build(method, known, own).query(asked, k, window, weights)
        if isinstance(points, torch.Tensor):
            return found
        arrays: list[Any] = [part.numpy() for part in found]
        if frames.is_frame(queries):
            return frames.table(arrays, queries)
        return contract.Neighbours(*arrays)


sys.modules[__name__].__class__ = Search
