"""The heads as neural processes take them: those of heads.py, the Gaussian one with the standard
deviation of document N's public code, sqrt(softplus(raw)) (equation 2.2.4 does not say how; G's
text has the logarithm of the variance, its public code this).

Shapes: B sets, T targets, O components.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from stages.layers import heads
from stages.layers.heads import FLOOR, Gaussian, Head


def full(numbers: Tensor) -> Tensor:
    """At least float32: 8 bits of mantissa hold no likelihood."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def heteroscedastic(numbers: Float[Tensor, "B T N"]) -> Gaussian:
    """All means, then all raw variances: N = 2 O."""
    mean, raw = numbers.chunk(2, -1)
    return Gaussian(mean, (functional.softplus(raw) + FLOOR**2).sqrt())


HEADS = heads.HEADS | {"gaussian": Head(2, heteroscedastic)}
