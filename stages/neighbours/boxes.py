"""Exact causal k nearest points in torch alone, CPU or CUDA: boxes of a balanced median split
(thesis section 1.3, corrected).

Points are cut by time into blocks, each block by medians of its widest axis into leaves; a leaf
keeps its points side by side. A query first looks at the few leaves nearest to it, whose k-th
distance is a radius; then, from the coarsest boxes down, at each leaf that may hold a point within
the radius. Most boxes are never met: a query late in a long data set costs about what it costs in a
short one. The bound of a box is the contract's own distance of the gaps max(low - q, q - high, 0)
of each axis, in the points' dtype. Rounding is monotone: a point in the box has no smaller gap, so
no smaller rounded gap, square, product or sum. The bound never exceeds the computed distance of a
point inside, and needs no slack. No box depends on a scale: one index serves every diagonal scale,
another for each query.
Shapes: N points, M queries, k neighbours, P pairs of a query and a box, F children of a box, L
points a leaf. Units: the caller's.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from stages.errors import InputError
from stages.neighbours.contract import AXES, Index, Neighbours, empty

BLOCK = 1 << 20  # points of one block of time, at most
ROOTS = 128  # boxes that every query is compared with, about
CHILDREN = 6  # a box has at most 2^6 children
SEEDS = 12  # leaves a query looks at first, beside those for
MORE = 3  # times the k points it asks for
POOR = 8  # a radius that reaches so many times the leaves looked at first is worth a better one
HELD = {"cpu": 1 << 22, "cuda": 1 << 24}  # bounds, or distances found, held at once
SLICE = {
    "cpu": 1 << 18,
    "cuda": 1 << 24,
}  # distances computed at once: on a CPU they stay in the cache


class _Level(NamedTuple):
    """Boxes, the children of one parent side by side; `first` is the rank in time of a box's
    earliest point."""

    low: Float[Tensor, "parents 4 F"]
    high: Float[Tensor, "parents 4 F"]
    first: Int[Tensor, "parents F"]


class _Queries(NamedTuple):
    """Queries ready to be compared; `least` are gaps that no point they see undercuts: 0, 0, 0
    and the time since the latest."""

    at: Float[Tensor, "M 4 1"]
    scale: Float[Tensor, "M 4 1"]
    least: Float[Tensor, "M 4 1"]
    allowed: Int[Tensor, " M"]

    def of(self, rows: Int[Tensor, " P"]) -> "_Queries":
        return _Queries(*(part.index_select(0, rows) for part in self))


class Boxes(Index):
    """`leaf`: points of the smallest boxes, at most; `units` (4,): differences that count alike
    where boxes are cut.

    Without units a block's own standard deviations are taken, so that it is cut the same way in a
    recording of any length. `comparisons` counts all points of the leaves that were read, those
    read first for a radius once more. Memory beside the contract's own: 21 bytes a float32 point; a
    search of any size holds HELD numbers of a kind at a time.
    """

    def __init__(
        self,
        points: Tensor,
        trajectory: Tensor | None = None,
        leaf: int = 32,
        units: Tensor | None = None,
    ):
        super().__init__(points, trajectory)
        if type(leaf) is not int or leaf < 1:
            raise InputError(
                "a leaf holds a whole number of points",
                where="leaf",
                found=repr(leaf),
                expected="1 or more",
            )
        points, count = points.detach(), len(points)
        if units is not None and (units.shape != (AXES,) or not (units > 0).all()):
            raise InputError(
                "units are not those of four axes",
                where="units",
                found=str(units.tolist()),
                expected="(4,), positive",
            )
        self.order = self.order.int()
        blocks = max(1, -(-count // BLOCK))
        size = -(-count // blocks)  # points a block
        depth = max(0, -(-size // leaf) - 1).bit_length()
        self.leaf = max(1, -(-size // (1 << depth)))
        self.leaves = points.new_empty(blocks << depth, AXES, self.leaf)
        self.ranks = self.order.new_empty(blocks << depth, self.leaf)
        self.levels: list[_Level] = []
        for block in range(blocks if count else 0):
            part = slice(block << depth, (block + 1) << depth)
            ranks = torch.arange(
                block * size,
                min((block + 1) * size, count),
                dtype=torch.int32,
                device=points.device,
            )
            self._split(points, ranks, units, self.leaves[part], self.ranks[part])
        if count:
            self._enclose(blocks, depth)

    def _split(
        self,
        points: Tensor,
        ranks: Tensor,
        units: Tensor | None,
        leaves: Tensor,
        leaf_ranks: Tensor,
    ) -> None:
        """Halve a block of points, each part along its widest axis, until the parts are leaves."""
        missing = leaf_ranks.numel() - len(
            ranks
        )  # filled with copies of a point that no query ever sees
        real = points.index_select(0, self.order.index_select(0, ranks))
        units = real.std(0, correction=0) if units is None else units.to(real)
        axes = torch.cat([real, real[-1:].expand(missing, -1)]).T.contiguous()[:, None]
        ranks = torch.cat([ranks, ranks.new_full((missing,), torch.iinfo(torch.int32).max)])[None]
        while axes.shape[2] > self.leaf:
            parts, half = axes.shape[1], axes.shape[2] // 2
            widest = ((axes.amax(2) - axes.amin(2)) / units[:, None]).nan_to_num_().argmax(0)
            values = axes[widest, torch.arange(parts, device=widest.device)]
            below = values.topk(half, 1, largest=False, sorted=False).indices
            above = (
                torch.ones_like(values, dtype=torch.bool)
                .scatter_(1, below, False)
                .nonzero()[:, 1]
                .view(parts, half)
            )
            halves = torch.cat([below, above], 1)
            ranks = ranks.gather(1, halves).view(2 * parts, half)
            axes = torch.stack([axis.gather(1, halves) for axis in axes]).view(
                AXES, 2 * parts, half
            )
        leaves.copy_(axes.transpose(0, 1))
        leaf_ranks.copy_(ranks)

    def _enclose(self, blocks: int, depth: int) -> None:
        """The boxes of all leaves and of some of the nodes above them, coarsest level first;
        those are the children of one parent."""
        low, high, first = self.leaves.amin(2), self.leaves.amax(2), self.ranks.amin(1)
        top = min(
            depth, max(0, (ROOTS // blocks).bit_length() - 1)
        )  # how often a block is halved for the coarsest boxes
        steps = -(-(depth - top) // CHILDREN)
        for step in range(steps, -1, -1):
            bits = (depth - top) * step // max(1, steps) - (depth - top) * (step - 1) // max(
                1, steps
            )
            children = 1 << bits if step else len(low)
            low = low.view(-1, children, AXES)
            high = high.view(-1, children, AXES)
            first = first.view(-1, children)
            self.levels.insert(
                0,
                _Level(low.transpose(1, 2).contiguous(), high.transpose(1, 2).contiguous(), first),
            )
            low, high, first = low.amin(1), high.amax(1), first.amin(1)

    @torch.no_grad()
    def _search(
        self,
        queries: Float[Tensor, "M 4"],
        k: int,
        scale: Float[Tensor, "M 4"],
        allowed: Int[Tensor, " M"],
    ) -> Neighbours:
        found = empty(len(queries), k, self.points)
        least = torch.zeros_like(queries)
        least[:, 3] = (queries[:, 3] - self.times[(allowed - 1).clamp_(min=0)]).clamp_(min=0)
        ready = _Queries(queries[:, :, None], scale[:, :, None], least[:, :, None], allowed)
        self._fill(found, ready, torch.arange(len(queries), device=queries.device), k, SEEDS)
        return found

    def _fill(
        self, found: Neighbours, queries: _Queries, rows: Int[Tensor, " m"], k: int, seeds: int
    ) -> None:
        """Find the neighbours of some queries, as many at once as memory lets; with more seeds
        again where the radius was poor."""
        held = HELD.get(rows.device.type, HELD["cpu"])
        look = min(len(self.leaves), seeds + MORE * k // self.leaf)  # leaves
        most = (
            POOR * look * self.leaf
        )  # points that a query reads, unless it is the only one, or all there are
        for part in rows.split(max(1, held // most)):
            some = queries.of(part)
            radius = self._radius(some, k, seeds, look, held)
            better = most <= held and look < len(self.leaves)
            if better:  # few points of the nearest leaves are allowed: reach for nothing yet
                radius.masked_fill_((radius == torch.inf) & (some.allowed >= k), -1)
            radius.clamp_(
                max=torch.finfo(radius.dtype).max
            )  # below the infinite bound of boxes that hold nothing allowed
            pairs = self._reach(some, radius, held)
            if pairs is None:
                for half in part.tensor_split(2):
                    self._fill(found, queries, half, k, seeds)
                continue
            row, leaf = pairs
            reached = row.bincount(minlength=len(part))
            again = better & ((radius < 0) | (reached > POOR * look))
            repeat = part[again]
            if len(repeat):
                kept = (~again).index_select(0, row).nonzero()[:, 0]
                row = row.index_select(0, kept)
                leaf = leaf.index_select(0, kept)
                reached = reached.masked_fill_(again, 0)
            distance, rank = self._nearest(some, row, leaf, radius, k, held)
            self._write(found, part, distance, rank)
            found.comparisons[part] += self.leaf * (reached + look)
            if len(repeat):
                self._fill(found, queries, repeat, k, 4 * seeds)

    def _radius(
        self, queries: _Queries, k: int, seeds: int, look: int, held: int
    ) -> Float[Tensor, " m"]:
        """A distance within which each query has k points it sees, by the `look` leaves that
        seem nearest; infinite if they hold fewer."""
        rows = len(queries.at)
        if not k <= look * self.leaf <= held:
            return queries.at.new_full((rows,), torch.inf)
        node = torch.zeros(rows, 1, dtype=torch.int64, device=queries.at.device)
        for level in self.levels:
            children, points = level.first.shape[1], self.ranks.numel() // level.first.numel()
            row = torch.arange(rows, device=node.device).repeat_interleave(node.shape[1])
            bound = _bits(_bounds(level, queries.of(row), node.view(-1)).view(rows, -1))
            best = bound.topk(
                min(bound.shape[1], seeds + MORE * k // points), 1, largest=False, sorted=False
            ).indices
            node = node.gather(1, best // children).mul_(children).add_(best % children)
        row = torch.arange(rows, device=node.device).repeat_interleave(node.shape[1])
        distance = self._distances(queries.of(row), node.view(-1))
        unseen = (
            self.ranks.index_select(0, node.view(-1))
            >= queries.allowed.index_select(0, row)[:, None]
        )
        distance = _bits(distance.masked_fill_(unseen, torch.inf)).view(rows, -1)
        return (
            distance.topk(k, 1, largest=False, sorted=False).values.amax(1).view(queries.at.dtype)
        )

    def _reach(
        self, queries: _Queries, radius: Float[Tensor, " m"], held: int
    ) -> tuple[Int[Tensor, " P"], Int[Tensor, " P"]] | None:
        """Query and leaf, by query, of all leaves that may hold a point within the radius; None
        if several queries meet too many boxes."""
        row = torch.arange(len(radius), device=radius.device)
        leaf = torch.zeros_like(row)
        for level in self.levels:
            children = level.first.shape[1]
            if len(radius) > 1 and len(row) * children > held:
                return None
            near = _bounds(level, queries.of(row), leaf) <= radius.index_select(0, row)[:, None]
            pair, child = near.nonzero().T.contiguous()
            row = row.index_select(0, pair)
            leaf = leaf.index_select(0, pair).mul_(children).add_(child)
        return row, leaf

    def _distances(self, queries: _Queries, leaf: Int[Tensor, " P"]) -> Float[Tensor, "P L"]:
        return _weigh(self.leaves.index_select(0, leaf).sub_(queries.at), queries.scale)

    def _nearest(
        self, queries: _Queries, row: Tensor, leaf: Tensor, radius: Tensor, k: int, held: int
    ) -> tuple[Tensor, Tensor]:
        """Distance and rank (m, <= k) of the nearest points that each query sees within its
        radius, in the pairs of a query and a leaf."""
        pairs = max(1, SLICE.get(row.device.type, SLICE["cpu"]) // self.leaf)
        lists, count = [(row[:0], radius[:0], row[:0].int())], 0
        for some, node in zip(row.split(pairs), leaf.split(pairs), strict=True):
            distance = self._distances(queries.of(some), node)
            pair, slot = (
                (distance <= radius.index_select(0, some)[:, None]).nonzero().T.contiguous()
            )
            rank = self.ranks.view(-1).index_select(
                0, node.index_select(0, pair).mul_(self.leaf).add_(slot)
            )
            some = some.index_select(0, pair)
            seen = (rank < queries.allowed.index_select(0, some)).nonzero()[:, 0]
            place = pair.mul_(self.leaf).add_(slot).index_select(0, seen)
            lists.append(
                (
                    some.index_select(0, seen),
                    distance.view(-1).index_select(0, place),
                    rank.index_select(0, seen),
                )
            )
            count += len(seen)
            if count > held + 2 * k:  # only a query on its own can have so many
                distance, rank = self._select(1, k, *map(torch.cat, zip(*lists, strict=True)))
                lists = [(torch.zeros_like(rank[0]).long(), distance[0], rank[0])]
                count = k
                radius = distance[:, -1]
        return self._select(len(radius), k, *map(torch.cat, zip(*lists, strict=True)))

    def _select(
        self, rows: int, k: int, row: Tensor, distance: Tensor, rank: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Distance and rank (rows, <= k) of the nearest of lists by query, by (distance, index);
        infinity where there are fewer."""
        count = row.bincount(minlength=rows)
        width = max(1, int(count.max()))
        start = torch.arange(0, rows * width, width, device=row.device) - (count.cumsum(0) - count)
        place = start.index_select(0, row).add_(torch.arange(len(row), device=row.device))
        near = _bits(
            distance.new_full((rows * width,), torch.inf).index_copy_(0, place, distance)
        ).view(rows, width)
        ranks = rank.new_zeros(rows * width).index_copy_(0, place, rank).view(rows, width)
        best, chosen = near.topk(min(k + 1, width), 1, largest=False)
        rank = ranks.gather(1, chosen[:, :k])
        tied = (
            ((best[:, 1:] == best[:, :-1]) & (best[:, 1:] < _bits(distance.new_tensor(torch.inf))))
            .any(1)
            .nonzero()[:, 0]
        )
        if len(tied):  # seldom, in data without copies
            near, ranks = near.index_select(0, tied), ranks.index_select(0, tied)
            by_index = self.order[ranks.long()].argsort(1)
            near, by_distance = near.gather(1, by_index).sort(dim=1, stable=True)
            rank[tied] = ranks.gather(1, by_index).gather(1, by_distance[:, :k])
        return best[:, :k].contiguous().view(distance.dtype), rank

    def _write(self, found: Neighbours, rows: Tensor, distance: Tensor, rank: Tensor) -> None:
        mask, width = distance < torch.inf, distance.shape[1]
        index = (
            self.order.index_select(0, rank.view(-1))
            .view(rank.shape)
            .long()
            .masked_fill_(~mask, -1)
        )
        for part, values in zip(found, (distance, index, mask), strict=False):
            part[:, :width].index_copy_(0, rows, values)


def _bits(distance: Tensor) -> Tensor:
    """Numbers of at least 0 (or all minus 0, as the weights) as integers that order alike:
    selecting from them is cheaper."""
    return distance.view(torch.int32 if distance.dtype == torch.float32 else torch.int64)


def _weigh(gaps: Float[Tensor, "P 4 F"], scale: Float[Tensor, "P 4 1"]) -> Float[Tensor, "P F"]:
    """The contract's distance, in its order of operations, of gaps, which it overwrites."""
    gaps.mul_(gaps).mul_(scale)
    return (gaps[:, 0] + gaps[:, 1]).add_(gaps[:, 2]).add_(gaps[:, 3])


def _bounds(level: _Level, queries: _Queries, parent: Int[Tensor, " P"]) -> Float[Tensor, "P F"]:
    """What no point that a query sees in a child of a parent is nearer than; infinite where it
    sees none."""
    gaps = level.low.index_select(0, parent).sub_(queries.at)
    over = level.high.index_select(0, parent).sub_(queries.at).neg_()
    torch.maximum(torch.maximum(gaps, over, out=gaps), queries.least, out=gaps)
    return _weigh(gaps, queries.scale).masked_fill_(
        level.first.index_select(0, parent) >= queries.allowed[:, None], torch.inf
    )
