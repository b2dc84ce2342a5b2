"""The transformer that all models of sequences are (thesis section 4.2.2): tokens at positions,
blocks, logits. sigma-GPT asks it for one position after another (sigma_gpt.py), diffusion for all
at once (diffusion.py); they differ in what a step attends to, and in what is added to it.

A step carries a token, its position and the position asked for. Both positions are encoded in half
the width, set side by side and ADDED to the token's embedding: the thesis writes "concatenated",
its public code does this (errata).
Codes: Vaswani's sinusoids, frequencies 1 to 10^-4 within EACH half (the public code's exponent
covers half of its range there); a learned row a position; learned rows of a grid's coordinates
(ours). Dropout falls on what a branch adds, not on attention's weights, for which fused kernels
would have to write out B H T T numbers.
Styles: "plain" (pre-norm, ReLU, no final norm, biases but in attention; the counts of the public
code: 16,898 for 17K, 4,340,226 for 4M at vocabulary 2), "text" (nanoGPT: GELU, final norm, no
biases, tied head). Shapes: B batch, T length, V vocabulary, W width, H heads, Q steps asked.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from stages.contracts import SequenceModel
from stages.errors import InputError

BASE = 1e4  # ratio of the fastest to the slowest frequency
Mix = Callable[
    [Tensor, int, int], Tensor
]  # (packed heads as tiles.py says, H, columns of a key) -> mixed values (B, Q, W)


class Sinusoids(nn.Module):
    """Sine and cosine of a position from -1 to length-1, at frequencies from 1 down to 1/BASE;
    width columns, no parameter."""

    if TYPE_CHECKING:
        table: Tensor

    def __init__(self, length: int, width: int):
        super().__init__()
        frequency = BASE ** (
            -torch.arange(width // 2, dtype=torch.float64) / max(width // 2 - 1, 1)
        )
        angle = torch.arange(-1, length, dtype=torch.float64)[:, None] * frequency
        self.register_buffer(
            "table", torch.cat((angle.sin(), angle.cos()), 1).float(), persistent=False
        )

    def forward(self, position: Tensor) -> Tensor:
        """(...) -> (..., width)."""
        return functional.embedding(position + 1, self.table)


class Learned(nn.Module):
    """A learned row for every position from -1 to length-1."""

    def __init__(self, length: int, width: int):
        super().__init__()
        self.table = nn.Embedding(length + 1, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, position: Tensor) -> Tensor:
        """(...) -> (..., width)."""
        return self.table(position + 1)


class Grid(nn.Module):
    """The sum of learned rows, one for each coordinate of a position on a grid of `axes` (the last
    runs fastest); a row of its own stands before the first. So what is learned of one place
    serves its line, column and plane: a cell and its copy differ in one row."""

    def __init__(self, length: int, width: int, axes: Any = None):
        super().__init__()
        axes = [length] if axes is None else axes
        whole = isinstance(axes, list | tuple) and all(
            type(axis) is int and axis >= 1 for axis in axes
        )
        if not whole or math.prod(axes) != length:
            raise InputError(
                "the grid does not hold the sequence",
                where="axes",
                found=str(axes),
                remedy="leave axes to the data set",
                expected=f"a list of whole numbers from 1 on whose product is {length}",
            )
        self.table = nn.Embedding(1 + sum(axes), width)
        nn.init.normal_(self.table.weight, std=0.1)
        coordinates = torch.cartesian_prod(*map(torch.arange, axes)).view(length, -1)
        begins = torch.tensor([1 + sum(axes[:index]) for index in range(len(axes))])
        self.register_buffer(
            "rows", functional.pad(coordinates + begins, (0, 0, 1, 0)), persistent=False
        )  # 0 for position -1

    def forward(self, position: Tensor) -> Tensor:
        """(...) -> (..., width)."""
        return functional.embedding(position + 1, self.table(self.rows).sum(1))


POSITIONS = {"sinusoidal": Sinusoids, "learned": Learned, "grid": Grid}
STYLES = ("plain", "text")


class Block(nn.Module):
    """x <- x + attention(norm(x)); x <- x + feed(norm(x)). Heads have `keys` columns for queries
    and keys, width/heads for values, `lanes` is the wider."""

    def __init__(self, width: int, keys: int, hidden: int, heads: int, style: str, dropout: float):
        super().__init__()
        self.heads, self.keys, self.values = heads, keys, width // heads
        self.lanes, bias = max(keys, self.values), style == "plain"
        self.attention_norm, self.feed_norm = (
            nn.LayerNorm(width, bias=bias),
            nn.LayerNorm(width, bias=bias),
        )
        self.inward = nn.Linear(width, heads * (2 * keys + self.values), bias=False)
        self.outward = nn.Linear(width, width, bias=False)
        self.widen, self.narrow = (
            nn.Linear(width, hidden, bias=bias),
            nn.Linear(hidden, width, bias=bias),
        )
        self.activation = functional.relu if style == "plain" else functional.gelu
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mix: Mix) -> Tensor:
        """(B, Q, W) -> (B, Q, W)."""
        x = x + self.dropout(
            self.outward(mix(self.inward(self.attention_norm(x)), self.heads, self.keys))
        )
        return x + self.dropout(self.narrow(self.activation(self.widen(self.feed_norm(x)))))


class Backbone(SequenceModel):
    """positions: "sinusoidal", "learned" or "grid" (of `axes`; none: a line); style: "plain" or
    "text". The table of learned positions and the head of a text model have `length` + 1 rows
    and the embedding's weights."""

    if TYPE_CHECKING:
        blocks: Any

    learns = "gradient"
    words: ClassVar = {"positions": tuple(POSITIONS), "style": STYLES}

    def __init__(
        self,
        vocabulary: int,
        length: int,
        width: int = 32,
        keys: int = 32,
        hidden: int = 32,
        heads: int = 2,
        blocks: int = 2,
        positions: str = "sinusoidal",
        style: str = "plain",
        dropout: float = 0.1,
        axes: Any = None,
    ):
        super().__init__()
        self.vocabulary, self.length, self.text = vocabulary, length, style == "text"
        self.embedding = nn.Embedding(vocabulary, width)
        if axes is not None and positions != "grid":
            raise InputError(
                "axes are of positions on a grid",
                where="axes",
                found=f"positions {positions}",
                expected="positions grid",
            )
        self.positions = (
            Grid(length, width // 2, axes)
            if positions == "grid"
            else POSITIONS[positions](length, width // 2)
        )
        self.blocks = nn.ModuleList(
            Block(width, keys, hidden, heads, style, dropout) for _ in range(blocks)
        )
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width, bias=False) if self.text else nn.Identity()
        self.readout = None if self.text else nn.Linear(width, vocabulary)
        self._initialise()

    def run(
        self,
        seen: Int64[Tensor, "B Q"],
        own: Int64[Tensor, "B Q"],
        target: Int64[Tensor, "B Q"],
        mix: Mix,
        beside: Float[Tensor, "B Q W"] | None = None,
        scale: float = 1.0,
    ) -> Float[Tensor, "B Q V"]:
        """Logits for the positions `target` from steps that carry the token `seen` of the position
        `own` (-1 before the first); `mix` is the attention, as `causal` is; `beside`: what else
        a model adds to its steps; `scale`: what token and positions are multiplied by before."""
        x = self.embedding(seen) + torch.cat((self.positions(own), self.positions(target)), 2)
        x = x if scale == 1 else scale * x
        x = self.dropout(x if beside is None else x + beside)
        for block in self.blocks:
            x = block(x, mix)
        x = self.norm(x)
        return (
            functional.linear(x, self.embedding.weight) if self.readout is None else self.readout(x)
        )

    def _initialise(self) -> None:
        nn.init.normal_(self.embedding.weight, std=0.02)
        for block in self.blocks:
            spread = 0.02 if self.text else block.inward.in_features**-0.5
            for layer in (
                block.inward,
                block.outward,
                *((block.widen, block.narrow) if self.text else ()),
            ):
                nn.init.normal_(layer.weight, std=spread)
            if self.text:
                for layer in (
                    block.outward,
                    block.narrow,
                ):  # sums of 2 branches a block keep their size (GPT-2)
                    nn.init.normal_(layer.weight, std=spread / math.sqrt(2 * len(self.blocks)))
