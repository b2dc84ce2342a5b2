"""HyperMixing: token mixing by an MLP that the tokens generate (Mai et al. 2023; thesis section
2.3.3 and listing 2.1), linear in N.

HyperMixing(x) = norm( W2 gelu(W1^T x) ), row j of W_i = MLP_i(x_j), one hidden GELU layer of the
token's width, no biases, Xavier with gain sqrt 2. Tied: W2 = W1. With `heads` the features are
split, and each part has hypernetworks of its own. No token's position in an order is added: sets
have none. Rows of W1 that belong to no real token are 0, so padding sends nothing into the hidden
layer.
Shapes: B batch, N tokens, Q queries, H width, F hidden width, A heads.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional


class HyperNetwork(nn.Module):
    """Rows of a mixing matrix: H/A -> H/A (GELU) -> F/A for each head, from each token alone."""

    def __init__(self, width: int, hidden: int, heads: int):
        super().__init__()
        self.inward = nn.Parameter(torch.empty(heads, width // heads, width // heads))
        self.outward = nn.Parameter(torch.empty(heads, width // heads, hidden // heads))
        for weight in (self.inward, self.outward):
            bound = math.sqrt(2) * math.sqrt(6 / (weight.shape[1] + weight.shape[2]))
            nn.init.uniform_(weight, -bound, bound)

    def forward(self, tokens: Float[Tensor, "B A N h"]) -> Float[Tensor, "B A N f"]:
        """One row a token."""
        return functional.gelu(tokens @ self.inward) @ self.outward


class HyperMixing(nn.Module):
    """`hidden` numbers carry what tokens tell each other, for each feature; `width` and `hidden`
    are multiples of `heads`."""

    def __init__(self, width: int, hidden: int, heads: int = 1, tied: bool = True):
        super().__init__()
        self.heads = heads
        self.into = HyperNetwork(width, hidden, heads)  # W1
        self.out_of = None if tied else HyperNetwork(width, hidden, heads)  # W2
        self.norm = nn.LayerNorm(width)

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"], last: int
    ) -> Float[Tensor, "B Q H"]:
        """What the `last` tokens take from all `real` ones; the norm's bias where none is real."""
        # nothing of N x N is made: W1^T x is F x H
        split = tokens.unflatten(2, (self.heads, -1)).transpose(1, 2)
        rows = self.into(split)
        start = tokens.shape[1] - last
        taken = rows[:, :, start:] if self.out_of is None else self.out_of(split[:, :, start:])
        if not real.all():
            absent = ~real[:, None, :, None]
            rows, split = rows.masked_fill(absent, 0), split.masked_fill(absent, 0)
        hidden = functional.gelu(rows.mT @ split)
        return self.norm((taken @ hidden).transpose(1, 2).flatten(2))


class HyperMixerLayer(nn.Module):
    """x <- norm(x + hypermixing(x)); x <- norm(x + W2 relu(W1 x)): the encoder layer with the
    attention exchanged."""

    def __init__(self, width: int, hidden: int, heads: int = 1, tied: bool = True):
        super().__init__()
        self.mixing = HyperMixing(width, hidden, heads, tied)
        self.mixing_norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.feed_norm = nn.LayerNorm(width)

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"], last: int | None = None
    ) -> Float[Tensor, "B Q H"]:
        """New values of the `last` tokens (all when None)."""
        last = tokens.shape[1] if last is None else last
        kept = tokens[:, tokens.shape[1] - last :]
        kept = self.mixing_norm(kept + self.mixing(tokens, real, last))
        return self.feed_norm(kept + self.narrow(torch.relu(self.widen(kept))))
