"""A k-d tree of our own in Python, with scaled and causal queries (thesis section 1.4.3 and
appendix A.1, `scaled masked KDTree`).

Built once in unscaled coordinates: a node is halved at the median of its widest axis, until leaves
hold about `leaf` points. A node knows the box of its points and the earliest of them: where a query
sees none, it is left out. The contract's expression, on the gaps to the box, is a lower bound of
the distances inside as they are computed, for rounding keeps order: one tree serves every scale,
without slack. Queries are answered one by one, nearest box first, in NumPy on the CPU; only a leaf
is searched as a whole, as far as it is seen. The thesis' ablation (tables A.1 to A.3) is in the
query: plain is scale 1 and no window, scaled any scale and no window, masked has both.
Shapes: N points, M queries, k neighbours; nodes stand in levels, the children of node i are 2 i + 1
and 2 i + 2.
"""

import heapq

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from stages.errors import InputError
from stages.neighbours import contract


class KDTree(contract.Index):
    """`leaf`: points in a leaf at most, but for one that an odd half leaves over (the thesis
    compares 10, 100 and 1000)."""

    def __init__(self, points: Tensor, trajectory: Tensor | None = None, leaf: int = 100):
        super().__init__(points, trajectory)
        if type(leaf) is not int or leaf < 1:
            raise InputError(
                "a leaf holds no points", found=repr(leaf), expected="a whole number of at least 1"
            )
        table, rank = points.numpy(force=True), self.rank.numpy(force=True)
        self.levels = 0
        while len(table) >> self.levels > leaf:
            self.levels += 1
        index, self.edges = _halved(table, self.levels)
        self.first_leaf = (1 << self.levels) - 1
        if len(table):
            self.index = _by_rank(index, rank, self.edges)
            self.ranks, self.columns = rank[self.index], table[self.index].T.copy()
            self.low, self.high = (
                _levels(part.reduceat(self.columns, self.edges[:-1], 1), part)
                for part in (np.minimum, np.maximum)
            )
            self.earliest = _levels(self.ranks[None, self.edges[:-1]], np.minimum)[0]

    def _search(
        self,
        queries: Float[Tensor, "M 4"],
        k: int,
        scale: Float[Tensor, "M 4"],
        allowed: Int[Tensor, " M"],
    ) -> contract.Neighbours:
        found = contract.empty(len(queries), k, self.points)
        rows = zip(
            queries.numpy(force=True), scale.numpy(force=True), allowed.tolist(), strict=True
        )
        for row, (query, weight, seen) in enumerate(rows):
            distance, index, comparisons = self._nearest(query, k, weight, seen)
            found.square_distance[row, : len(index)] = torch.from_numpy(distance)
            found.index[row, : len(index)] = torch.from_numpy(index)
            found.comparisons[row] = comparisons
        return found._replace(mask=found.index >= 0)

    def _nearest(
        self, query: np.ndarray, k: int, scale: np.ndarray, seen: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Distance and index of the k nearest of the first `seen` points in time, in order, and
        how many were looked at."""
        query, scale = query[:, None], scale[:, None]
        distance, index, comparisons = self.columns[0, :0], self.index[:0], 0
        ahead, reach = ([(0.0, 0)] if seen else []), np.inf
        while (
            ahead and ahead[0][0] <= reach
        ):  # a box as far as the k-th may hold an equal distance of lower index
            node = heapq.heappop(ahead)[1]
            if node < self.first_leaf:
                pair = slice(2 * node + 1, 2 * node + 3)
                gap = np.maximum(
                    np.maximum(self.low[:, pair] - query, query - self.high[:, pair]), 0
                )
                for child, bound, earliest in zip(
                    (pair.start, pair.start + 1),
                    _distance(gap, scale),
                    self.earliest[pair],
                    strict=True,
                ):
                    if earliest < seen and bound <= reach:
                        heapq.heappush(ahead, (bound, child))
                continue
            start, stop = self.edges[node - self.first_leaf : node - self.first_leaf + 2]
            stop = start + np.searchsorted(self.ranks[start:stop], seen)
            square = _distance(query - self.columns[:, start:stop], scale)
            near = square <= reach
            distance = np.concatenate([distance, square[near]])
            index = np.concatenate([index, self.index[start:stop][near]])
            comparisons += int(stop - start)
            if near.any():
                order = np.lexsort((index, distance))[:k]
                distance, index = distance[order], index[order]
            if len(index) == k:
                reach = distance[-1]
        return distance, index, comparisons


def _distance(gap: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The contract's expression from differences (4, P) and one scale (4, 1)."""
    term = scale * (gap * gap)
    return term[0] + term[1] + term[2] + term[3]


def _halved(points: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the points, leaf after leaf, and where each of the 2^levels leaves begins and
    the last ends."""
    index = np.arange(len(points))
    for level in range(levels):
        halves = np.arange((2 << level) + 1) * len(points) >> (level + 1)
        for start, middle, stop in zip(halves[:-1:2], halves[1::2], halves[2::2], strict=True):
            part = points[index[start:stop]]
            axis = np.argmax(part.max(0) - part.min(0))
            index[start:stop] = index[start:stop][np.argpartition(part[:, axis], middle - start)]
    return index, np.arange((1 << levels) + 1) * len(points) >> levels


def _by_rank(index: np.ndarray, rank: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The points of each leaf in order of time, so that what a query sees of a leaf is its
    beginning."""
    leaf = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    return index[np.lexsort((rank[index], leaf))]


def _levels(leaves: np.ndarray, combined: np.ufunc) -> np.ndarray:
    """Values of all nodes (A, 2^(levels + 1) - 1) from those of the leaves (A, 2^levels)."""
    rows = [leaves]
    while rows[0].shape[1] > 1:
        rows.insert(0, combined(rows[0][:, ::2], rows[0][:, 1::2]))
    return np.concatenate(rows, 1)
