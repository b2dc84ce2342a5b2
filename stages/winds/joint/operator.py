"""What a coarse grid knows of a wind, as linear functionals of it along each axis.

A cell's value is the mean over the cell of the wind smoothed by a Gaussian, as a forecast's
resolution does it. Both are taken at nodes, NODES to a cell, and along one axis after the other:
cell (i, j, k) is sum_abc A_ia B_jb C_kc wind(a, b, c), with the rows of A, B, C summing to 1. So
where a covariance is a product over axes, that of cells is one, too (law.py).
Shapes: G cells along the axis, Q nodes. Any unit, the same throughout.
"""

from dataclasses import dataclass

import numpy as np

from stages.errors import InputError

NODES = 4  # to a cell: a mean over a cell is one over its nodes
REACH = 3.0  # standard deviations of the smoothing, beyond which it weighs nothing
Array = np.ndarray


@dataclass(frozen=True)
class Axis:
    """Cells side by side along one axis: their middles (G,), the nodes (Q,) and each cell's weights
    of them (G, Q)."""

    middles: Array
    nodes: Array
    weights: Array

    @classmethod
    def of(cls, low: float, high: float, cells: int, smooth: float = 0.0) -> "Axis":
        """`cells` from `low` to `high`, smoothed by a Gaussian of standard deviation `smooth`.
        InputError for an axis without length or with a single cell."""
        if not (high > low and cells > 1 and smooth >= 0):
            raise InputError(
                "no axis of a grid",
                where="grid",
                expected="two cells or more from low to high",
                found=f"{cells} cells from {low:g} to {high:g}, smoothed by {smooth:g}",
            )
        width = (high - low) / cells
        step = width / NODES
        beyond = int(np.ceil(REACH * smooth / step))
        nodes = low + step * (np.arange(-beyond, cells * NODES + beyond) + 0.5)
        own = low + step * (np.arange(cells * NODES) + 0.5)  # inside the cells
        apart = own[:, None] - nodes[None]
        share = (
            np.exp(-0.5 * np.square(apart / smooth)) * (np.abs(apart) <= REACH * smooth + step / 2)
            if smooth > 0
            else (np.abs(apart) < step / 2).astype(float)
        )
        share /= share.sum(1, keepdims=True)
        weights = share.reshape(cells, NODES, -1).mean(1)
        return cls(low + width * (np.arange(cells) + 0.5), nodes, weights)
