"""A causal network that draws on a grid, cell by cell, what statements before it ask for (slides,
PicoCLVR).

A token knows the place of the token that is asked for next: its number; where cells are `placed`,
their row and column. A row is a learned vector plus a share of one direction that grows from -1 to
1 over the rows, and so is a column: whether a point stands left of another is then a difference.
Words of a statement stand apart, and attention over a picture's tokens thins them out; so `back`
tokens are read together, and where it is `told`, each cell is given the sum of what was read of the
statements. A `tally` is a running sum: each token adds a learned vector of its word, and two more
times its own row and column, so that a cell knows which colours were drawn, and where. The ground,
which most cells are, adds nothing, or its sum would drown theirs.
Shapes: B batch, N tokens, H width, V words, R rows, C columns, S tokens before the picture.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from stages.layers.kernels import tiles
from stages.tokens.parts.frame import Frame, Layer, Mixer

START = 0.5  # the standard deviation of new tables, as in frame.py
SHARE = 0.3  # of the tokens before it, at the start
PART = 0.5  # of what is read of a statement's token, in the sum


def behind(tokens: Float[Tensor, "B N H"], back: int) -> list[Float[Tensor, "B N H"]]:
    """The tokens `back` - 1 places before each, ..., one place before it, itself; zeros before the
    first."""
    count, padded = tokens.shape[1], functional.pad(tokens, (0, 0, back - 1, 0))
    return [padded[:, place : place + count] for place in range(back)]


class LookBack(nn.Module):
    """Causal self-attention, 8 N H^2 + 2 N^2 H products; before it each of the `back` - 1 tokens
    before a token adds a learned share of its features, one convolution a feature. A token hears of
    itself and of those before it; nothing is padding."""

    def __init__(self, width: int, heads: int, back: int):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        nn.init.xavier_uniform_(self.inward.weight)
        self.shares = nn.ParameterList(SHARE * torch.randn(width) for _ in range(back - 1))

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """What each token reads."""
        before = behind(tokens, len(self.shares) + 1)[:-1]
        for share, one in zip(self.shares, before, strict=True):
            tokens = tokens + share * one
        return self.outward(tiles.attend(self.inward(tokens), self.heads, self.head, causal=True))


@dataclass(frozen=True)
class Grid(Frame):
    """The frame, the rows and columns of the picture that ends a sequence, whether its cells are
    placed by them, how many tokens are read together, whether the sum of the statements is told,
    whether there is a tally, and the word of the ground, which it leaves out."""

    rows: int = 1
    columns: int = 1
    placed: bool = True
    back: int = 1
    told: bool = False
    tally: bool = False
    ground: int = 0

    def network(self, mixer: Mixer) -> nn.Module:
        """The network that says the next token."""
        return Drawing(self, mixer)


class Drawing(nn.Module):
    """The next token at every place of a sequence, from the tokens up to it."""

    down: Tensor  # (R, 1), from -1 to 1
    across: Tensor  # (C, 1)
    own: Tensor  # (3, M, 1): 1, a token's own row and column, 0 of what is no cell

    def __init__(self, frame: Grid, mixer: Mixer):
        super().__init__()
        self.said, width = frame.longest - frame.rows * frame.columns, frame.width
        self.ground, self.placed, self.back, self.told, self.tally = (
            frame.ground, frame.placed, frame.back, frame.told, frame.tally
        )  # fmt: skip
        numbered = self.said if frame.placed else frame.longest
        self.embedding = nn.Embedding(frame.vocabulary, width)
        self.places = nn.Embedding(numbered - 1, width)
        tables = [self.embedding, self.places]
        if self.placed:
            self.rows = nn.Embedding(frame.rows, width)
            self.columns = nn.Embedding(frame.columns, width)
            self.ways = nn.Parameter(START * torch.randn(2, width))
            tables += [self.rows, self.columns]
        for table in tables:
            nn.init.normal_(table.weight, std=START)
        for name, count in (("down", frame.rows), ("across", frame.columns)):
            along = torch.arange(count)[:, None] * (2 / (count - 1)) - 1
            self.register_buffer(name, along, persistent=False)
        if self.tally:
            self.added = nn.Parameter(torch.zeros(3, frame.vocabulary, width))
            cells = torch.cartesian_prod(self.down[:, 0], self.across[:, 0])
            own = functional.pad(cells, (1, 0, self.said, 0))[:-1]
            own[:, 0] = 1
            self.register_buffer("own", own.T[:, :, None].contiguous(), persistent=False)
        if self.told:
            wide = nn.Linear(self.back * width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
            self.read = nn.Sequential(*wide)
        self.layers = nn.ModuleList(Layer(frame, mixer) for _ in range(frame.layers))
        self.norm, self.outward = nn.LayerNorm(width), nn.Linear(width, frame.vocabulary)

    def asked(self) -> Float[Tensor, "M H"]:
        """What is known of the place after each token, M = S - 1 + R C."""
        if not self.placed:
            return self.places.weight
        rows = self.rows.weight + self.down * self.ways[0]
        columns = self.columns.weight + self.across * self.ways[1]
        cells = (rows[:, None] + columns).flatten(0, 1)
        return torch.cat((self.places.weight, cells))

    def forward(
        self, inputs: Int[Tensor, "B N"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the token after each; of tokens within the statements alone not `told`."""
        tokens = self.embedding(inputs) + self.asked()[: inputs.shape[1]]
        if self.told:
            first, rest = tokens[:, : self.said], tokens[:, self.said - 1 :]
            heard = PART * self.read(torch.cat(behind(first, self.back), 2)).sum(1, keepdim=True)
            tokens = torch.cat((tokens[:, : self.said - 1], rest + heard), 1)
        if self.tally:
            parts = self.added[:, inputs] * self.own[:, None, : inputs.shape[1]]
            drawn = parts.sum(0) * (inputs != self.ground)[..., None]
            tokens = tokens + drawn.cumsum(1)
        for layer in self.layers:
            tokens = layer(tokens, real)
        return self.outward(self.norm(tokens))
