"""What every search for causal nearest neighbours takes and gives (thesis sections 1.3.2-1.3.6), so
that all can be swapped.

Points x_i = (x, y, z, t); the distance of a query to a point is sum_a scale_a (q_a - p_a)^2
(equation 1.3; any scale per axis, another one for every query if wished). A query sees the points
measured at least `window` before it, t_i <= t - window: the first `allowed` of all points in order
of time. The mask compares ranks, not times, so it is exact in every dtype.
Rounding: a distance is ((s_x dx dx' + s_y dy dy') + s_z dz dz') + s_t dt dt' with dx dx' squared
first, every operation rounded once in the points' dtype, no fused multiply-add, in every method.
Neighbours are ordered by that number, ties by the lowest index: so "equal to brute force" means
equal bit for bit. Shapes: N points, M queries, k neighbours.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from stages.errors import InputError

AXES = 4  # x, y, z, t


class Neighbours(NamedTuple):
    """Nearest first. Where a query sees fewer than k points: distance infinity, index -1, mask
    False; no point stands there twice."""

    square_distance: Float[Tensor, "M k"]
    index: Int[Tensor, "M k"]  # type: ignore[assignment]  # it hides tuple.index
    mask: Bool[Tensor, "M k"]
    comparisons: Int[Tensor, " M"]  # points whose distance to the query was computed


def square_distance(
    queries: Float[Tensor, "... 4"], points: Float[Tensor, "... 4"], scale: Float[Tensor, "... 4"]
) -> Tensor:
    """The scaled squared distance of broadcast queries and points, rounded as the contract says."""
    total: Any = None
    for axis in range(AXES):
        gap = queries[..., axis] - points[..., axis]
        term = scale[..., axis] * (gap * gap)
        total = term if total is None else total + term
    return total


def empty(queries: int, k: int, like: Tensor) -> Neighbours:
    """An answer without neighbours, to be filled."""
    index = torch.full((queries, k), -1, dtype=torch.int64, device=like.device)
    return Neighbours(
        like.new_full((queries, k), torch.inf), index, index >= 0, index.new_zeros(queries)
    )


class Index(ABC):
    """Points made ready once, to be searched with any scale: (N, 4) float32 or float64;
    `trajectory` (N,) int64 says whose they are.

    `order` int64 (an index may narrow it): rank in time -> index, ties in time by index; `times` in
    the points' dtype, in that order; `rank` int64, index -> rank, made when it is first asked for;
    `extent` (2, 4), the lowest and the highest value of each axis.
    """

    def __init__(self, points: Tensor, trajectory: Tensor | None = None):
        _refuse_points(points, trajectory)
        self.points = points
        self.extent = _extent(points)
        one = torch.zeros((), dtype=torch.int64, device=points.device)
        self.trajectory = one.expand(len(points)) if trajectory is None else trajectory
        self.order = torch.argsort(points[:, 3], stable=True)
        self.times = points[:, 3][self.order]

    @cached_property
    def rank(self) -> Int[Tensor, " N"]:
        """Index -> rank in time."""
        rank = torch.empty_like(self.order)
        rank[self.order.long()] = torch.arange(len(rank), dtype=rank.dtype, device=rank.device)
        return rank

    @torch.no_grad()
    def query(
        self,
        queries: Tensor,
        k: int,
        window: float | Tensor | None = 0.0,
        scale: float | Tensor = 1.0,
        allowed: Tensor | None = None,
    ) -> Neighbours:
        """The k nearest points of each query among those that it sees.

        queries (M, 4) in the points' dtype; window in the unit of t, one number or (M,), None:
        every point is seen; scale a number, (4,) or (M, 4), not negative; allowed (M,) int64,
        instead of window: how many of the points, in order of time, a query sees. InputError for
        what does not fit.
        """
        queries, scale = _checked(queries, k, scale, self.points, self.extent)
        if allowed is None:
            allowed = self._allowed(queries, window)
        elif allowed.shape != queries.shape[:1] or allowed.dtype != torch.int64:
            raise InputError(
                "`allowed` does not fit the queries",
                found=f"{tuple(allowed.shape)} {allowed.dtype}",
                expected=f"({len(queries)},) int64",
            )
        allowed = allowed.clamp(0, len(self.points))
        if not len(queries) or not len(self.points):
            return empty(len(queries), k, self.points)
        return self._search(queries, k, scale, allowed)

    @abstractmethod
    def _search(
        self,
        queries: Float[Tensor, "M 4"],
        k: int,
        scale: Float[Tensor, "M 4"],
        allowed: Int[Tensor, " M"],
    ) -> Neighbours:
        """The search itself; everything is checked, M and N are at least 1, some queries may see
        nothing."""

    def _allowed(self, queries: Tensor, window: float | Tensor | None) -> Tensor:
        if window is None:
            return torch.full(
                (len(queries),), len(self.points), dtype=torch.int64, device=queries.device
            )
        window = torch.as_tensor(window, dtype=torch.float64, device=queries.device)
        if (
            window.shape not in ((), queries.shape[:1])
            or not (torch.isfinite(window) & (window >= 0)).all()
        ):
            raise InputError(
                "the window is not one",
                found=f"{tuple(window.shape)}",
                expected="a finite number >= 0, or one a query",
            )
        latest = queries[:, 3].double() - window
        nearest = latest.to(
            self.times.dtype
        )  # and if that is above `latest`, the next one below: no time lies between
        latest = torch.where(
            nearest.double() > latest, nearest.nextafter(nearest.new_tensor(-torch.inf)), nearest
        )
        # torch's wakes its threads for some hundred queries, which then spin in the way of the
        # search's own
        if latest.device.type == "cpu":
            return torch.from_numpy(
                np.searchsorted(self.times.numpy(), latest.numpy(), side="right")
            )
        return torch.searchsorted(self.times, latest, right=True)


def _refuse_points(points: Tensor, trajectory: Tensor | None) -> None:
    if (
        points.ndim != 2
        or points.shape[1] != AXES
        or points.dtype not in (torch.float32, torch.float64)
    ):
        raise InputError(
            "points to index are not (N, 4) numbers",
            found=f"{tuple(points.shape)} {points.dtype}",
            expected="(N, 4), columns x, y, z, t, float32 or float64",
        )
    if len(points) > torch.iinfo(torch.int32).max:
        raise InputError(
            "too many points for one index",
            found=f"{len(points)}",
            expected="fewer than 2^31",
            remedy="index stretches of time apart",
        )
    if trajectory is not None and (
        trajectory.shape != points.shape[:1] or trajectory.dtype != torch.int64
    ):
        raise InputError(
            "trajectory ids do not fit the points",
            found=f"{tuple(trajectory.shape)} {trajectory.dtype}",
            expected=f"({len(points)},) int64",
        )


def _extent(points: Float[Tensor, "N 4"]) -> Float[Tensor, "2 4"]:
    """The lowest and the highest value of each axis, zero without points; InputError where one
    is not finite."""
    if not len(points):
        return points.new_zeros(2, AXES)
    extent = torch.stack(
        points.detach().aminmax(dim=0)
    )  # not a number if any is none: nothing else has to be made of all points
    if not torch.isfinite(extent).all():
        raise InputError(
            "points to index are not all finite",
            found=f"{int((~torch.isfinite(points)).any(1).sum())} rows of {len(points)}",
            remedy="drop them before building the index",
        )
    return extent


def _checked(
    queries: Tensor, k: int, scale: float | Tensor, points: Tensor, extent: Tensor
) -> tuple[Tensor, Tensor]:
    """Queries and the scale of each (M, 4), in the points' dtype; InputError."""
    if (
        queries.ndim != 2
        or queries.shape[1] != AXES
        or queries.dtype != points.dtype
        or queries.device != points.device
    ):
        raise InputError(
            "queries do not fit the points",
            found=f"{tuple(queries.shape)} {queries.dtype} on {queries.device}",
            expected=f"(M, 4) {points.dtype} on {points.device}",
        )
    if not torch.isfinite(queries).all():
        raise InputError(
            "queries are not all finite",
            found=f"{int((~torch.isfinite(queries)).any(1).sum())} rows of {len(queries)}",
        )
    if type(k) is not int or k < 1:
        raise InputError(
            "k is not a number of neighbours",
            found=repr(k),
            expected="a whole number of at least 1",
        )
    scale = torch.as_tensor(scale, dtype=points.dtype, device=points.device)
    if scale.shape not in ((), (AXES,), queries.shape):
        raise InputError(
            "the scale does not fit the queries",
            found=f"{tuple(scale.shape)}",
            expected=f"a number, (4,) or ({len(queries)}, 4)",
        )
    if not (torch.isfinite(scale) & (scale >= 0)).all():
        raise InputError(
            "a scale is negative or not finite",
            expected="weights of squared differences, at least 0",
        )
    scale = scale.expand(queries.shape)
    if len(points) and len(queries):
        widest = (queries[:, None] - extent).abs().amax(1)
        if not torch.isfinite(square_distance(widest, torch.zeros_like(widest), scale)).all():
            raise InputError(
                "squared distances would overflow",
                remedy="choose smaller units, or float64",
                found=f"differences up to {float(widest.max()):.3g}, scales up to "
                f"{float(scale.max()):.3g}",
            )
    return queries, scale
