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
    ) -> Any:
        """The k nearest points of each query among those measured at least `window` before it.

        points (N, 4) and queries (M, 4): x, y, z, t in any units, arrays or tensors of one dtype,
        float32 or float64; window in the unit of t, None: every point is seen; scale: a number,
        (4,) or (M, 4), what a squared difference of an axis counts; method: linear, kdtree,
        forest, trajectory, boxes or compiled, the same answers at another speed; trajectory (N,)
        says whose the points are. Gives Neighbours (square_distance, index and mask, each (M, k),
        and comparisons (M,)): tensors where points are a tensor, else NumPy arrays. InputError.
        Source: thesis, equation 1.3.
        """
        import torch

        from stages.neighbours import contract, methods

        own = None if trajectory is None else torch.as_tensor(trajectory, dtype=torch.int64)
        index = methods.build(method, torch.as_tensor(points), own)
        weights = scale if isinstance(scale, int | float) else torch.as_tensor(scale)
        found = index.query(torch.as_tensor(queries), k, window, weights)
        if isinstance(points, torch.Tensor):
            return found
        arrays: list[Any] = [part.numpy() for part in found]
        return contract.Neighbours(*arrays)


sys.modules[__name__].__class__ = Search
