"""Lower bounds of a query's squared distance to the points of a run: what lets a search leave most
runs unread (thesis 1.3.5, Algorithm 1).

The printed bound subtracts squares, and projects with Euclid's dot product under a metric that is
not Euclid's: it can exceed the distance it should stay below, and the search then loses neighbours.
What stands in its place is proven at `segment_bound` and `box_bound`. Both hold for every diagonal
scale, another one for every query, with nothing of the run rebuilt.
Rounding: a bound must not exceed the distance as the contract computes it, in the points' dtype.
`box_bound` never does, by monotonicity; `segment_bound` is computed in float64 and lowered by more
than both roundings (u = 2^-53, v = half the dtype's eps).
Shapes: M queries, S runs; results (M, S). Units: the squared unit of the scaled axes.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from stages.neighbours.contract import square_distance
from stages.neighbours.segments import SPACE, Segments

WIDE = torch.float64
ROOTS = 64 * torch.finfo(WIDE).eps  # of the lengths that make a root: above their rounding
TINY = torch.finfo(WIDE).tiny


class Counterexample(NamedTuple):
    """Two runs in the plane z = t = 0, a query and a scale (x, y, z, t), small enough to check
    by hand."""

    run: tuple[tuple[float, ...], ...]
    rival: tuple[float, ...]  # a run of one point
    query: tuple[float, ...]
    scale: tuple[float, ...]


# A run from (0, 0) to (4, 0) bends by way of (2, 1), which is the query's nearest point: (2, 3) is
# at squared distance 4 from it. From AB the query is 3 away, and the run deviates by 1: the printed
# bound is 3^2 - 1^2 = 8 > 4, the difference of roots (3 - 1)^2 = 4. So a search by the printed
# bound reads the rival at (2, 5.5) first, finds it at 6.25 < 8, and stops with the wrong neighbour.
COUNTEREXAMPLE = Counterexample(
    run=((0.0, 0.0, 0.0, 0.0), (2.0, 1.0, 0.0, 0.0), (4.0, 0.0, 0.0, 0.0)),
    rival=(2.0, 5.5, 0.0, 0.0),
    query=(2.0, 3.0, 0.0, 0.0),
    scale=(1.0, 1.0, 1.0, 1.0),
)


def printed_bound(
    queries: Float[Tensor, "M 4"], scale: Float[Tensor, "M 4"], segments: Segments
) -> Float[Tensor, "M S"]:
    """Algorithm 1 with the projection of equation 1.7 and the gap in time of equation 1.11: max(0,
    D - sigma_max E), float64.

    D is the squared scaled distance to the Euclidean projection on AB, E the largest squared
    Euclidean distance of a point to AB. NOT a lower bound (errata, algorithm 1 and eq. 1.7): it is
    here to be shown and counted, no search uses it.
    """
    queries, scale = queries.to(WIDE), scale.to(WIDE)
    gaps, _ = _gaps(queries, torch.ones_like(scale), segments)
    since = (queries[:, SPACE, None] - segments.high[SPACE]).clamp(min=0)
    square = _weighted(scale, [gap.square_() for gap in (*gaps, since)])
    return (square - scale[:, :SPACE].amax(1, keepdim=True) * segments.furthest.square()).clamp(
        min=0
    )


def segment_bound(
    queries: Float[Tensor, "M 4"],
    scale: Float[Tensor, "M 4"],
    latest: Float[Tensor, " M"],
    segments: Segments,
) -> Float[Tensor, "M S"]:
    """max(0, d(P, AB) - sqrt(sum_a scale_a e_a^2))^2 + scale_t gap_t^2, rounded down to the points'
    dtype.

    d(P, AB) is the distance from the query's place P to AB under the scale, the projection taken
    under it too; e_a the run's largest deviation on axis a; gap_t how far the query's time is from
    [t_A, min(t_B, latest)], `latest` being the last time that it may see. Why it holds. Let p be a
    point of the run and s its own fixed place on AB: |p_a - s_a| <= e_a on every axis, so under any
    diagonal scale d(p, s)^2 = sum_a scale_a (p_a - s_a)^2 <= sum_a scale_a e_a^2. s lies on AB, so
    d(P, AB) <= d(P, s) <= d(P, p) + d(p, s) by the triangle inequality, which is one of roots.
    Hence d(P, p) >= d(P, AB) - sqrt(sum_a scale_a e_a^2); the part of time adds to the square.
    Rounding. A place on AB that is off by 16u |AP| makes d(P, AB) too long by no more (the triangle
    inequality again); gaps are off by 4u (|AP| + |AB|), e by 4u (|AB| + e), roots by 4u of
    themselves, and |AP| <= d + |AB|: ROOTS = 128u is above the sum. What underflows in a root is
    below sqrt(TINY (1 + sum scale)) a term. The contract's distance is at least (1 - v)^7 times the
    true one, less what underflows, and the bound's own dtype costs one v: 16v is taken off. Where
    |AB|^2 overflows so does the slack: the bound is 0.
    """
    given, kind = queries.dtype, torch.finfo(queries.dtype)
    queries, scale, latest = queries.to(WIDE), scale.to(WIDE), latest.to(WIDE)
    gaps, length = _gaps(queries, scale, segments)
    total = scale.sum(1, keepdim=True)
    slack = length.sqrt_().mul_(2 * ROOTS).add_(16 * (TINY * (1 + total)).sqrt())
    spread = (scale[:, :SPACE] @ segments.deviation.square()).sqrt_().mul_(1 + ROOTS)
    root = (
        _weighted(scale, [gap.square_() for gap in gaps])
        .sqrt_()
        .mul_(1 - ROOTS)
        .sub_(spread)
        .sub_(slack)
        .clamp_(min=0)
    )
    time, high = queries[:, SPACE, None], torch.minimum(segments.high[SPACE], latest[:, None])
    since = torch.maximum(segments.low[SPACE] - time, time - high).clamp_(min=0)
    bound = torch.addcmul(root.square_(), scale[:, SPACE, None], since.square_())
    bound.mul_(1 - 8 * kind.eps).sub_(kind.tiny * (8 + total)).clamp_(min=0)
    return bound.nan_to_num_(nan=0.0, posinf=0.0).to(given)


def box_bound(
    queries: Float[Tensor, "M 4"],
    scale: Float[Tensor, "M 4"],
    latest: Float[Tensor, " M"],
    segments: Segments,
) -> Float[Tensor, "M S"]:
    """The contract's distance to the nearest place of the box that holds the points, its times cut
    off at `latest`; the points' dtype.

    On every axis no point is nearer than the box, and each operation of the contract's expression
    is monotone in the size of the gap, rounding included: so the number computed here never exceeds
    the number computed for a point, and needs no slack.
    """
    places = []
    for axis, (low, high) in enumerate(zip(segments.low, segments.high, strict=True)):
        high = high if axis < SPACE else torch.minimum(high, latest[:, None])
        places.append(torch.minimum(torch.maximum(queries[:, axis, None], low), high))
    return square_distance(queries[:, None], torch.stack(places).movedim(0, -1), scale[:, None])


def _gaps(
    queries: Float[Tensor, "M 4"], scale: Float[Tensor, "M 4"], segments: Segments
) -> tuple[list[Tensor], Tensor]:
    """Per axis of space, from the nearest place on AB under the scale to the query, (M, S), and
    |AB|^2 under the scale, (M, S)."""
    start = segments.start[:SPACE].to(WIDE)
    line = segments.end[:SPACE].to(WIDE) - segments.start[:SPACE].to(WIDE)
    gaps = [queries[:, axis, None] - start[axis] for axis in range(SPACE)]
    along = _weighted(scale, [gap * line[axis] for axis, gap in enumerate(gaps)])
    length = scale[:, :SPACE] @ line.square()
    place = along.div_(length.clamp(min=TINY)).clamp_(0, 1)  # a run whose A is B: 0
    return [gap.addcmul_(place, line[axis], value=-1) for axis, gap in enumerate(gaps)], length


def _weighted(scale: Float[Tensor, "M 4"], terms: list[Tensor]) -> Float[Tensor, "M S"]:
    """sum_a scale_a term_a over the first axes."""
    total = torch.zeros_like(terms[0])
    for axis, term in enumerate(terms):
        total.addcmul_(scale[:, axis, None], term)
    return total
