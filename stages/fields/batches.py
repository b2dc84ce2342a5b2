"""Sets of points as the loop's data (thesis 3.4, table 3.2's problems beside wind): a step sees a
batch of sets.

Loss: mean squared error in standardised units, or, where the problem says `rmse`, the root of the
batch's mean squared error in the problem's units (reference protocol of Darcy and ERA5). A budget's
`targets` has a step ask some of every set's targets, drawn anew; validation then asks that many at
a time too. `symmetries` shows each batch turned and mirrored, as one of the square's eight
symmetries drawn for the step: a Poisson room so moved is a Poisson room. All draws depend on seed
and step alone, so a resumed run needs no sampler state.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from stages import seeds
from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.fields.sets import PreparedSets
from stages.params import SetBudget
from stages.training.group import ALONE, Group
from stages.training.losses import root, square


@dataclass(frozen=True)
class SetData:
    """The sets of one problem as batches; `device` is where they lie."""

    sets: PreparedSets
    budget: SetBudget
    seed: int

    word = "set"

    @property
    def device(self) -> torch.device:
        """Where the tables lie."""
        return self.sets.context_x.device

    @property
    def asked(self) -> int:
        """Targets a forward call."""
        return self.budget.targets or self.sets.target_x.shape[1]

    def slices(self, split: str) -> list[int]:
        """The numbers of a split's sets."""
        return self.sets.split(split).tolist()

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], Batch]]:
        """A step's only batch, made when it is called."""
        return [partial(self.drawn, numbers, step)]

    def drawn(self, numbers: list[int], step: int) -> Batch:
        """The sets as step `step` sees them."""
        count, targets = self.sets.target_x.shape[1], None
        if self.asked < count:
            chosen = seeds.stream(self.seed, "training", "targets", step).choice(
                count, self.asked, replace=False
            )
            targets = torch.as_tensor(chosen, device=self.device)
        batch = self.sets.batch(torch.as_tensor(numbers, device=self.device), targets)
        return (
            moved(batch, int(seeds.stream(self.seed, "training", "symmetry", step).integers(8)))
            if self.budget.symmetries
            else batch
        )

    def loss(self, prediction: Prediction, batch: Batch) -> Tensor:
        """The problem's loss of one batch."""
        if self.sets.meta["loss"] == "rmse":
            return root(prediction.mean, batch, self.sets.unit)
        return square(prediction.mean, batch, torch.ones_like(self.sets.unit))

    @torch.no_grad()
    def validate(self, model: FieldModel, group: Group = ALONE) -> dict[str, float]:
        """loss = mean over batches of the training's size, as the documents report; mse: over
        all targets, in standardised units."""
        model.eval()
        batches = self.sets.split("val").split(self.budget.batch)
        part = []
        for numbers in group.share(list(batches)):
            mean = self.sets.predict(model, numbers, self.asked)
            batch = self.sets.batch(numbers)
            part.append(
                (
                    float(self.loss(Prediction(mean), batch)),
                    float(square(mean, batch, torch.ones_like(self.sets.unit))),
                    len(numbers),
                )
            )
        model.train()
        losses, squares, sizes = zip(*group.gather(part), strict=True)
        return {
            "loss": math.fsum(losses) / len(losses),
            "mse": math.fsum(s * n for s, n in zip(squares, sizes, strict=True)) / sum(sizes),
        }


def moved(batch: Batch, symmetry: int) -> Batch:
    """The batch after one of the eight symmetries of the unit square (0: none): axes exchanged
    where it is 4 or more, each mirrored by a bit."""

    def place(x: Tensor) -> Tensor:
        x = x.flip(-1) if symmetry & 4 else x
        mirrored = torch.tensor([bool(symmetry & 1), bool(symmetry & 2)], device=x.device)
        return torch.where(mirrored, 1 - x, x)

    return Batch(
        place(batch.context_x),
        batch.context_y,
        batch.context_mask,
        place(batch.target_x),
        batch.target_mask,
        batch.target_y,
    )
