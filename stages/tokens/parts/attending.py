"""Attention in the frame: the house's own (stages/layers/attention.py), the same with a causal
mask, and linear attention with phi = elu + 1 (Katharopoulos et al. 2020; thesis 2.5.2).

Shapes: B batch, N tokens, H width, A heads.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from stages.layers.attention import Attention, usable

LEAST = 1e-6  # of a sum of weights


class SelfAttention(Attention):
    """softmax(QK^T / sqrt(d)) V, or without the root where not `scaled` (slides); `causal`: a token
    reads itself and those before it. Equivariant to permutations where it is not causal; padding
    is not read."""

    padded = True

    def __init__(self, width: int, heads: int, causal: bool, scaled: bool = True):
        super().__init__(width, heads)
        self.width, self.causal = width, causal
        self.gain = 1.0 if scaled else self.head**0.5

    def forward(  # type: ignore[override]  # the frame's way to call a mixer
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """What each token reads."""
        if not self.causal and self.gain == 1:
            return super().forward(tokens, usable(real), tokens.shape[1])
        weight, bias = self._filled()
        inward = functional.linear(tokens, weight.flatten(0, 1), bias.flatten())
        query, key, value = self._split(inward, 3)
        mask = usable(real)
        if self.causal:
            count = tokens.shape[1]
            before = torch.ones(count, count, dtype=torch.bool, device=tokens.device).tril()
            mask = before[None, None] if mask is None else before & mask
        return self.outward(self._mixed(query * self.gain, key, value, mask))

    def flops(self, count: int) -> int:
        """Products of a layer: 8 N H^2 for four projections, 4 N^2 H for scores and averages
        (errata, B.4.3)."""
        return 8 * count * self.width**2 + 4 * count**2 * self.width


class LinearAttention(nn.Module):
    """phi(Q) (phi(K)^T V) / phi(Q) phi(K)^T 1, linear in N. Equivariant to permutations; padding
    is not read."""

    padded, causal = True, False

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.width, self.heads = width, heads
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """What each token reads."""
        parts = self.inward(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = functional.elu(parts[0]) + 1, functional.elu(parts[1]) + 1, parts[2]
        key = key * real[:, None, :, None]
        total = (query * key.sum(2, keepdim=True)).sum(3, keepdim=True)
        mixed = query @ (key.mT @ value) / total.clamp_min(LEAST)
        return self.outward(mixed.transpose(1, 2).flatten(2))

    def flops(self, count: int) -> int:
        """Products of a layer."""
        return 8 * count * self.width**2 + 4 * count * self.width**2 // self.heads
