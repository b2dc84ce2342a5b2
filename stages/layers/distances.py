"""Exact squared distances, and the exact k nearest points of padded sets, in chunks (thesis section
1.4.2, linear search).

Differences are squared axis by axis, not expanded into |a|^2 + |b|^2 - 2ab: the expanded form loses
the small distances to rounding, and equal points must have distance 0. Memory is bounded by PAIRS
distances whatever the numbers of points.
Shapes: B batch, M queries, N points, D dimensions, K neighbours. Any unit; the caller scales the
axes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PAIRS = 1 << 22  # distances held at once: 16 MB of float32


class Neighbours(NamedTuple):
    """Nearest first, ties by lowest index; where fewer than K points are allowed: infinity and
    -1."""

    square_distance: Float[Tensor, "B M K"]
    index: Int[Tensor, "B M K"]  # type: ignore[assignment]  # it hides tuple.index


def square_distance(
    queries: Float[Tensor, "B M D"], points: Float[Tensor, "B N D"]
) -> Float[Tensor, "B M N"]:
    """Squared Euclidean distance of every query to every point, without cancellation."""
    total = queries.new_zeros(queries.shape[0], queries.shape[1], points.shape[1])
    for axis in range(queries.shape[2]):
        total += (queries[:, :, None, axis] - points[:, None, :, axis]).square_()
    return total


def chunks(queries: int, points: int) -> Iterator[slice]:
    """Cut the queries so that each part has at most PAIRS distances (and at least one query)."""
    size = max(1, PAIRS // max(1, points))
    return (slice(start, start + size) for start in range(0, queries, size))


def nearest(
    queries: Float[Tensor, "B M D"],
    points: Float[Tensor, "B N D"],
    k: int,
    mask: Bool[Tensor, "B N"] | None = None,
) -> Neighbours:
    """The k nearest points of every query among those where `mask` is True; computed in float32,
    k >= 1."""
    batch, count = queries.shape[0], points.shape[1]
    distances = queries.new_full((batch, queries.shape[1], k), torch.inf, dtype=torch.float32)
    indices = torch.full_like(distances, -1, dtype=torch.int64)
    if not count:
        return Neighbours(distances, indices)
    order, found = torch.arange(count, device=queries.device), min(k, count)
    for part in chunks(queries.shape[1], batch * count):
        square = square_distance(queries[:, part].float(), points.float())
        if mask is not None:
            square.masked_fill_(~mask[:, None, :], torch.inf)
        # A non-negative float's bits order like an integer, so bits and index make one key in which
        # no two are equal.
        keys = (square.view(torch.int32).long() << 32) + order
        index = keys.topk(found, largest=False).values & 0xFFFFFFFF
        best = square.gather(2, index)
        distances[:, part, :found] = best
        indices[:, part, :found] = index.masked_fill(torch.isinf(best), -1)
    return Neighbours(distances, indices)
