"""The joint nowcast's tasks as the loop's data: a step sees skies that nobody has seen, drawn from
the step's own stream (real ones are cut out of the strips that train); the kept tasks of "val"
select. The loss is the negative log-density of a measurement, a target and component."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from stages.contracts import FieldModel
from stages.layers.grid import GriddedBatch
from stages.layers.heads import Predictive
from stages.training.group import ALONE, Group
from stages.training.losses import score
from stages.winds.joint import kept, real
from stages.winds.joint.batches import Batches
from stages.winds.joint.settings import Budget, Real, Told
from stages.winds.joint.tasks import Drawn, training

CHUNK = 32  # tasks that are predicted at once


@dataclass(frozen=True)
class Fresh:
    """What draws the tasks, those that select, the budget, the cell's seed."""

    sky: Drawn
    val: kept.KeptTasks
    batches: Batches
    budget: Budget
    seed: int

    word = "task"

    @classmethod
    def open(
        cls, prepared: Path, told: Told, budget: Budget, seed: int, device: torch.device
    ) -> "Fresh":
        """Of a prepared folder."""
        val = kept.read(prepared, "val")
        sky = real.opened(prepared, told) if isinstance(told, Real) else told.sky
        return cls(sky, val, Batches.of(told, device), budget, seed)

    @property
    def device(self) -> torch.device:
        """Where batches lie."""
        return self.batches.device

    def slices(self, split: str) -> list[int]:
        """Of "train" as many numbers as a step has tasks, all new; of "val" those of the kept."""
        return [*range(self.budget.tasks if split == "train" else len(self.val))]

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], GriddedBatch]]:
        """A step's only batch."""
        return [partial(self.drawn, step)]

    def drawn(self, step: int) -> GriddedBatch:
        """The tasks of a step."""
        rng = training(self.seed, step)
        return self.batches.batch(self.sky.drawn(self.budget.tasks, self.budget.targets, rng))

    def loss(self, prediction: Predictive, batch: GriddedBatch) -> Tensor:
        """What the head minimises, a target and component."""
        return score(prediction, batch)

    @torch.no_grad()
    def validate(self, model: FieldModel, group: Group = ALONE) -> dict[str, float]:
        """The mean negative log-density over the kept tasks that select."""
        model.eval()
        found = []
        for start in range(0, len(self.val), CHUNK):
            batch = self.batches.batch(self.val.some(slice(start, start + CHUNK)))
            found.append(-model(batch).log_prob(batch.target_y).double().mean((1, 2)))
        model.train()
        return {"loss": float(torch.cat(found).mean())}
