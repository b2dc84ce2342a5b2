"""Losses that several families minimise: the mean squared error, and a head's own score.

Shapes: B batch, T targets, O values.
"""

from torch import Tensor

from stages.batches import Batch
from stages.layers.heads import Predictive

LEAST = 1e-12  # below this a squared error has no gradient, instead of one that is not a number


def square(mean: Tensor, batch: Batch, unit: Tensor) -> Tensor:
    """Mean squared error over real targets and components, in `unit` (O,) squared; `mean` (B T
    O) is standardised."""
    error = ((mean - batch.target_y) * unit).square() * batch.target_mask[..., None]
    return error.sum() / (batch.target_mask.sum() * error.shape[-1])


def root(mean: Tensor, batch: Batch, unit: Tensor) -> Tensor:
    """The root of `square`."""
    return square(mean, batch, unit).clamp_min(LEAST).sqrt()


def score(prediction: Predictive, batch: Batch) -> Tensor:
    """Mean over real targets and components of what a head minimises, in standardised units."""
    each = prediction.loss(batch.target_y) * batch.target_mask[..., None]
    return each.sum() / (batch.target_mask.sum() * each.shape[-1])
