"""The parts that transformer neural processes share (document N, section 4.2 and chapter 7).

A layer is pre-norm: x <- x + mixing(norm x, norm memory); x <- x + W2 relu(W1 norm x), the hidden
layer as wide as x, as in the authors' public code (reference code H). The same layer serves
the context among itself and the targets that read it: targets never see each other, so that an
answer does not depend on what else is asked. Shapes: B sets, Q queries, N memory, X axes, H width,
I values.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from stages.layers.attention import Attention
from stages.layers.hypermixing import HyperMixing
from stages.layers.linear_attention import LinearAttention
from stages.layers.mlp import mlp
from stages.layers.relative import RelativeAttention


class HyperReading(nn.Module):
    """HyperMixing as a reader: queries generate rows of W2 alone, the memory those of W1."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.mixing = HyperMixing(width, width, heads)

    def read(self, queries: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        """What queries take from the `real` tokens of a memory: (B, Q, H)."""
        asking = torch.zeros_like(queries[:, :, 0], dtype=torch.bool)
        tokens, known = torch.cat((memory, queries), 1), torch.cat((real, asking), 1)
        return self.mixing(tokens, known, queries.shape[1])


MIXINGS = {"attention": Attention, "linear": LinearAttention, "hyper": HyperReading}


class Layer(nn.Module):
    """A layer around a mixing of MIXINGS, or around `relative` attention, which asks for places."""

    def __init__(self, width: int, mixing: nn.Module):
        super().__init__()
        self.mixing = mixing
        self.mixing_norm = nn.LayerNorm(width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = mlp(width, width, width)

    def forward(
        self,
        tokens: Float[Tensor, "B Q H"],
        memory: Float[Tensor, "B N H"],
        real: Bool[Tensor, "B N"],
        places: tuple[Float[Tensor, "B Q X"], Float[Tensor, "B N X"]] | None = None,
    ) -> Float[Tensor, "B Q H"]:
        """New tokens; `places` are those of tokens and memory, where the mixing reads them."""
        asked, kept = self.mixing_norm(tokens), self.mixing_norm(memory)
        if isinstance(self.mixing, RelativeAttention):
            assert places is not None
            read = self.mixing(asked, kept, real, *places)
        else:
            read = self.mixing.read(asked, kept, real)  # type: ignore[operator]  # of MIXINGS
        tokens = tokens + read
        return tokens + self.feed(self.feed_norm(tokens))


def context_features(
    context_y: Float[Tensor, "B N I"], *positions: Float[Tensor, "B N X"]
) -> Float[Tensor, "B N K"]:
    """What is known of a context point: [x, y, 0] (N, section 4.2.1), or [y, 0] without x."""
    return torch.cat((*positions, context_y, torch.zeros_like(context_y[:, :, :1])), 2)


def asked(
    target_x: Float[Tensor, "B T X"], values: int, *positions: Float[Tensor, "B T X"]
) -> Float[Tensor, "B T K"]:
    """What is known of a target: [x, 0, 1], or [0, 1] without x."""
    one = torch.ones_like(target_x[:, :, :1])
    return torch.cat((*positions, torch.zeros_like(one).expand(-1, -1, values), one), 2)
