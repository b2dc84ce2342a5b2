"""Trainable linear interpolation, the rival without a network (document G, section 4.2.6; reference
code I).

a (the points interpolated linearly over their Delaunay triangles) + b (the cells interpolated
linearly between neighbouring cells), a and b learned, one a component, and one standard deviation.
Outside the triangles the mean of the points stands; one source stands for the other where that is
empty, 0 where both are. Shapes: B sets, C context points, T targets, X axes, O values.
"""

import contextlib
import itertools

import numpy as np
import torch
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import QhullError
from torch import Tensor, nn
from torch.nn import functional

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers import grid as on
from stages.layers.grid import Grid, GriddedBatch
from stages.layers.gridding import rows
from stages.layers.heads import FLOOR, Gaussian


def scattered(x: np.ndarray, y: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Values (T, O) at targets (T, X) from points (C, X), equal places averaged; the points' mean
    where they span nothing or do not surround the target."""
    places, which = np.unique(x, axis=0, return_inverse=True)
    counts = np.bincount(which)[:, None]
    values = np.stack([np.bincount(which, one) for one in y.T], 1) / counts
    found = np.full((len(targets), y.shape[1]), np.nan)
    if x.shape[1] == 1 and len(places) > 1:
        for place, one in enumerate(values.T):
            line = np.interp(targets[:, 0], places[:, 0], one, np.nan, np.nan)
            found[:, place] = line
    elif len(places) > x.shape[1] > 1:
        with contextlib.suppress(QhullError):  # all on a line
            found = LinearNDInterpolator(places, values)(targets)
    return np.where(np.isfinite(found), found, y.mean(0))


def between(grid: Grid, x: Tensor) -> Tensor:
    """Values (B, T, F) linear between the 2^X cells around each target; unknown ones count as the
    mean of the known."""
    known = grid.mask.flatten(1)[:, :, None]
    values = grid.values.flatten(1, -2).masked_fill(~known, 0)
    mean = values.sum(1, keepdim=True) / known.sum(1, keepdim=True).clamp_min(1)
    values = torch.where(known, values, mean)
    where, total = on.counted(grid, x), torch.zeros_like(x[:, :, :1])
    if grid.sphere:  # in the plane of latitude and longitude, as G's baseline
        low, step = grid.axes[0][0], grid.axes[0].diff().mean()
        where = torch.stack(((x[:, :, 0] - low) / step, where[:, :, 1]), 2)
    last = torch.tensor(grid.shape, device=x.device) - 1
    wraps = torch.tensor(grid.periodic, device=x.device)
    where = torch.where(wraps, where, torch.minimum(where.clamp_min(0), last))
    first = torch.where(wraps, where.floor(), torch.minimum(where.floor(), last - 1)).long()
    for corner in itertools.product((0, 1), repeat=x.shape[2]):
        step = torch.tensor(corner, device=x.device)
        share = torch.where(step == 1, where - first, 1 - (where - first)).prod(2, keepdim=True)
        index = on.flat((first + step).remainder(last + 1), grid.shape)
        total = total + share * rows(values, index)
    return total


class LinearInterpolation(FieldModel):
    """Two weights and a standard deviation a component."""

    context, learns, head = "slice", "gradient", "gaussian"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int):
        super().__init__()
        self.off, self.on = (nn.Parameter(torch.full((o_dim,), 0.5)) for _ in range(2))
        self.raw = nn.Parameter(torch.zeros(o_dim) + 0.5)

    def interpolated(self, batch: Batch) -> Tensor:
        """The points' values at targets (B, T, O)."""
        x, y, t = (
            part.detach().double().cpu().numpy()
            for part in (batch.context_x, batch.context_y, batch.target_x)
        )
        real, found = batch.context_mask.cpu().numpy(), np.zeros((*t.shape[:2], y.shape[2]))
        for place, mask in enumerate(real):
            if mask.any():
                found[place] = scattered(x[place][mask], y[place][mask], t[place])
        return torch.from_numpy(found).to(batch.target_x)

    def forward(self, batch: Batch) -> Gaussian:
        """The law at every target, B T O."""
        points, some = self.interpolated(batch), batch.context_mask.any(1)[:, None, None]
        grid = batch.grid if isinstance(batch, GriddedBatch) else None
        cells = points if grid is None else between(grid, batch.target_x)
        mean = self.off * torch.where(some, points, cells) + self.on * cells
        scale = functional.softplus(self.raw).add(FLOOR**2).sqrt().expand_as(mean)
        return Gaussian(mean, scale)
