"""Multi-head attention and the post-norm transformer encoder layer (Vaswani et al. 2017; thesis
section 3.3.3), made for narrow heads.

The arithmetic is that of torch's TransformerEncoderLayer(norm_first=False, relu, dropout 0). Two
things make it faster and change no result: on the processor heads have a kernel of their own
(kernels/attention.py), and a layer computes only the tokens that somebody reads (`last`). Elsewhere
heads are padded with zeros to a whole vector register, because torch's fused kernels handle widths
such as 4, 6 or 12 badly.
Shapes: B batch, N tokens (keys), Q queries, H width.
"""

from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from stages.layers.kernels import LANES  # also a head width that CUDA's fused kernels accept
from stages.layers.kernels import attention as fused


def usable(mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "B 1 1 N"] | None:
    """The key mask for the fused kernel; None where all is real, which is faster. A set without one
    real point attends to its padding: its output means nothing and nobody reads it, but it stays
    finite."""
    if mask.all():
        return None
    return (mask | ~mask.any(1, keepdim=True))[:, None, None, :]


def real_of(mask: Bool[Tensor, "B 1 1 N"] | None) -> Bool[Tensor, "B N"] | None:
    """The key mask for `fused`."""
    return None if mask is None else mask[:, 0, 0]


class Attention(nn.Module):
    """softmax(Q K^T / sqrt(width/heads)) V with projections in and out; parameters as in
    nn.MultiheadAttention."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.lanes = -(-self.head // LANES) * LANES - self.head  # zeros that fill up each head
        self.inward = nn.Linear(width, 3 * width)
        self.outward = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.inward.weight)
        nn.init.zeros_(self.inward.bias)
        nn.init.zeros_(self.outward.bias)

    def forward(
        self, tokens: Float[Tensor, "B N H"], mask: Bool[Tensor, "B 1 1 N"] | None, last: int
    ) -> Float[Tensor, "B Q H"]:
        """What the `last` tokens read from all tokens; `mask` (see `usable`) is True where a
        token is real."""
        count = tokens.shape[1]
        if last < count:
            return self.outward(self._cross(tokens[:, count - last :], tokens, mask))
        if fused.takes(tokens, self.head):
            projected = self.inward(tokens).unflatten(2, (3, self.heads, self.head))
            return self.outward(fused.attend(projected, projected, real_of(mask)).flatten(2))
        weight, bias = self._filled()
        query, key, value = self._split(
            functional.linear(tokens, weight.flatten(0, 1), bias.flatten()), 3
        )
        return self.outward(self._mixed(query, key, value, mask))

    def read(
        self,
        queries: Float[Tensor, "B Q H"],
        memory: Float[Tensor, "B N H"],
        real: Bool[Tensor, "B N"],
    ) -> Float[Tensor, "B Q H"]:
        """What queries read from the `real` tokens of a memory; where none is real, what a
        memory of zeros gives (the bias alone)."""
        if not memory.shape[1] or not queries.shape[1]:
            return self.outward(torch.zeros_like(queries))
        mask = usable(real)
        mixed = self._cross(queries, memory, mask)
        return self.outward(
            mixed if mask is None else mixed.masked_fill(~real.any(1)[:, None, None], 0)
        )

    def _cross(self, queries: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """What queries read from a memory, heads side by side: (B, Q, H)."""
        if fused.takes(memory, self.head):
            # the weights are copied: a product with one token rounds by where they lie, in a loaded
            # file anywhere
            width = self.heads * self.head
            query = functional.linear(
                queries, self.inward.weight[:width].clone(), self.inward.bias[:width]
            )
            kept = functional.linear(
                memory, self.inward.weight[width:].clone(), self.inward.bias[width:]
            )
            return fused.attend(  # type: ignore[call-arg]  # a star of two
                *(part.unflatten(2, (-1, self.heads, self.head)) for part in (query, kept)),
                real_of(mask),
            ).flatten(2)
        weight, bias = self._filled()
        (query,) = self._split(functional.linear(queries, weight[0], bias[0]), 1)
        key, value = self._split(
            functional.linear(memory, weight[1:].flatten(0, 1), bias[1:].flatten()), 2
        )
        return self._mixed(query, key, value, mask)

    def _filled(self) -> tuple[Tensor, Tensor]:
        """The inward projection with each head filled up with zeros: weight (3, heads*p, H),
        bias (3, heads*p)."""
        weight = functional.pad(
            self.inward.weight.unflatten(0, (3, self.heads, self.head)), (0, 0, 0, self.lanes)
        ).flatten(1, 2)
        return weight, functional.pad(
            self.inward.bias.unflatten(0, (3, self.heads, self.head)), (0, self.lanes)
        ).flatten(1)

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Values (B, Q, H) weighed by the softmax, heads side by side and without their zeros."""
        with saved_tensors_hooks(partial(self._pack, masked=mask is not None), self._unpack):
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, scale=self.head**-0.5
            )
        return mixed[..., : self.head].transpose(1, 2).flatten(2)

    def _split(self, projected: Tensor, parts: int) -> Tensor:
        """(B, N, parts*heads*p) -> (parts, B, heads, N, p)."""
        return projected.unflatten(2, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def _pack(self, saved: Tensor, masked: bool) -> tuple[Tensor, bool]:
        """Keep what backward needs without the zeros: they would quadruple the memory of heads
        of 4. Queries, keys, values and output have them; a mask over as many tokens as a filled
        head is wide has their shape, but not their zeros."""
        filled = (
            bool(self.lanes)
            and saved.dim() == 4
            and saved.is_floating_point()
            and saved.shape[3] == self.head + self.lanes
        )
        if not filled or (masked and saved[..., self.head :].any()):
            return saved, False
        return saved[..., : self.head].contiguous(), True

    def _unpack(self, packed: tuple[Tensor, bool]) -> Tensor:
        kept, filled = packed
        return functional.pad(kept, (0, self.lanes)) if filled else kept


class EncoderLayer(nn.Module):
    """x <- norm(x + attention(x)); x <- norm(x + W2 relu(W1 x)), the hidden layer 2H wide."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.feed_norm = nn.LayerNorm(width)

    def forward(
        self,
        tokens: Float[Tensor, "B N H"],
        mask: Bool[Tensor, "B 1 1 N"] | None = None,
        last: int | None = None,
    ) -> Float[Tensor, "B Q H"]:
        """New values of the `last` tokens (all when None); every real token is attended to."""
        last = tokens.shape[1] if last is None else last
        kept = tokens[:, tokens.shape[1] - last :]
        kept = self.attention_norm(kept + self.attention(tokens, mask, last))
        return self.feed_norm(kept + self.narrow(torch.relu(self.widen(kept))))
