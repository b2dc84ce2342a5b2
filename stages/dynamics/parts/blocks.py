"""Blocks of decoder-only transformers: norms before or after, residuals that are gates (document R,
equations 14 to 17). Shapes: B batch, T times, H width."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from stages.dynamics.parts.attention import Attention
from stages.dynamics.parts.gates import Residual

WIDER = 4  # times the width, inside a block's perceptron


class Branch(nn.Module):
    """A residual branch: x <- G(f(LN x), x) (pre) or x <- LN G(f(x), x) (post)."""

    def __init__(self, width: int, order: str, gate: str):
        super().__init__()
        self.norm, self.residual = nn.LayerNorm(width), Residual(gate, width)
        self.pre = order == "pre"

    def seen(self, tokens: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
        """What `update` is given of tokens."""
        return self.norm(tokens) if self.pre else tokens

    def forward(
        self, tokens: Float[Tensor, "B T H"], update: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "B T H"]:
        """The tokens after the branch."""
        if self.pre:
            return self.residual(update(self.norm(tokens)), tokens)
        return self.norm(self.residual(update(tokens), tokens))


class Perceptron(nn.Sequential):
    """Two layers, ReLU between them (R, equation 17)."""

    def __init__(self, width: int, dropout: float):
        super().__init__(
            nn.Linear(width, WIDER * width),
            nn.ReLU(inplace=True),
            nn.Linear(WIDER * width, width),
            nn.Dropout(dropout),
        )


class Block(nn.Module):
    """Causal self-attention and a perceptron, each a branch."""

    def __init__(
        self, width: int, heads: int, span: int, order: str, gate: str, bias: str, dropout: float
    ):
        super().__init__()
        self.attention = Attention(width, width, heads, span, bias, dropout)
        self.perceptron = Perceptron(width, dropout)
        self.reading, self.thinking = (Branch(width, order, gate) for _ in range(2))

    def forward(self, tokens: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
        """The tokens one block on."""
        tokens = self.reading(tokens, lambda x: self.attention(x, x))
        return self.thinking(tokens, self.perceptron)

    def newest(self, tokens: Float[Tensor, "B T H"]) -> Float[Tensor, "B 1 H"]:
        """The last of them one block on: what nothing after the block asks of the others is not
        worked out."""
        keys = self.reading.seen(tokens)
        newest = self.reading(tokens[:, -1:], lambda x: self.attention(x, keys))
        return self.thinking(newest, self.perceptron)
