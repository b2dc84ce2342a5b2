"""Tasks on and off the grid as the loop's data: a step sees tasks that nobody has seen, drawn from
the step's own stream; the kept tasks of "val" select. The loss is the negative log-density, a
target."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from stages.contracts import FieldModel
from stages.fields.grids import kept, stale, world
from stages.fields.grids.settings import Budget, Stale, Told, Whole
from stages.fields.problems.coupled.dual import Dual
from stages.fields.problems.coupled.globe import Globe
from stages.fields.problems.functions.plans import Training
from stages.fields.problems.stale.tasks import Month
from stages.fields.problems.stale.world import World
from stages.layers.grid import GriddedBatch
from stages.layers.heads import Predictive
from stages.training.group import ALONE, Group
from stages.training.losses import score

Process = Dual | Globe | Month | World
CHUNK = 32  # tasks that are predicted at once


@dataclass(frozen=True)
class Fresh:
    """What draws the tasks, those that select, the budget, the cell's seed."""

    process: Process
    val: kept.KeptTasks
    axes: tuple[Tensor, ...]
    budget: Budget
    seed: int

    word = "task"

    @classmethod
    def open(
        cls, prepared: Path, told: Told, budget: Budget, seed: int, device: torch.device
    ) -> "Fresh":
        """Of a prepared folder."""
        axes = tuple(kept.axes_of(kept.about(prepared), device))
        val = kept.read(prepared, "val", device)
        if isinstance(told, Stale):
            process: Process = stale.opened(prepared, told, budget.targets)
        elif isinstance(told, Whole):
            process = world.opened(prepared, told, budget.targets)
        else:
            process = told.made(budget.targets)
        return cls(process, val, axes, budget, seed)

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.val.batch.context_x.device

    def slices(self, split: str) -> list[int]:
        """Of "train" as many numbers as a step has tasks, all new; of "val" those of the kept."""
        count = self.budget.tasks if split == "train" else len(self.val.batch.context_x)
        return [*range(count)]

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], GriddedBatch]]:
        """A step's only batch."""
        return [partial(self.drawn, step)]

    def drawn(self, step: int) -> GriddedBatch:
        """The tasks of a step."""
        tasks = self.process.drawn(self.budget.tasks, Training(self.seed, step))
        return kept.batched(tasks, self.axes, self.process.sphere, self.device)

    def loss(self, prediction: Predictive, batch: GriddedBatch) -> Tensor:
        """What the head minimises, a target."""
        return score(prediction, batch)

    @torch.no_grad()
    def validate(self, model: FieldModel, group: Group = ALONE) -> dict[str, float]:
        """The mean negative log-density over the kept tasks that select."""
        model.eval()
        found = []
        for start in range(0, len(self.val.batch.context_x), CHUNK):
            batch = self.val.some(slice(start, start + CHUNK))
            found.append(-model(batch).log_prob(batch.target_y).double().mean((1, 2)))
        model.train()
        return {"loss": float(torch.cat(found).mean())}
