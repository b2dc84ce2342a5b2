"""SetConv: points with values to a regular grid, and from the grid to any place (Gordon et al.
2020; document N, equation 3.2.1), translation equivariant.

R(x) = sum_n [1, y_n] k(x - x_n), k a Gaussian of learned length, one an axis. The first channel,
the density, tells where anything was measured; the others are divided by it, as Gordon et al. do
(N prints the plain sum). The kernel is a product over axes, so no points x cells matrix of the
whole grid is made, only one an axis. Shapes: B sets, N points, X axes (1, 2 or 3), I values, F
channels, G_a cells along axis a, * all cells.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

LEAST = 1e-5  # a length is not below this; nor is a density that divides


class SetConv(nn.Module):
    """Lengths begin at `length`, in the unit of the positions."""

    def __init__(self, x_dim: int, length: float):
        super().__init__()
        raw = math.log(math.expm1(length))  # its softplus is the length
        self.raw_length = nn.Parameter(torch.full((x_dim,), raw))

    def kernels(
        self, x: Float[Tensor, "B N X"], axes: Sequence[Float[Tensor, "B _"]]
    ) -> list[Float[Tensor, "B N _"]]:
        """Of every axis, k of each point and each cell along it."""
        lengths = functional.softplus(self.raw_length) + LEAST
        return [
            torch.exp(-0.5 * ((x[:, :, axis, None] - places[:, None]) / lengths[axis]).square())
            for axis, places in enumerate(axes)
        ]

    def onto_grid(
        self,
        x: Float[Tensor, "B N X"],
        y: Float[Tensor, "B N I"],
        real: Bool[Tensor, "B N"],
        axes: Sequence[Float[Tensor, "B _"]],
    ) -> Float[Tensor, "B F *cells"]:
        """Density and values, F = 1 + I, in every cell; 0 far from all points."""
        told = torch.cat((torch.ones_like(x[:, :, :1]), y), 2) * real[:, :, None]
        first, *others = self.kernels(x.masked_fill(~real[:, :, None], 0), axes)
        if not others:
            grid = told.mT @ first
        else:
            spread = told[:, :, :, None] * first[:, :, None]
            for kernel in others[:-1]:
                spread = spread[..., None] * kernel.unflatten(2, (1, *[1] * (spread.dim() - 3), -1))
            grid = (spread.flatten(2).mT @ others[-1]).unflatten(
                1, (told.shape[2], *(axis.shape[1] for axis in axes[:-1]))
            )
        density = grid[:, :1]
        return torch.cat((density, grid[:, 1:] / (density + LEAST)), 1)

    def from_grid(
        self,
        grid: Float[Tensor, "B F *cells"],
        axes: Sequence[Float[Tensor, "B _"]],
        x: Float[Tensor, "B N X"],
    ) -> Float[Tensor, "B N F"]:
        """The sum of the cells' channels, weighed by k, at places x."""
        *others, last = self.kernels(x, axes)
        read = grid.flatten(1, -2) @ last.mT if others else grid @ last.mT
        read = read.unflatten(1, grid.shape[1:-1])
        for kernel in reversed(others):
            read = (read * kernel.mT.unflatten(1, (*[1] * (read.dim() - 3), -1))).sum(-2)
        return read.mT


def regular_axes(
    points: Float[Tensor, "B N X"],
    real: Bool[Tensor, "B N"],
    density: float,
    margin: int,
    most: int,
) -> tuple[list[Float[Tensor, "B _"]], list[Bool[Tensor, "B _"]]]:
    """Cells along every axis that cover each set's real points, and which of them are the set's.

    The grid begins `margin` cells before the set's first point: it moves with the points, so that
    what is made on it is equivariant to any shift. `density` cells a unit of length, fewer where a
    set is so long that more than `most` would be needed.
    """
    known = points.detach()
    absent = ~real[:, :, None]
    empty = ~real.any(1)[:, None]
    low = known.masked_fill(absent, torch.inf).amin(1).masked_fill(empty, 0)
    high = known.masked_fill(absent, -torch.inf).amax(1).masked_fill(empty, 0)
    extent = high - low
    step = torch.clamp_min(extent / (most - 1), 1 / density)
    # a rounding of the extent must not add a cell
    count = torch.ceil(extent / step - 1e-4).long() + 1 + 2 * margin
    axes, own = [], []
    for axis in range(points.shape[2]):
        cells = torch.arange(int(count[:, axis].max()), device=points.device)
        axes.append(low[:, axis, None] + (cells - margin) * step[:, axis, None])
        own.append(cells < count[:, axis, None])
    return axes, own
