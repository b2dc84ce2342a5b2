"""Prepared tasks of the joint nowcast: what preparation writes, and training and evaluation read.

tasks.safetensors: of "val" and "test" SPLIT.NAME, what a task is (tasks.py) and the exact laws and
those of the rivals (both_mean, linear_sd, ...), float64; of real skies `where` (S, 3), too: the
middle's latitude and longitude, and the hour since 1970 that is now. about.json: how the tasks were
drawn, the grid's axes in km, the exact laws' bounds, what the rivals learned. A model reads local
coordinates (layers/local.py), heights from the middle of the area's, and of a cell both components
and its age in AGE_H. Shapes: S tasks, C reports, T targets, M cells, O components.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import Tensor

from stages import files
from stages.errors import DataError
from stages.layers.grid import Grid, GriddedBatch
from stages.layers.local import HORIZONTAL_KM, TIME_MIN, VERTICAL_KM
from stages.winds.joint.law import Answer
from stages.winds.joint.layout import ABOUT, MAP, TASKS
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


@dataclass(frozen=True)
class KeptTasks:
    """One split: its tasks, by name what each law that is kept answers, and where real tasks
    are (S, 3)."""

    tasks: Tasks
    laws: dict[str, Answer]
    where: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.tasks.age)

    def some(self, rows: slice) -> Tasks:
        """The tasks of some rows."""
        named = {key: value[rows] for key, value in vars(self.tasks).items() if key != "answers"}
        return replace(self.tasks, **named)

    def over(self, plane: dict[str, np.ndarray]) -> Tasks:
        """The task that is drawn, asked of its plane."""
        row = plane["row"].item()
        x, nothing = plane["x"][None], np.zeros((1, len(plane["x"]), 2))
        return replace(self.some(slice(row, row + 1)), target_x=x, target_y=nothing,
                       target_true=nothing)  # fmt: skip


def read(folder: Path, split: str) -> KeptTasks:
    """A split of a prepared folder. DataError when it is missing or not what preparation writes."""
    path = folder / TASKS
    try:
        found = load_file(path)
        part = {key.partition(".")[2]: one for key, one in found.items()
                if key.startswith(f"{split}.")}  # fmt: skip
        laws = {
            law: (part.pop(f"{law}_mean"), part.pop(f"{law}_sd"))
            for law in sorted(key.removesuffix("_mean") for key in part if key.endswith("_mean"))
        }
        where = part.pop("where", None)
        return KeptTasks(Tasks.of(part), laws, where)
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        raise DataError(
            "prepared tasks cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None


def plane(folder: Path) -> dict[str, np.ndarray]:
    """What of a real sky is drawn (real.py). DataError where preparation has not written it."""
    try:
        found: dict[str, np.ndarray] = load_file(folder / MAP)
    except (SafetensorError, OSError) as error:
        raise DataError(
            "the plane that is drawn cannot be read",
            where=str(folder / MAP),
            found=type(error).__name__,
            remedy="run `dvc repro`",
        ) from None
    return found


def about(folder: Path) -> dict[str, Any]:
    """What about.json says."""
    return files.read_json(folder / ABOUT)
