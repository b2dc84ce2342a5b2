"""Losses that several families minimise: the mean squared error, and a Gaussian head's likelihood.

Shapes: B batch, T targets, O values.
"""

import math

from torch import Tensor

from stages.batches import Batch

LEAST = 1e-12  # below this a squared error has no gradient, instead of one that is not a number


def square(mean: Tensor, batch: Batch, unit: Tensor) -> Tensor:
    """Mean squared error over real targets and components, in `unit` (O,) squared; `mean` (B T
    O) is standardised."""
    error = ((mean - batch.target_y) * unit).square() * batch.target_mask[..., None]
    return error.sum() / (batch.target_mask.sum() * error.shape[-1])


def root(mean: Tensor, batch: Batch, unit: Tensor) -> Tensor:
    """The root of `square`."""
    return square(mean, batch, unit).clamp_min(LEAST).sqrt()


def gaussian(mean: Tensor, scale: Tensor, batch: Batch) -> Tensor:
    """Mean negative log-likelihood of a component in standardised units; mean and standard
    deviation (B T O)."""
    z = (batch.target_y - mean) / scale
    each = (0.5 * z.square() + scale.log() + 0.5 * math.log(2 * math.pi)) * batch.target_mask[
        ..., None
    ]
    return each.sum() / (batch.target_mask.sum() * z.shape[-1])
