"""HyperMLP and HyperGLU (Lu and Yang 2026, arXiv 2602.12601): a head of attention read as an MLP of
two layers, whose weights the sequence makes and whose hidden layer is as long as the sequence.

h = x L1 X^T R1, o = act(h) R2 X L2: L1 and L2 mix features through a narrow middle that x gates; R1
and R2 mix places, R = I + diag(p) + D diag(s(x)) U^T of few columns. act is ReLU of h over its
norm; HyperGLU multiplies it by the softplus of a second h. Theirs is causal, its places counted
back from x; here a token reads all, and a place is counted from the row's begin.
Shapes: B batch, A heads, N tokens, M the longest sequence, H width, r columns.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional


class DynamicMLP(nn.Module):
    """`route` features of queries and of keys (shared by both h of `glu`), `read` of values, over
    all heads. Order matters; padding sends nothing. The hidden layer makes it quadratic in N."""

    padded, causal = True, False

    def __init__(
        self, width: int, longest: int, heads: int, route: int, read: int, rank: int, glu: bool
    ) -> None:
        super().__init__()
        self.width, self.heads, self.rank, self.ways = width, heads, rank, 2 if glu else 1
        self.route, self.value = route, read
        mixings = self.ways + 1  # R1 of each h, and R2
        self.sizes = [route, route, route, read, read, mixings * heads * rank]
        self.inward, self.outward = nn.Linear(width, sum(self.sizes)), nn.Linear(read, width)
        self.down, self.up = (
            nn.Parameter(torch.randn(mixings, heads, longest, rank) / longest**0.5)
            for _ in range(2)
        )
        self.own = nn.Parameter(torch.zeros(mixings, heads, 1, longest))

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """What each token reads."""
        parts = self.inward(tokens).split(self.sizes, 2)
        query, key, gate = (self._split(one, self.ways) for one in parts[:3])
        value, passed = (self._split(one, 1)[0] for one in parts[3:5])
        shares = self._split(parts[5], self.ways + 1).sigmoid()
        kept = real[:, None, None].to(tokens.dtype)
        scores = (query * gate.sigmoid()) @ key.mT
        found = [
            self._mixed(way, scores[way] * kept, shares[way]) * kept for way in range(self.ways)
        ]
        hidden = functional.normalize(found[0], dim=-1).relu()
        if self.ways == 2:
            hidden = hidden * functional.softplus(found[1]) * kept
        weights = self._mixed(self.ways, hidden, shares[self.ways]) * kept
        taken = (weights @ value) * passed.sigmoid()
        return self.outward(taken.transpose(1, 2).flatten(2))

    def _split(self, features: Float[Tensor, "B N _"], ways: int) -> Float[Tensor, "W B A N h"]:
        """Features by way and head."""
        return features.unflatten(2, (ways, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def _mixed(
        self, mixing: int, rows: Float[Tensor, "B A Q N"], share: Float[Tensor, "B A Q r"]
    ) -> Float[Tensor, "B A Q N"]:
        """Rows times R, of which no N x N matrix is made."""
        count = rows.shape[3]
        low = (rows @ self.down[mixing, :, :count]) * share
        return rows * (1 + self.own[mixing, ..., :count]) + low @ self.up[mixing, :, :count].mT

    def flops(self, count: int) -> int:
        """Products of a layer."""
        around = 2 * count * self.width * (sum(self.sizes) + self.value)
        mixed = 4 * count**2 * self.heads * self.rank * (self.ways + 1)
        return around + mixed + 2 * count**2 * (self.route + self.value)
