"""Tasks of the joint nowcast as models read them: local coordinates (layers/local.py), heights from
the middle of the area's, and of a cell both components and its age in AGE_H. Shapes: S tasks, N
places, M cells.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from stages.layers.grid import Grid, GriddedBatch
from stages.layers.local import HORIZONTAL_KM, TIME_MIN, VERTICAL_KM
from stages.winds.joint.settings import Told
from stages.winds.joint.tasks import Tasks

UNITS = np.array([HORIZONTAL_KM, HORIZONTAL_KM, VERTICAL_KM, TIME_MIN])
AGE_H = 3.0  # what an age of 1 is


@dataclass(frozen=True)
class Batches:
    """How tasks become batches: the axes' middles and the area's middle height, km."""

    axes: tuple[np.ndarray, ...]
    middle: float
    device: torch.device

    @classmethod
    def of(cls, told: Told, device: torch.device | str = "cpu") -> "Batches":
        """Those of a data set."""
        axes = tuple(axis.middles for axis in told.axes)
        return cls(axes, sum(told.altitude_km) / 2, torch.device(device))

    def tensor(self, array: np.ndarray) -> Tensor:
        """float32, or truth."""
        kind = bool if array.dtype == bool else np.float32
        return torch.from_numpy(np.ascontiguousarray(array, kind)).to(self.device)

    def places(self, x: np.ndarray) -> Tensor:
        """(S, N, 4) in local units."""
        return self.tensor((x - np.array([0.0, 0.0, self.middle, 0.0])) / UNITS)

    @cached_property
    def lines(self) -> tuple[Tensor, ...]:
        """The grid's axes in local units."""
        shift = (0.0, 0.0, self.middle)
        return tuple(
            self.tensor((axis - low) / unit)
            for axis, low, unit in zip(self.axes, shift, UNITS, strict=False)
        )

    def grid(self, cells: np.ndarray, age: np.ndarray) -> Grid:
        """Cells (S, M, 2) with their age (S,), hours."""
        shape = (len(cells), *map(len, self.axes))
        old = np.broadcast_to(age[:, None, None] / AGE_H, (*cells.shape[:2], 1))
        values = self.tensor(np.concatenate((cells, old), 2)).reshape(*shape, -1)
        return Grid(self.lines, values, torch.ones(shape, dtype=torch.bool, device=self.device))

    def batch(self, tasks: Tasks) -> GriddedBatch:
        """As models read them."""
        mask = torch.ones(tasks.target_x.shape[:2], dtype=torch.bool, device=self.device)
        return GriddedBatch(
            self.places(tasks.context_x), self.tensor(tasks.context_y), self.tensor(tasks.real),
            self.places(tasks.target_x), mask, self.tensor(tasks.target_y),
            self.grid(tasks.grid_y, tasks.age),
        )  # fmt: skip
