"""HyperMixing in the frame (thesis sections 2.3.3, B.3.2, B.6): the house's own, of
stages/layers/hypermixing.py, with its options for sequences; and one shared weight vector.

norm: "layer" after the mixing (listing 2.1), "length": the generated matrices are divided by the
number of keys (B.6; errata: of keys, not queries), "none". placed: hypernetworks see a token's
place, too. Shapes: B batch, A heads, N tokens, H width, F hidden width.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from stages.layers.hypermixing import HyperMixing, HyperNetwork
from stages.tokens.parts.places import sinusoid


class PlacedNetwork(HyperNetwork):
    """A hypernetwork that may see each token's place and divide its rows by the number of keys,
    which `keys` (B 1 1 1) says before a call."""

    keys: Tensor | None = None

    def __init__(self, width: int, hidden: int, heads: int, placed: bool):
        super().__init__(width, hidden, heads)
        self.placed = placed

    def forward(self, tokens: Float[Tensor, "B A N h"]) -> Float[Tensor, "B A N f"]:
        """One row a token."""
        if self.placed:
            heads, count, part = tokens.shape[1:]
            where = sinusoid(count, heads * part).to(tokens)
            tokens = tokens + where.unflatten(1, (heads, part)).transpose(0, 1)
        rows = super().forward(tokens)
        return rows if self.keys is None else rows / self.keys


class HyperMix(nn.Module):
    """W2 gelu(W1^T x) of generated W1, W2: linear in N. Without `placed` it is equivariant to
    permutations; padding sends nothing."""

    padded, causal = True, False

    def __init__(
        self, width: int, hidden: int, heads: int, tied: bool, norm: str, placed: bool
    ) -> None:
        super().__init__()
        self.width, self.hidden, self.heads, self.length = width, hidden, heads, norm == "length"
        self.mixing = HyperMixing(width, hidden, heads, tied)
        self.mixing.into = PlacedNetwork(width, hidden, heads, placed)
        self.mixing.out_of = None if tied else PlacedNetwork(width, hidden, heads, placed)
        if norm != "layer":
            self.mixing.norm = nn.Identity()  # type: ignore[assignment]  # called alike

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """What each token takes from all real ones."""
        return self.read(tokens, real, tokens.shape[1])

    def read(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"], last: int
    ) -> Float[Tensor, "B Q H"]:
        """What the `last` tokens, the queries, take from all real ones, the keys."""
        if self.length:
            keys = real.sum(1).clamp_min(1)[:, None, None, None].to(tokens.dtype)
            for network in (self.mixing.into, self.mixing.out_of):
                if network is not None:
                    network.keys = keys
        return self.mixing(tokens, real, last)

    def flops(self, count: int) -> int:
        """Products of a layer on `count` tokens (thesis B.4.2, without the elementwise part)."""
        part, hidden = self.width // self.heads, self.hidden // self.heads
        networks = 1 if self.mixing.out_of is None else 2
        generate = networks * 2 * count * (part * part + part * hidden)
        return self.heads * (generate + 4 * count * hidden * part)


class WeightVector(nn.Module):
    """W1 and W2 are one learned vector each, copied for every token: all tokens take the same
    (thesis B.3.2). Equivariant to permutations; padding sends nothing."""

    padded, causal = True, False

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.width, self.hidden = width, hidden
        self.into = nn.Parameter(torch.randn(hidden) / hidden**0.5)
        self.out_of = nn.Parameter(torch.randn(hidden) / hidden**0.5)
        self.norm = nn.LayerNorm(width)

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """The same for every token."""
        total = (tokens * real[..., None]).sum(1, keepdim=True)  # B 1 H
        hidden = functional.gelu(self.into[:, None] * total)  # B F H
        taken = (self.out_of[:, None] * hidden).sum(1, keepdim=True)
        return self.norm(taken).expand(-1, tokens.shape[1], -1)

    def flops(self, count: int) -> int:
        """No products of matrices."""
        return 0
