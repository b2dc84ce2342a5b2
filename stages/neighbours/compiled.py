"""Exact causal k nearest points on the CPU, compiled: a k-d tree over unscaled coordinates, one for
every diagonal scale.

Medians cut the points along their widest axis into leaves (layers/kernels/search_code.py); a query
looks at the nearest box first and leaves out every box

- whose earliest point in time comes after all that the query sees, or
- which is further away than the k-th neighbour so far; or just as far, while no index in it is
  lower: ties go to the lowest index.

A box's distance is the contract's own expression on the gaps max(low - q, q - high, 0), in time at
least the gap to the latest point seen, in the points' dtype. Rounding is monotone: a point inside
has no smaller gap, so no smaller rounded gap, square, product or sum. The bound never exceeds the
computed distance of a point inside, and is exact without slack. No gradient:
`contract.square_distance` at `index` gives one.
Shapes: N points, M queries, k neighbours. Units: the caller's.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from stages import arithmetic
from stages.errors import InputError
from stages.layers.kernels import search_code as kernels
from stages.neighbours.boxes import Boxes
from stages.neighbours.contract import AXES, Index, Neighbours, empty

CHUNK = 16  # queries that a thread takes at a time
SAMPLE = 1 << 16  # points, about, whose spread makes the axes comparable


class Compiled(Index):
    """A causal k-d tree over points (N, 4) in the CPU's memory.

    `units` (4,) make the axes comparable where it is cut (default: their spread).
    Threads: torch.get_num_threads(); the answer does not depend on them. InputError for points
    elsewhere and for units that are none. Where our kernels are off (stages/arithmetic) `Boxes`
    finds the same neighbours by torch; it counts its own comparisons.
    """

    def __init__(
        self, points: Tensor, trajectory: Tensor | None = None, units: Tensor | None = None
    ):
        if points.device.type != "cpu":
            raise InputError(
                "the compiled search reads the CPU's memory only",
                found=f"points on {points.device}",
                remedy="points.cpu(), or an index that runs there (boxes)",
            )
        super().__init__(points, trajectory)
        self.order = self.order.int()
        inverse = 1 / _units(points, units).numpy()
        self._off = None if arithmetic.compiled() else Boxes(points, trajectory)
        if self._off is not None:
            return
        given = points.numpy(force=True)
        depth = max(0, -(-len(given) // kernels.LEAF) - 1).bit_length()
        table = np.zeros((len(given) + kernels.LEAF, AXES), given.dtype)
        index = np.zeros(len(given) + kernels.LEAF, np.int32)
        table[: len(given)], index[: len(given)] = given, np.arange(len(given), dtype=np.int32)
        boxes = np.empty(((2 << depth) // 8 + 1, 2, AXES, 8), given.dtype)
        lowest = np.zeros(2 << depth, np.int32)
        boxes[0, 0], boxes[0, 1] = np.inf, -np.inf  # the places of no node
        if len(given):
            _grow(table, index, inverse, boxes, lowest, depth)
        self._tree = table.ravel(), index, boxes.ravel(), lowest

    def _search(self, queries: Tensor, k: int, scale: Tensor, allowed: Tensor) -> Neighbours:
        if self._off is not None:
            return self._off._search(queries, k, scale, allowed)
        answer, end = empty(len(queries), k, self.points), (allowed - 1).clamp(min=0)
        latest = self.times[end].masked_fill(allowed == 0, -torch.inf)
        asked = [
            part.contiguous().numpy(force=True)
            for part in (queries, scale, latest, self.order[end])
        ]
        keys = answer.square_distance.view(
            torch.int32 if queries.dtype == torch.float32 else torch.int64
        )
        filled = [part.numpy() for part in (keys, answer.index, answer.comparisons)]
        rows = iter(allowed.argsort().split(CHUNK))  # alike in time: they meet the same boxes

        def work() -> None:
            for part in rows:
                kernels.search(*self._tree, part.numpy(), *asked, *filled)

        _together(work, min(torch.get_num_threads(), -(-len(queries) // CHUNK)))
        return answer._replace(mask=answer.index >= 0)


def _grow(
    table: np.ndarray,
    index: np.ndarray,
    inverse: np.ndarray,
    boxes: np.ndarray,
    lowest: np.ndarray,
    depth: int,
) -> None:
    """Split level by level until there is a subtree for every thread, then grow the subtrees."""
    threads = torch.get_num_threads()
    shared = min(depth, (threads - 1).bit_length())
    for level in range(shared + 1):
        nodes, last = iter(range(1 << level, 2 << level)), depth if level == shared else level + 1

        def work(nodes: Iterator[int] = nodes, last: int = last) -> None:
            for node in nodes:
                kernels.grow(table, index, inverse, boxes, lowest, node, last, depth)

        _together(work, min(threads, 1 << level))


def _together(work: Callable[[], None], threads: int) -> None:
    """Run `work` in this thread and others at once: it takes what is to do from an iterator that
    all share. No thread outlives the call."""
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:
        helping = [pool.submit(work) for _ in range(threads - 1)]
        work()
    for helper in helping:
        helper.result()


def _units(points: Tensor, units: Tensor | None) -> Float[Tensor, "4"]:
    """What makes the axes comparable, float64; infinite for an axis along which nothing differs,
    which is not cut. InputError."""
    if units is None and not len(points):
        units = points.new_ones(AXES)
    elif units is None:
        units = (
            points.detach()[:: max(1, len(points) // SAMPLE)]
            .double()
            .std(0, correction=0)
            .nan_to_num()
        )
    elif units.shape != (AXES,) or not (torch.isfinite(units) & (units >= 0)).all():
        raise InputError(
            "the axes' units are not usable",
            found=f"{units.tolist()}",
            expected="four finite numbers, not negative",
        )
    return units.double().masked_fill(units == 0, torch.inf)
