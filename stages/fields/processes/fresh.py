"""Tasks as the loop's data: a step sees tasks that nobody has seen, drawn from the step's own
stream; the kept tasks of "val" select. The loss is the negative log-density, a target.

Shapes: S tasks, T targets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.fields.problems.functions.gaussian_process import GaussianProcess
from stages.fields.problems.functions.plans import Tasks, Training
from stages.fields.problems.functions.sawtooth import Sawtooth
from stages.fields.processes import kept
from stages.fields.processes.settings import Budget, Functions
from stages.layers.heads import Predictive
from stages.training.group import ALONE, Group
from stages.training.losses import score

CHUNK = 64  # tasks that are predicted at once


def batched(tasks: Tasks, device: torch.device | str = "cpu") -> Batch:
    """Tasks as models read them, float32."""

    def to_tensor(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array.astype(np.float32)).to(device)

    mask = torch.ones(tasks.target_x.shape[:2], dtype=torch.bool, device=device)
    real = torch.from_numpy(tasks.real).to(device)
    return Batch(
        to_tensor(tasks.context_x), to_tensor(tasks.context_y), real, to_tensor(tasks.target_x),
        mask, to_tensor(tasks.target_y),
    )  # fmt: skip


@dataclass(frozen=True)
class Fresh:
    """What draws the tasks, those that select, the budget, the cell's seed."""

    process: GaussianProcess | Sawtooth
    val: kept.KeptTasks
    budget: Budget
    seed: int

    word = "task"

    @classmethod
    def open(
        cls, prepared: Path, told: Functions, budget: Budget, seed: int, device: torch.device
    ) -> "Fresh":
        """Of a prepared folder."""
        val = kept.read(prepared, "val", device)
        return cls(told.made(budget.targets), val, budget, seed)

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.val.batch.context_x.device

    def slices(self, split: str) -> list[int]:
        """Of "train" as many numbers as a step has tasks, all new; of "val" those of the kept."""
        return [*range(self.budget.tasks if split == "train" else len(self.val.exact_mean))]

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], Batch]]:
        """A step's only batch."""
        return [partial(self.drawn, step)]

    def drawn(self, step: int) -> Batch:
        """The tasks of a step."""
        return batched(
            self.process.drawn(self.budget.tasks, Training(self.seed, step)), self.device
        )

    def loss(self, prediction: Predictive, batch: Batch) -> Tensor:
        """What the head minimises, a target."""
        return score(prediction, batch)

    @torch.no_grad()
    def validate(self, model: FieldModel, group: Group = ALONE) -> dict[str, float]:
        """The mean negative log-density over the kept tasks that select."""
        model.eval()
        count, found = len(self.val.exact_mean), []
        for start in range(0, count, CHUNK):
            batch = self.val.some(slice(start, start + CHUNK))
            found.append(-model(batch).log_prob(batch.target_y).double().mean((1, 2)))
        model.train()
        return {"loss": float(torch.cat(found).mean())}
