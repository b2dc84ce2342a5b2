"""Prepared tasks on and off the grid: what preparation writes, and training and evaluation read.

tasks.safetensors: of "val" and "test" SPLIT.NAME, positions and values float32, the exact laws
float64 (both_mean, off_sd, ...), or where none is known those of the rivals; of real hours also the
day of each task (measure.py joins the days of one unbroken stretch), of the whole globe the block
of a strip that its window lies in. about.json: how the tasks were
drawn, the grid's axes, each split's bounds. Shapes: S tasks, C context points, T targets, X axes, M
cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from stages import files
from stages.errors import DataError
from stages.fields.grids.layout import ABOUT, TASKS
from stages.fields.problems.coupled.tasks import Tasks
from stages.layers.grid import Grid, GriddedBatch

Law = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class KeptTasks:
    """One split: a batch of all its tasks, by name the mean and standard deviation (S, T) of each
    law that is kept (exact ones by what is read), and which tasks go together (S,)."""

    batch: GriddedBatch
    laws: dict[str, Law]
    group: np.ndarray

    def some(self, rows: slice) -> GriddedBatch:
        """The tasks of some rows."""
        grid = self.batch.grid
        assert grid is not None
        points = {key: value[rows] for key, value in vars(self.batch).items() if key != "grid"}
        part = replace(grid, values=grid.values[rows], mask=grid.mask[rows])
        return GriddedBatch(**points, grid=part)


def gridded(values: Tensor, axes: Sequence[Tensor], sphere: bool) -> Grid:
    """Cells (S, M), all known, on their axes."""
    shape = (len(values), *map(len, axes))
    mask = torch.ones(shape, dtype=torch.bool, device=values.device)
    return Grid(tuple(axes), values.reshape(*shape, 1), mask, sphere)


def batched(
    tasks: Tasks, axes: Sequence[Tensor], sphere: bool, device: torch.device | str = "cpu"
) -> GriddedBatch:
    """Tasks as models read them, float32."""

    def to_tensor(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array.astype(np.float32)).to(device)

    mask = torch.ones(tasks.target_x.shape[:2], dtype=torch.bool, device=device)
    real = torch.from_numpy(np.ascontiguousarray(tasks.real)).to(device)
    return GriddedBatch(
        to_tensor(tasks.context_x), to_tensor(tasks.context_y), real, to_tensor(tasks.target_x),
        mask, to_tensor(tasks.target_y), gridded(to_tensor(tasks.grid_y), axes, sphere),
    )  # fmt: skip


def axes_of(told: dict[str, Any], device: torch.device | str = "cpu") -> list[Tensor]:
    """The grid's axes as about.json has them."""
    return [torch.tensor(axis, dtype=torch.float32, device=device) for axis in told["axes"]]


def read(folder: Path, split: str, device: torch.device | str = "cpu") -> KeptTasks:
    """A split of a prepared folder. DataError when it is missing or not what preparation writes."""
    path, told = folder / TASKS, about(folder)
    try:
        found = load_file(path, device=str(device))
        part = {
            key.partition(".")[2]: value
            for key, value in found.items()
            if key.startswith(f"{split}.")
        }
        laws = {
            law: (part[f"{law}_mean"].cpu().numpy(), part[f"{law}_sd"].cpu().numpy())
            for law in (key.removesuffix("_mean") for key in part if key.endswith("_mean"))
        }
        count = len(part["target_x"])
        alike = next((name for name in ("day", "block") if name in part), "")
        group = part[alike].cpu().numpy() if alike else np.arange(count)
        mask = torch.ones_like(part["target_x"][:, :, 0], dtype=torch.bool)
        grid = gridded(part["grid_y"], axes_of(told, device), told["sphere"])
        points = (part[name] for name in ("context_x", "context_y", "real", "target_x"))
        return KeptTasks(
            GriddedBatch(*points, mask, part["target_y"], grid),  # type: ignore[arg-type]
            laws,
            group,
        )
    except (SafetensorError, OSError, KeyError) as error:
        raise DataError(
            "prepared tasks cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None


def about(folder: Path) -> dict[str, Any]:
    """What about.json says."""
    return files.read_json(folder / ABOUT)
