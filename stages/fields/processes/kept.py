"""Prepared tasks: what preparation writes, and training and evaluation read.

tasks.safetensors: of "val" and "test" SPLIT.NAME, positions and values float32, the exact law and
the functions' parameters float64. about.json: how the functions were drawn, and each split's bound,
the mean log-density of the exact law in nats a target.
Shapes: S tasks, C context points, T targets, X axes.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from stages import files
from stages.batches import Batch
from stages.errors import DataError
from stages.fields.processes.layout import ABOUT, TASKS


@dataclass(frozen=True)
class KeptTasks:
    """One split: a batch of all its tasks, the exact mean and standard deviation (S, T), the
    functions' parameters (S,) each."""

    batch: Batch
    exact_mean: Tensor
    exact_sd: Tensor
    function: dict[str, Tensor]

    def some(self, rows: slice) -> Batch:
        """The tasks of some rows."""
        return Batch(**{key: value[rows] for key, value in vars(self.batch).items()})


def read(folder: Path, split: str, device: torch.device | str = "cpu") -> KeptTasks:
    """A split of a prepared folder. DataError when it is missing or not what preparation writes."""
    path = folder / TASKS
    try:
        found = load_file(path, device=str(device))
        part = {
            key.partition(".")[2]: value
            for key, value in found.items()
            if key.startswith(f"{split}.")
        }
        return KeptTasks(
            Batch(
                part["context_x"],
                part["context_y"],
                part["real"],
                part["target_x"],
                torch.ones_like(part["target_x"][:, :, 0], dtype=torch.bool),
                part["target_y"],
            ),
            part["exact_mean"],
            part["exact_sd"],
            {
                key.partition("_")[2]: value
                for key, value in part.items()
                if key.startswith("function_")
            },
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
