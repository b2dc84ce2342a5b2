"""Mixers whose weights do not depend on the tokens: MLPMixer, gMLP, FNet, none (thesis 2.3.2,
2.5.2, B.3.2).

Shapes: B batch, N tokens, M the longest sequence, H width, F hidden width.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from stages.errors import InputError


class TokenMLP(nn.Module):
    """MLPMixer's token mixing: W2 gelu(W1^T x + b1) + b2 of learned rows, one a place. Order
    matters; padding behind the tokens sends nothing."""

    padded, causal = True, False

    def __init__(self, width: int, longest: int, hidden: int):
        super().__init__()
        self.width, self.hidden = width, hidden
        self.into = nn.Parameter(torch.empty(longest, hidden))
        self.out_of = nn.Parameter(torch.empty(longest, hidden))
        self.hidden_bias, self.bias = (
            nn.Parameter(torch.zeros(hidden)),
            nn.Parameter(torch.zeros(longest)),
        )
        for weight in (self.into, self.out_of):
            nn.init.xavier_uniform_(weight)

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """What each place takes from all."""
        count, given = tokens.shape[1], tokens * real[..., None]
        hidden = functional.gelu(self.into[:count].T @ given + self.hidden_bias[:, None])
        return self.out_of[:count] @ hidden + self.bias[:count, None]

    def flops(self, count: int) -> int:
        """Products of a layer."""
        return 4 * count * self.hidden * self.width


class SpatialGating(nn.Module):
    """gMLP: V (u * (W norm(v) + b)), u and v halves of gelu(U x); W is M x M (Liu et al. 2021).
    Order matters; padding behind the tokens sends nothing."""

    padded, causal = True, False

    def __init__(self, width: int, longest: int, hidden: int):
        super().__init__()
        self.width, self.hidden = width, hidden
        self.widen, self.narrow = nn.Linear(width, 2 * hidden), nn.Linear(hidden, width)
        self.norm = nn.LayerNorm(hidden)
        self.weight = nn.Parameter(0.01 * torch.randn(longest, longest))
        self.bias = nn.Parameter(torch.ones(longest))

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """What each place takes from all."""
        count = tokens.shape[1]
        kept, gate = functional.gelu(self.widen(tokens)).chunk(2, -1)
        gate = self.weight[:count, :count] @ (self.norm(gate) * real[..., None])
        return self.narrow(kept * (gate + self.bias[:count, None]))

    def flops(self, count: int) -> int:
        """Products of a layer."""
        return 6 * count * self.width * self.hidden + 2 * count**2 * self.hidden


class Fourier(nn.Module):
    """FNet: the real part of the Fourier transform over tokens and features, without parameters
    (Lee-Thorp et al. 2021). A transform has a length, so it refuses padded batches."""

    padded, causal = False, False

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """The transform, of unit norm. InputError where a token is padding."""
        if not real.all():
            raise InputError(
                "FNet's transform cannot leave padding out",
                expected="sequences of one length",
                found=f"{int((~real).sum())} tokens of padding",
                remedy="batch sequences of one length together, or take another mixer",
            )
        return torch.fft.fft2(tokens, norm="ortho").real

    def flops(self, count: int) -> int:
        """No products of matrices."""
        return 0


class Unmixed(nn.Module):
    """The identity: tokens hear nothing of each other (thesis B.3.2, feature mixing only)."""

    padded, causal = True, True

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """The tokens."""
        return tokens

    def flops(self, count: int) -> int:
        """None."""
        return 0
