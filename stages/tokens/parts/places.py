"""Where a token stands, as sines and cosines of falling frequency (Vaswani et al. 2017)."""

import math
from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=64)
def sinusoid(count: int, width: int) -> Tensor:
    """(N, H): sin and cos of place / 10000^(2i/H), i = 0 .. H/2."""
    rates = torch.exp(-math.log(1e4) * torch.arange(0, width, 2) / width)
    angles = torch.arange(count)[:, None] * rates
    found = torch.empty(count, width)
    found[:, 0::2], found[:, 1::2] = angles.sin(), angles.cos()[:, : width // 2]
    return found
