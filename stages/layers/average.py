"""The mean of a masked set: what day and hour averages predict (thesis section 1.4.1)."""

from jaxtyping import Bool, Float
from torch import Tensor


def masked_mean(values: Float[Tensor, "B C I"], mask: Bool[Tensor, "B C"]) -> Float[Tensor, "B I"]:
    """Mean over the real points; 0, the mean of the training rows in standardised units, where
    there is none."""
    weight = mask.to(values.dtype)[:, :, None]
    return (values * weight).sum(1) / weight.sum(1).clamp_min(1)
