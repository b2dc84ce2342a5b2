"""Trajectory Nearest Neighbours, exact (thesis 1.3.4-1.3.6, Algorithms 1 and 2, with the errata's
corrections), on any device torch knows.

Trajectories are cut into runs of K points (segments.py); a lower bound of its distance to every run
(bounds.py) tells each query which runs to read first and when to stop: F runs a round, until the
k-th distance is below the next run's bound. Runs whose first point a query does not see yet cost
nothing: they are the last ones, and queries are taken in order of what they see. Nothing is rebuilt
for another scale, k or window. Memory: 24 bytes a float32 point beside the contract's own, and HELD
numbers at a time for a search of any size.
Shapes: N points, S runs, K points a run, F runs a round, M queries (m at a time), k neighbours.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from stages.errors import InputError
from stages.neighbours import bounds, segments
from stages.neighbours.contract import AXES, Index, Neighbours, empty, square_distance
from stages.neighbours.linear import ordered, smallest

HELD = {
    "cpu": 1 << 18,
    "cuda": 1 << 24,
}  # bounds, or distances, held at once: what a core's cache holds, what fills a GPU
BOUNDS = {
    "segment": bounds.segment_bound,
    "box": bounds.box_bound,
    "both": lambda *query: torch.maximum(bounds.segment_bound(*query), bounds.box_bound(*query)),
}


class Trajectory(Index):
    """TNN. `segment`: K, points a run; `fetch`: F, runs a round; `bound`: of a run's line (the
    thesis' way), of its box, or the greater.

    `comparisons` counts the points of the runs that were read, those among them too that a query
    does not see.
    """

    def __init__(
        self,
        points: Tensor,
        trajectory: Tensor | None = None,
        segment: int = 100,
        fetch: int = 20,
        bound: str = "segment",
    ):
        super().__init__(points, trajectory)
        for name, value in (("segment", segment), ("fetch", fetch)):
            if type(value) is not int or value < 1:
                raise InputError(
                    "runs are cut, and fetched, by whole numbers",
                    where=name,
                    found=repr(value),
                    expected="1 or more",
                )
        if bound not in BOUNDS:
            raise InputError(
                "no bound is called so",
                where="bound",
                found=repr(bound),
                expected=", ".join(BOUNDS),
            )
        self.length, self.fetch, self.bound = segment, fetch, bound
        rank, self.segments = segments.cut(points.detach(), self.trajectory, self.order, segment)
        index = self.order[rank]
        # K zeros more, so that the last run's window is whole; a window is K neighbouring numbers,
        # read in one piece.
        self.columns = points.new_zeros(AXES, len(points) + segment)
        for axis, column in enumerate(self.columns):
            column[: len(points)] = points.detach()[:, axis][index]
        self.rank_of, self.index_of = (
            torch.nn.functional.pad(part.int(), (0, segment)) for part in (rank, index)
        )

    @torch.no_grad()
    def _search(
        self,
        queries: Float[Tensor, "M 4"],
        k: int,
        scale: Float[Tensor, "M 4"],
        allowed: Int[Tensor, " M"],
    ) -> Neighbours:
        found = empty(len(queries), k, self.points)
        for rows, seen in self._parts(allowed):
            part = self._nearest(
                queries[rows], k, scale[rows], allowed[rows], self.segments.first(seen)
            )
            (found.square_distance[rows], found.index[rows]), found.comparisons[rows] = (
                ordered(*part[:2]),
                part[2],
            )
        return found._replace(mask=found.index >= 0)

    def _parts(self, allowed: Int[Tensor, " M"]) -> Iterator[tuple[Tensor, int]]:
        """Queries that see about as much, and how many runs they see something of; as many as
        their bounds and points may be held."""
        allowed, order = allowed.sort()
        seen = torch.searchsorted(self.segments.first_rank, allowed).tolist()
        held, stop = HELD.get(allowed.device.type, HELD["cpu"]), len(order)
        while stop and seen[stop - 1]:
            start = max(0, stop - max(1, held // max(seen[stop - 1], self.fetch * self.length)))
            yield order[start:stop], seen[stop - 1]
            stop = start

    def _nearest(
        self,
        queries: Float[Tensor, "m 4"],
        k: int,
        scale: Float[Tensor, "m 4"],
        allowed: Int[Tensor, " m"],
        runs: segments.Segments,
    ) -> tuple[Float[Tensor, "m k"], Int[Tensor, "m k"], Int[Tensor, " m"]]:
        """Algorithm 2: distance and index of the k nearest in any order, and comparisons, of
        queries that see points of no other run."""
        latest = self.times[(allowed - 1).clamp(min=0)]
        bound = BOUNDS[self.bound](queries, scale, latest, runs).masked_fill_(
            runs.first_rank >= allowed[:, None], torch.inf
        )
        blank = empty(len(queries), k, self.points)
        answer = (blank.square_distance, blank.index, blank.comparisons)
        row = torch.arange(len(queries), device=queries.device)
        live: tuple[Any, ...] = (queries, scale, allowed, bound, row, *answer)
        while len(live[0]):
            queries, scale, allowed, bound, row, distance, index, comparisons = live
            near, run = bound.topk(min(self.fetch + 1, len(runs)), largest=False)
            near, run, following = (
                near[:, : self.fetch],
                run[:, : self.fetch],
                near[:, self.fetch :],
            )
            bound.scatter_(1, run, torch.inf)  # a run is read once:
            size = torch.where(
                near < torch.inf, runs.size[run], 0
            )  # what fills the round up has no points
            comparisons = comparisons + size.sum(1)
            read = self._read(queries, scale, allowed, runs.offset[run], size)
            distance, index = smallest(
                torch.cat([distance, read[0]], 1), torch.cat([index, read[1]], 1), k
            )
            # Continue where the next run may hold a nearer point, or one as far with a lower index.
            more = ((following <= distance.amax(1, keepdim=True)) & (following < torch.inf)).any(1)
            for whole, part in zip(answer, (distance, index, comparisons), strict=True):
                whole[row[~more]] = part[~more]
            kept = more.nonzero()[:, 0]
            live = tuple(
                part.index_select(0, kept)
                for part in (queries, scale, allowed, bound, row, distance, index, comparisons)
            )
        return answer

    def _read(
        self,
        queries: Float[Tensor, "m 4"],
        scale: Float[Tensor, "m 4"],
        allowed: Int[Tensor, " m"],
        offset: Int[Tensor, "m F"],
        size: Int[Tensor, "m F"],
    ) -> tuple[Float[Tensor, "m FK"], Int[Tensor, "m FK"]]:
        """Squared distance (infinity: of another run, or not seen) and index of every place of
        the runs' windows."""

        def windows(column: Tensor) -> Tensor:
            return (
                column.unfold(0, self.length, 1)
                .index_select(0, offset.flatten())
                .view(*offset.shape, self.length)
            )

        points = torch.stack([windows(column) for column in self.columns]).movedim(0, -1)
        square = square_distance(queries[:, None, None], points, scale[:, None, None])
        place = torch.arange(self.length, device=size.device)
        hidden = (place >= size[..., None]) | (windows(self.rank_of) >= allowed[:, None, None])
        return square.masked_fill_(hidden, torch.inf).flatten(1), windows(self.index_of).flatten(
            1
        ).long()
