"""The block of the failure-mode models (thesis section 3.5.1), used again and again with the same
weights.

x <- norm(x + attention(x)), then x <- norm(W x) without a residual: the authors' public models of
figure 3.4 are made of four such passes (the thesis prints neither). W may narrow its input, so that
positions can be put beside the features before each pass.
Shapes: B batch, N tokens, Q queries, K inputs, H width.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from stages.layers.attention import Attention


class TiedBlock(nn.Module):
    """Attention over tokens of `inputs` numbers, then a linear map to `width`."""

    def __init__(self, inputs: int, width: int, heads: int):
        super().__init__()
        self.attention = Attention(inputs, heads)
        self.attention_norm = nn.LayerNorm(inputs)
        self.narrow = nn.Linear(inputs, width)
        self.feed_norm = nn.LayerNorm(width)

    def forward(
        self,
        tokens: Float[Tensor, "B N K"],
        mask: Bool[Tensor, "B 1 1 N"] | None = None,
        last: int | None = None,
    ) -> Float[Tensor, "B Q H"]:
        """New values of the `last` tokens (all when None); every real token is attended to."""
        last = tokens.shape[1] if last is None else last
        return self._fed(tokens[:, tokens.shape[1] - last :], self.attention(tokens, mask, last))

    def read(
        self,
        queries: Float[Tensor, "B Q K"],
        memory: Float[Tensor, "B N K"],
        real: Bool[Tensor, "B N"],
    ) -> Float[Tensor, "B Q H"]:
        """New values of queries that attend to a memory's real tokens."""
        return self._fed(queries, self.attention.read(queries, memory, real))

    def _fed(self, tokens: Tensor, read: Tensor) -> Tensor:
        return self.feed_norm(self.narrow(self.attention_norm(tokens + read)))
