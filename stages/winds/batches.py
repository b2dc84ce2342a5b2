"""From prepared slices to what a step reads, their order, and the unit of the loss.

One step sees the targets of one slice, each with the context that the model asks for
(stages/winds/contexts/given.py). Positions and winds come standardised; `unit_kn` takes a
difference of standardised winds back to knots.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.heads import Predictive
from stages.training.group import ALONE, Group
from stages.training.losses import root, score, square
from stages.units import KNOT_M_S

if TYPE_CHECKING:
    from stages.winds.contexts.given import Contexts


@dataclass(frozen=True)
class Data:
    """The slices of one data set as batches for one model."""

    word = "slice"

    contexts: "Contexts"
    model: FieldModel
    device: torch.device

    def slices(self, split: str) -> list[int]:
        """Target slices of a split."""
        return self.contexts.pairs.targets(split)

    def batch(self, slice: int) -> Batch:
        """Context and targets of one slice."""
        return self.contexts.given(slice, self.model).batch.to(self.device)

    def parts(self, slices: list[int], step: int) -> list[Callable[[], Batch]]:
        """A step's batches, each made when it is called: one a slice."""
        return [partial(self.batch, slice) for slice in slices]

    def loss(self, prediction: Prediction, batch: Batch) -> Tensor:
        """RMSE in knots, or a Gaussian head's negative log-likelihood."""
        return loss_of(prediction, batch, self.unit_kn())

    def validate(self, model: FieldModel, group: Group = ALONE) -> dict[str, float]:
        """See `validate` below."""
        return validate(model, self, self.unit_kn(), group)

    def unit_kn(self) -> Tensor:
        """Knots per unit of standardised wind, for east and north: (2,)."""
        return (
            torch.tensor(
                self.contexts.pairs.meta["scaler"]["y_std"], dtype=torch.float32, device=self.device
            )
            / KNOT_M_S
        )


def loss_of(prediction: Prediction | Predictive, batch: Batch, unit_kn: Tensor) -> Tensor:
    """RMSE in knots of a mean alone, else the mean of the head's own score of a component (negative
    log-likelihood, or pinball loss) in standardised units."""
    if isinstance(prediction, Prediction):
        return root(prediction.mean, batch, unit_kn)
    return score(prediction, batch)


@torch.no_grad()
def validate(
    model: FieldModel, data: Data, unit_kn: Tensor, group: Group = ALONE
) -> dict[str, float]:
    """loss = mean of the per-slice losses, rmse_batch_mean_kn, rmse_component_kn (all points),
    over the validation slices."""
    model.eval()
    part = []
    for slice in group.share(data.slices("val")):
        batch = data.batch(slice)
        prediction = model(batch)
        part.append(
            (
                float(loss_of(prediction, batch, unit_kn)),
                float(square(prediction.mean, batch, unit_kn)),
                int(batch.target_mask.sum()),
            )
        )
    model.train()
    losses, squares, points = zip(*group.gather(part), strict=True)
    return {
        "loss": sum(losses) / len(losses),
        "rmse_batch_mean_kn": sum(map(math.sqrt, squares)) / len(squares),
        "rmse_component_kn": math.sqrt(
            sum(square * count for square, count in zip(squares, points, strict=True)) / sum(points)
        ),
    }
