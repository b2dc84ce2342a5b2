"""What training minimises and what selects weights: of winds the RMSE in knots of a slice, of a
Gaussian head its likelihood."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from stages.batches import Batch, Prediction
from stages.training.group import ALONE, Group

if TYPE_CHECKING:
    from stages.winds.batches import Data

LEAST = 1e-12  # kn^2: below this an error has no gradient, instead of one that is not a number


def square(mean: Tensor, batch: Batch, unit: Tensor) -> Tensor:
    """Mean squared error over real targets and components, in `unit` (O,) squared; `mean` (B T
    O) is standardised."""
    error = ((mean - batch.target_y) * unit).square() * batch.target_mask[..., None]
    return error.sum() / (batch.target_mask.sum() * error.shape[-1])


def loss_of(prediction: Prediction, batch: Batch, unit_kn: Tensor) -> Tensor:
    """RMSE in knots, or with a scale the mean negative log-likelihood of a component in
    standardised units."""
    if prediction.scale is None:
        return square(prediction.mean, batch, unit_kn).clamp_min(LEAST).sqrt()
    z = (batch.target_y - prediction.mean) / prediction.scale
    each = (
        0.5 * z.square() + prediction.scale.log() + 0.5 * math.log(2 * math.pi)
    ) * batch.target_mask[..., None]
    return each.sum() / (batch.target_mask.sum() * z.shape[-1])


@torch.no_grad()
def validate(
    model: nn.Module, data: "Data", unit_kn: Tensor, group: Group = ALONE
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
