"""Trajectories cut into runs of K points, each described by a line from its first to its last point
and by a box (thesis 1.3.4-1.3.5).

The points are laid out trajectory by trajectory, each in order of time (stable), so that a run is a
window of that layout: every window is K points wide, as the thesis' padded sets are, yet nothing is
stored twice; what lies in a window beyond its run is not of the run and is masked by `size`. Runs
are sorted by their earliest point's rank in time: the runs that hold a point a query may see are
the first so many.
Shapes: N points, S runs, K points a run (the last run of a trajectory may have fewer). Any units,
the same for points and queries.
"""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

from stages.neighbours.contract import AXES

SPACE = AXES - 1
SLAB = 1 << 18  # points described at once


@dataclass(frozen=True)
class Segments:
    """What the bounds know of each run. Times are the fourth axis; low[3] = t_A and high[3] =
    t_B."""

    offset: Int[Tensor, " S"]  # of its first point in the layout
    size: Int[Tensor, " S"]  # 1 to K points
    first_rank: Int[
        Tensor, " S"
    ]  # of its earliest point among all points in order of time; ascending
    start: Float[Tensor, "4 S"]  # A, the first point
    end: Float[Tensor, "4 S"]  # B, the last point
    low: Float[Tensor, "4 S"]  # the box of its points, exactly
    high: Float[Tensor, "4 S"]
    deviation: Float[
        Tensor, "3 S"
    ]  # per axis, float64: no point lies further from its own place on AB
    furthest: Float[
        Tensor, " S"
    ]  # float64: the largest Euclidean distance of a point to AB (the root of E in equation 1.9)

    def __len__(self) -> int:
        return len(self.size)

    def first(self, count: int) -> "Segments":
        """The first `count` runs, as views."""
        return Segments(
            **{field.name: getattr(self, field.name)[..., :count] for field in fields(self)}
        )


def cut(
    points: Float[Tensor, "N 4"],
    trajectory: Int[Tensor, " N"],
    order: Int[Tensor, " N"],
    length: int,
) -> tuple[Int[Tensor, " N"], Segments]:
    """The layout, as ranks in time, and its runs of at most `length` points; `order` is the
    contract's, rank in time -> index."""
    layout = torch.argsort(trajectory[order], stable=True)
    count = trajectory[order[layout]].unique_consecutive(return_counts=True)[
        1
    ]  # points of each trajectory, and its runs
    runs = (count + length - 1) // length
    nth = torch.arange(int(runs.sum()), device=runs.device) - (
        runs.cumsum(0) - runs
    ).repeat_interleave(runs)
    offset = (count.cumsum(0) - count).repeat_interleave(runs) + nth * length
    first_rank, sorting = layout[offset].sort()
    size = torch.diff(offset, append=offset.new_tensor([len(layout)]))
    slabs = size.split(max(1, SLAB // length))
    rows = order[layout].split([int(slab.sum()) for slab in slabs])
    described = zip(
        *(_describe(points[part], slab) for part, slab in zip(rows, slabs, strict=True)),
        strict=True,
    )
    return layout, Segments(
        offset[sorting],
        size[sorting],
        first_rank,
        *(torch.cat(parts, -1)[..., sorting] for parts in described),
    )


def _describe(points: Float[Tensor, "n 4"], size: Int[Tensor, " s"]) -> tuple[Tensor, ...]:
    """start, end, low, high, deviation, furthest of neighbouring runs.

    A point's place on AB is A + delta AB with the delta of equation 1.7, clamped. Any delta in [0,
    1] gives a true place, so its own rounding does no harm; a run whose A is B has delta 0. A
    deviation is off by less than 4u (|AB| + itself), which the bound allows for.
    """
    run = torch.repeat_interleave(size)  # of every point
    columns, closes = points.T.contiguous(), size.cumsum(0) - 1
    start, end = columns[:, closes - size + 1], columns[:, closes]
    low, high = (_reduced(columns, run, len(size), how) for how in ("amin", "amax"))
    line = (end[:SPACE].double() - start[:SPACE].double())[:, run]
    gap = columns[:SPACE].double() - start[:SPACE].double()[:, run]
    delta = torch.nan_to_num((gap * line).sum(0) / line.square().sum(0), nan=0.0).clamp(0, 1)
    gap = (gap - delta * line).abs()
    deviation = _reduced(gap, run, len(size), "amax")
    furthest = _reduced(gap.square().sum(0, keepdim=True), run, len(size), "amax")[0].sqrt()
    return start, end, low, high, deviation, furthest


def _reduced(
    columns: Float[Tensor, "D n"], run: Int[Tensor, " n"], runs: int, how: str
) -> Float[Tensor, "D s"]:
    """The least or the largest value of each run."""
    return columns.new_empty(len(columns), runs).scatter_reduce_(
        1, run.expand(len(columns), -1), columns, how, include_self=False
    )
