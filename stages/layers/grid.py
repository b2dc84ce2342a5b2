"""A regular grid beside the points of a batch, and where a point lies on it (document G, sections
3.3 and 3.4).

Everything is index arithmetic: a place is counted in cells along every axis, so the nearest cell is
a rounding and the K nearest along an axis are K in a row. On a sphere (latitude, longitude in
degrees) the nearest cell by great circle is found exactly: it lies in the column of the nearest
meridian, for of two meridians the nearer one is nearer at every latitude; and along that meridian
cos(angle) = R cos(phi' - phi*), phi* = atan2(sin phi, cos phi cos dlambda), so its row is the one
nearest to phi*, not to phi. (G, section 3.3.2, takes phi, each axis for itself: near the poles that
is another cell.) Nothing of cells x points is ever made. Shapes: B sets, N points, X axes, G_a
cells along axis a, * all cells, M their product, F values a cell, K neighbours.
"""

import itertools
import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from stages import batches
from stages.batches import Batch
from stages.errors import InputError

INDICES = ("row_major", "as_published")
TURN = 360.0  # degrees
EVEN = 1e-3  # of a step: an axis is regular within it


@dataclass(frozen=True)
class Grid:
    """Values on a regular grid that all sets share; `mask` is True where a value is known. Axes
    ascend. `sphere`: they are latitude and longitude in degrees, the longitudes all around."""

    axes: tuple[Tensor, ...]  # G_a each
    values: Tensor  # B *cells F
    mask: Tensor  # B *cells
    sphere: bool = False

    def __post_init__(self) -> None:
        shape = tuple(len(axis) for axis in self.axes)
        for name, found in (("values", self.values.shape[1:-1]), ("mask", self.mask.shape[1:])):
            if tuple(found) != shape:
                raise InputError(
                    f"the {name} of a grid do not lie on its axes",
                    where="grid",
                    expected=str(shape),
                    found=str(tuple(found)),
                )
        for place, axis in enumerate(self.axes):
            gaps = axis.diff()
            even = len(axis) > 1 and bool(
                gaps.min() > 0 and (gaps - gaps.mean()).abs().max() <= EVEN * gaps.mean()
            )
            if not even:
                raise InputError(
                    "an axis of a grid is not regular and ascending",
                    where=f"grid, axis {place}",
                    found=str([round(float(value), 4) for value in axis[:6]]),
                    remedy="normalise it (stages/fields/grids/regular.py) or interpolate it",
                )
        if self.sphere:
            around = float(self.axes[1].diff().mean()) * len(self.axes[1])
            if len(self.axes) != 2 or abs(around - TURN) > 0.01:
                raise InputError(
                    "the longitudes of a sphere do not go around it",
                    where="grid",
                    expected=f"{TURN:g} degrees",
                    found=f"{around:g} degrees",
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along every axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Which axes begin again at their end."""
        return tuple(self.sphere and place == 1 for place in range(len(self.axes)))

    def to(self, device: str | torch.device) -> "Grid":
        """The same grid on another device."""
        moved = (self.values.to(device), self.mask.to(device))
        return Grid(tuple(axis.to(device) for axis in self.axes), *moved, self.sphere)

    def places(self) -> Float[Tensor, "M X"]:
        """Where the cells are, row by row."""
        return torch.stack(torch.meshgrid(*self.axes, indexing="ij"), -1).flatten(0, -2)

    def coarse(self, patch: int) -> "Grid":
        """The grid of the middles of patches, without values. InputError where it does not
        divide."""
        if any(count % patch or count == patch for count in self.shape):
            raise InputError(
                "the grid does not divide into patches",
                where="grid",
                expected=f"several times {patch} cells along every axis",
                found=str(self.shape),
            )
        axes = tuple(axis.unflatten(0, (-1, patch)).mean(1) for axis in self.axes)
        cells = (len(self.values), *(len(axis) for axis in axes))
        mask = torch.zeros(cells, dtype=torch.bool, device=self.mask.device)
        return Grid(axes, self.values.new_zeros(*cells, self.values.shape[-1]), mask, self.sphere)


@dataclass(frozen=True)
class GriddedBatch(Batch):
    """A batch of points with a grid beside them."""

    grid: Grid | None = None


def collate(parts: list[GriddedBatch]) -> GriddedBatch:
    """Stack batches whose grids have the same axes, padding the points. InputError for grids that
    differ."""
    plain = batches.collate([Batch(**points(part)) for part in parts])
    grids = [part.grid for part in parts]
    first = grids[0]
    if first is None or None in grids:
        if any(grid is not None for grid in grids):
            raise InputError("some sets have a grid and some have none", where="batch")
        return GriddedBatch(**vars(plain))
    for grid in grids:
        assert grid is not None
        same = grid.shape == first.shape and grid.sphere == first.sphere
        if not (same and all(map(torch.equal, grid.axes, first.axes))):
            raise InputError(
                "the sets of a batch lie on different grids",
                where="batch",
                expected=str(first.shape),
                found=str(grid.shape),
            )
    values = torch.cat([grid.values for grid in grids if grid])
    mask = torch.cat([grid.mask for grid in grids if grid])
    return GriddedBatch(**vars(plain), grid=replace(first, values=values, mask=mask))


def points(batch: Batch) -> dict[str, Tensor]:
    """The fields of a batch without its grid."""
    return {key: value for key, value in vars(batch).items() if key != "grid"}


def patches(
    tokens: Float[Tensor, "B M H"], shape: tuple[int, ...], patch: int
) -> Float[Tensor, "B P J"]:
    """The tokens of every patch side by side, J = patch^X H, patches row by row."""
    parts = tuple(itertools.chain(*((count // patch, patch) for count in shape)))
    axes = len(shape)
    cells = tokens.unflatten(1, parts)
    order = (*range(1, 2 * axes, 2), *range(2, 2 * axes + 1, 2))
    return cells.permute(0, *order, -1).flatten(1, axes).flatten(2)


def counted(grid: Grid, x: Float[Tensor, "B N X"]) -> Float[Tensor, "B N X"]:
    """Where points lie, in cells from the first one along each axis; on a sphere the latitude is
    phi* of the nearest meridian."""
    low = torch.stack([axis[0] for axis in grid.axes])
    step = torch.stack([axis.diff().mean() for axis in grid.axes])
    if grid.sphere:
        columns = len(grid.axes[1])
        across = (x[:, :, 1] - low[1]) / step[1]
        off = torch.deg2rad((across - across.round()) * step[1])
        north = torch.deg2rad(x[:, :, 0].clamp(-90, 90))
        bent = torch.rad2deg(torch.atan2(north.sin(), north.cos() * off.cos()))
        return torch.stack(((bent - low[0]) / step[0], across.remainder(columns)), 2)
    return (x - low) / step


def flat(
    index: Int[Tensor, "... X"], shape: tuple[int, ...], how: str = "row_major"
) -> Int[Tensor, "..."]:
    """The number of a cell, row by row. `as_published`: with the strides of the public code of G,
    which are those of the transposed grid, so right on square grids alone: on 120 x 240 cells no
    number exceeds 14,519 of 28,800. InputError where those leave the grid."""
    axes = len(shape)
    if how == "as_published":
        strides = [math.prod(shape[: axes - 1 - place]) for place in range(axes)]
        last = sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
        if last >= math.prod(shape):
            raise InputError(
                "the published strides leave this grid",
                where="index: as_published",
                expected=f"cells below {math.prod(shape)}",
                found=f"up to {last}, of {shape}",
                remedy="have no more rows than columns",
            )
    else:
        strides = [math.prod(shape[place + 1 :]) for place in range(axes)]
    return (index * torch.tensor(strides, device=index.device)).sum(-1)


def firsts(grid: Grid, where: Float[Tensor, "B N X"], count: int) -> Float[Tensor, "B N X"]:
    """The first of the `count` cells nearest to each place along each axis, a whole number; around
    a sphere it may lie before the first column."""
    found = []
    for axis, (cells, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        taken = min(count, cells)
        first = torch.ceil(where[:, :, axis] - taken / 2)
        # a place far outside has no whole number
        found.append(first if wraps else first.clamp(0, cells - taken))
    return torch.stack(found, 2)


def beside(grid: Grid, x: Float[Tensor, "B N X"], count: int) -> Float[Tensor, "B N X"]:
    """How many cells each point lies beyond the first of the `count` nearest along each axis: the
    same for a grid and points that are moved together."""
    where = counted(grid, x)
    return where - firsts(grid, where, count)


def neighbours(
    grid: Grid, x: Float[Tensor, "B N X"], count: int, how: str = "row_major"
) -> Int[Tensor, "B N K"]:
    """The numbers of the cells nearest to each point, `count` along each axis: K = count^X, all
    different. Around the sphere they wrap; at an end they begin at the last cell."""
    first, found = firsts(grid, counted(grid, x), count), []
    for axis, (cells, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        several = torch.arange(min(count, cells), device=x.device)
        several = first[:, :, axis].long()[:, :, None] + several
        found.append(several.remainder(cells) if wraps else several)
    total = found[0][..., None]
    for several in found[1:]:
        pairs = total.shape[2], several.shape[2]
        old = total[:, :, :, None].expand(-1, -1, -1, pairs[1], -1)
        new = several[:, :, None, :, None].expand(-1, -1, pairs[0], -1, -1)
        total = torch.cat((old, new), -1).flatten(2, 3)
    return flat(total, grid.shape, how)


def nearest(grid: Grid, x: Float[Tensor, "B N X"], how: str = "row_major") -> Int[Tensor, "B N"]:
    """The number of the cell nearest to each point."""
    return neighbours(grid, x, 1, how)[:, :, 0]


def windows(
    shape: tuple[int, ...], periodic: tuple[bool, ...], window: int, shift: int
) -> Int[Tensor, "W J"]:
    """The cells of every window of `window` cells along each axis, -1 where a window is not full;
    windows begin `shift` cells later. Around a periodic axis a window goes on at the beginning; at
    the end of another it ends, and what is left before the first window is one of its own."""
    slots = []
    for cells, wraps in zip(shape, periodic, strict=True):
        size = min(window, cells)
        begin = shift % size
        first = begin if wraps or not begin else begin - size
        places = first + torch.arange(-(-(cells - (0 if wraps else first)) // size) * size)
        if wraps:
            places = torch.where(places - first < cells, places.remainder(cells), -1)
        inside = (places >= 0) & (places < cells)
        slots.append(torch.where(inside, places, -1).unflatten(0, (-1, size)))
    numbers, sizes = torch.zeros((), dtype=torch.long), []
    absent = torch.zeros((), dtype=torch.bool)
    for axis, part in enumerate(slots):
        spread = part.reshape(*(1,) * (2 * axis), *part.shape, *(1,) * 2 * (len(slots) - axis - 1))
        numbers = numbers + spread * math.prod(shape[axis + 1 :])
        absent = absent | (spread < 0)
        sizes += [*part.shape]
    axes = len(slots)
    order = (*range(0, 2 * axes, 2), *range(1, 2 * axes, 2))
    whole = torch.where(absent, -1, numbers).expand(sizes).permute(order)
    return whole.flatten(0, axes - 1).flatten(1)


def angle(a: Float[Tensor, "... 2"], b: Float[Tensor, "... 2"]) -> Float[Tensor, "..."]:
    """Great-circle angles between places in degrees, radians, by haversines."""
    first, second = torch.deg2rad(a), torch.deg2rad(b)
    half = (0.5 * (first - second)).sin().square()
    both = half[..., 0] + first[..., 0].cos() * second[..., 0].cos() * half[..., 1]
    return 2 * both.clamp(0, 1).sqrt().clamp_max(1.0).asin()
