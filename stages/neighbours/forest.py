"""SciPy's compiled k-d tree behind the contract: a forest over blocks of consecutive time (thesis
section 1.4.3, `scaled masked cKDTree`).

A query looks backwards from the block that its cut-off crosses, at two, two, four, eight, ...
blocks at a time, for the points within its k-th distance so far; blocks whose box is farther are
left out, and so are unseen points of the crossed block. SciPy knows one metric a tree, so trees
hold coordinates times sqrt(scale) and are built when a scale is first met; those of the last KEPT
scales stay. The weakness: with a scale of its own for every query, there is a forest for every
query. SciPy's float64 distances are rounded otherwise than the contract's, so they choose
candidates only, with a margin that covers both roundings (`_Trees.radius`); the contract's own
distance then decides. `comparisons` counts these candidates: SciPy does not tell its own.
Shapes: N points, M queries, k neighbours, B blocks. Runs on the CPU.
"""

from collections import OrderedDict
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.spatial import cKDTree
from torch import Tensor

from stages.errors import InputError
from stages.neighbours import contract

KEPT = 4  # scales whose trees are kept
ROWS = 512  # queries searched together
PAIRS = 1 << 22  # candidates held at once
SLACK = 2.0**-18  # relative; seven roundings of float32 make 2^-21, SciPy's of float64 far less


class Forest(contract.Index):
    """`blocks` k-d trees over equal shares of time: more of them see fewer points too many,
    fewer of them are faster to ask."""

    def __init__(self, points: Tensor, trajectory: Tensor | None = None, blocks: int = 64):
        super().__init__(points, trajectory)
        if type(blocks) is not int or blocks < 1:
            raise InputError(
                "a forest needs blocks", found=repr(blocks), expected="a whole number of at least 1"
            )
        self.table, self.index = (
            points.detach()[self.order].numpy(force=True),
            self.order.numpy(force=True),
        )
        blocks = max(1, min(blocks, len(points)))
        self.edges = np.arange(blocks + 1) * len(points) // blocks
        if len(points):
            self.low, self.high = (
                part.reduceat(self.table, self.edges[:-1], 0) for part in (np.minimum, np.maximum)
            )
        self.trees: OrderedDict[bytes, _Trees] = OrderedDict()

    def _search(
        self,
        queries: Float[Tensor, "M 4"],
        k: int,
        scale: Float[Tensor, "M 4"],
        allowed: Int[Tensor, " M"],
    ) -> contract.Neighbours:
        found = contract.empty(len(queries), k, self.points)
        scales, which = np.unique(scale.numpy(force=True), axis=0, return_inverse=True)
        for number, weight in enumerate(scales):
            same = torch.from_numpy(np.flatnonzero(which.ravel() == number)).to(allowed.device)
            same = same[allowed[same] > 0]
            for rows in same.split(ROWS) if len(same) else ():
                search = _Search(
                    self,
                    queries[rows].numpy(force=True),
                    k,
                    weight,
                    allowed[rows].numpy(force=True),
                )
                for row, (distance, index) in zip(rows.tolist(), search.run(), strict=True):
                    found.square_distance[row, : len(index)] = torch.from_numpy(distance)
                    found.index[row, : len(index)] = torch.from_numpy(index)
                found.comparisons[rows] = torch.from_numpy(search.comparisons).to(rows.device)
        return found._replace(mask=found.index >= 0)

    def trees_of(self, scale: np.ndarray) -> "_Trees":
        """The forest for one scale (4,), new or kept."""
        key = scale.tobytes()
        if key not in self.trees:
            self.trees[key] = _Trees(self.table, self.edges, self.extent.numpy(force=True), scale)
        self.trees.move_to_end(key)
        while len(self.trees) > KEPT:
            self.trees.popitem(last=False)
        return self.trees[key]


class _Trees:
    """The trees of one scale, each built when it is first asked for."""

    def __init__(self, table: np.ndarray, edges: np.ndarray, extent: np.ndarray, scale: np.ndarray):
        self.table, self.edges = table, edges
        self.tiny = (
            64 * float(np.finfo(table.dtype).smallest_subnormal) * (1 + float(scale.max()))
        )  # what squares lose that vanish
        self.root = np.sqrt(scale.astype(np.float64))
        self.extent = extent.astype(np.float64)
        self.centre = (
            self.extent[0] / 2 + self.extent[1] / 2
        )  # about it, coordinates are no larger than differences of the set
        self.trees: dict[int, cKDTree] = {}

    def scaled(self, points: np.ndarray) -> np.ndarray:
        """Coordinates (P, 4) whose plain distances are scaled ones, float64."""
        return (points.astype(np.float64) - self.centre) * self.root

    def error(self, queries: np.ndarray) -> np.ndarray:
        """What rounding of scaled coordinates (M, 4) can add to a distance: seven roundings,
        doubled."""
        size = np.maximum(np.abs(self.scaled(queries)), np.abs(self.scaled(self.extent)).max(0))
        return 16 * np.finfo(np.float64).eps * np.sqrt((size * size).sum(1))

    def radius(self, reach: np.ndarray, error: np.ndarray) -> np.ndarray:
        """SciPy's distance of every point whose contract's distance, squared, is at most `reach`
        (M,) is at most this."""
        return np.sqrt((reach + self.tiny) * (1 + SLACK)) * (1 + SLACK) + error

    def reach(self, radius: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The contract's squared distance of every point that SciPy puts within `radius` (M,) is
        at most this."""
        return np.square((radius + error) * (1 + SLACK)) * (1 + SLACK) + self.tiny

    def __getitem__(self, block: int) -> cKDTree:
        if block not in self.trees:
            part = self.scaled(self.table[self.edges[block] : self.edges[block + 1]])
            self.trees[block] = cKDTree(part, balanced_tree=False, compact_nodes=False)
        return self.trees[block]


class _Search:
    """One search for M queries of one scale; every query sees at least one point."""

    def __init__(
        self, forest: Forest, queries: np.ndarray, k: int, scale: np.ndarray, allowed: np.ndarray
    ):
        self.forest, self.queries, self.k, self.scale, self.allowed = (
            forest,
            queries,
            k,
            scale,
            allowed,
        )
        self.trees = forest.trees_of(scale)
        self.scaled, self.error = self.trees.scaled(queries), self.trees.error(queries)
        self.last = (
            np.searchsorted(forest.edges, allowed - 1, side="right") - 1
        )  # the block that the cut-off crosses
        self.reach = np.full(len(queries), np.inf)  # no less than the k-th distance
        self.best = [(forest.table[:0, 0], forest.index[:0])] * len(queries)
        self.comparisons = np.zeros(len(queries), np.int64)

    def run(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Distance and index of each query's neighbours, in order."""
        self._start()
        gap = np.maximum(
            np.maximum(
                self.forest.low - self.queries[:, None], self.queries[:, None] - self.forest.high
            ),
            0,
        )
        bound = _distance(
            gap, self.scale
        )  # (M, B), rounded like the distances, so no larger than any in the box
        first = 0
        while first <= self.last.max():
            after, found, held = max(2, 2 * first), [], 0
            for block in range(
                max(0, int(self.last.min()) - after + 1), int(self.last.max()) - first + 1
            ):
                back = self.last - block
                rows = np.flatnonzero(
                    (back >= first) & (back < after) & (bound[:, block] <= self.reach)
                )
                step = max(1, PAIRS // (self.forest.edges[block + 1] - self.forest.edges[block]))
                for part in (rows[start : start + step] for start in range(0, len(rows), step)):
                    found.append(self._within(block, part))
                    held += len(found[-1][0])
                    if held > PAIRS:
                        self._merge(found)
                        found, held = [], 0
            self._merge(found)
            first = after
        return [_ordered(*best, self.k) for best in self.best]

    def _start(self) -> None:
        """A first reach: the k-th distance in the block before the one that is crossed."""
        for block in (np.unique(self.last[self.last > 0]) - 1).tolist():
            rows = np.flatnonzero(self.last == block + 1)
            radius = self.trees[block].query(self.scaled[rows], k=[self.k])[0][:, 0]
            self.reach[rows] = self.trees.reach(radius, self.error[rows])

    def _within(self, block: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row, distance and index of the seen points of a block that may be among the k nearest."""
        radius = self.trees.radius(self.reach[rows], self.error[rows])
        near = self.trees[block].query_ball_point(self.scaled[rows], radius, return_sorted=False)
        row = np.repeat(rows, np.fromiter(map(len, near), np.int64, len(rows)))
        rank = np.fromiter(chain.from_iterable(near), np.int64, len(row)) + self.forest.edges[block]
        row, rank = (part[rank < self.allowed[row]] for part in (row, rank))
        self.comparisons += np.bincount(row, minlength=len(self.queries))
        distance = _distance(self.queries[row] - self.forest.table[rank], self.scale)
        close = distance <= self.reach[row]
        return row[close], distance[close], self.forest.index[rank[close]]

    def _merge(self, found: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
        """Keep of each query's points the k nearest, with some that tie at the last place."""
        if not found:
            return
        row, distance, index = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(row, kind="stable")
        edges = np.searchsorted(row[order], np.arange(len(self.best) + 1))
        distance, index = distance[order], index[order]
        for number in np.unique(row):
            part = slice(edges[number], edges[number + 1])
            near, which = (
                np.concatenate(pair)
                for pair in zip(self.best[number], (distance[part], index[part]), strict=True)
            )
            if len(near) >= self.k:
                edge = np.partition(near, self.k - 1)[self.k - 1]
                near, which = near[near <= edge], which[near <= edge]
                self.reach[number] = edge
            self.best[number] = (
                (near, which) if len(near) < 2 * self.k else _ordered(near, which, self.k)
            )


def _ordered(distance: np.ndarray, index: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((index, distance))[:k]
    return distance[order], index[order]


def _distance(gap: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The contract's expression from differences (..., 4) and one scale (4,)."""
    term = scale * (gap * gap)
    return term[..., 0] + term[..., 1] + term[..., 2] + term[..., 3]
