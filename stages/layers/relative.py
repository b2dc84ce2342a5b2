"""Attention whose logits know where two points lie to each other, translation equivariant (document
N, equations 4.3.3, 5.2.1, 6.2.2, 6.2.3, 6.3.2).

D = q.k / sqrt(width/heads), one a head; Delta = x_query - x_key, or its length where the answer is
to turn with the points, too. Logits: "post" MLP([D, Delta]), which mixes the heads; "pre" D +
MLP(Delta); "rbf" D + w exp(-|Delta|^2 / 2 s^2), w and s learned a head; "identity" D + sum Delta,
as printed. The MLP has two hidden ReLU layers and runs once a pair, which is all the cost.

No memory grows with the number of pairs: beyond PAIRS of them a block at a time is made, with the
softmax's sums kept as it goes (Milakov and Gimelshein 2018), and made again on the way back (as in
Dao et al. 2022). Shapes: B sets, Q queries, N keys, X axes, A heads, h numbers a head, H = A h, P
parameters of the logits.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from stages.layers.kernels import pairs
from stages.layers.mlp import mlp

FORMS = ("post", "pre", "rbf", "identity")
PAIRS = (
    1 << 14
)  # queries x keys of all sets that are held at once: the MLP's hidden numbers fit a cache
FAR = -1e30  # the logit of a key that is not real: finite, so that a set without keys is no NaN


class Relative(nn.Module):
    """The logits of pairs."""

    def __init__(self, x_dim: int, heads: int, hidden: int, form: str, turned: bool):
        super().__init__()
        self.form, self.turned = form, turned
        axes = 1 if turned else x_dim
        if form in ("post", "pre"):
            inputs = axes + heads if form == "post" else axes
            self.network = mlp(inputs, hidden, hidden, heads)
        elif form == "rbf":
            self.weight = nn.Parameter(torch.ones(heads))
            self.log_length = nn.Parameter(torch.zeros(heads))

    def forward(
        self,
        query: Float[Tensor, "B A Q h"],
        key: Float[Tensor, "B A N h"],
        query_x: Float[Tensor, "B Q X"],
        key_x: Float[Tensor, "B N X"],
    ) -> Float[Tensor, "B A Q N"]:
        """One number a head and pair."""
        dots = (query * query.shape[-1] ** -0.5) @ key.mT
        delta = query_x[:, :, None] - key_x[:, None]
        if self.turned:
            delta = _length(delta)
        if self.form == "post":
            return self.network(torch.cat((dots.movedim(1, 3), delta), 3)).movedim(3, 1)
        if self.form == "pre":
            return dots + self.network(delta).movedim(3, 1)
        if self.form == "identity":
            return dots + delta.sum(3)[:, None]
        square = delta.square().sum(3)[:, None]
        scale = (-2 * self.log_length).exp()[:, None, None]
        return dots + self.weight[:, None, None] * torch.exp(-0.5 * square * scale)


def _length(delta: Tensor) -> Tensor:
    """(..., X) -> (..., 1); its slope is 0 where two points are one."""
    square = delta.square().sum(-1, keepdim=True)
    return torch.where(square > 0, square.clamp_min(1e-24).sqrt(), 0.0)


class RelativeAttention(nn.Module):
    """softmax(logits) V with projections in (no biases) and out; `form` of FORMS. `pairs`: how many
    are held at once."""

    pairs: int = PAIRS

    def __init__(
        self, x_dim: int, width: int, heads: int, hidden: int, form: str, turned: bool = False
    ):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.outward = nn.Linear(width, width)
        self.logits = Relative(x_dim, heads, hidden, form, turned)

    def forward(
        self,
        queries: Float[Tensor, "B Q H"],
        memory: Float[Tensor, "B N H"],
        real: Bool[Tensor, "B N"],
        query_x: Float[Tensor, "B Q X"],
        memory_x: Float[Tensor, "B N X"],
    ) -> Float[Tensor, "B Q H"]:
        """What queries read from the `real` tokens of a memory, the bias alone where none is
        real."""
        if not memory.shape[1] or not queries.shape[1]:
            return self.outward(torch.zeros_like(queries))
        asked, packed = self.query(queries), self.key_value(memory)
        memory_x = memory_x.masked_fill(~real[:, :, None], 0)
        if self.logits.form == "post" and self.pairs == PAIRS:
            layers = [layer for layer in self.logits.network if isinstance(layer, nn.Linear)]
            if pairs.takes(asked, query_x, memory_x, layers[0].out_features):
                turned = self.logits.turned
                read = pairs.attend(
                    asked, packed, real, query_x, memory_x, self.heads, turned, layers
                )
                return self.outward(read)
        query = asked.unflatten(2, (self.heads, -1)).transpose(1, 2)
        kept = packed.unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        parts = (query, kept[0], kept[1], query_x, memory_x)
        if len(real) * queries.shape[1] * memory.shape[1] <= self.pairs:
            mixed = _whole(self.logits, real, *parts)
        else:
            sizes = block_sizes(len(real), queries.shape[1], memory.shape[1], self.pairs)
            mixed = _Blocks.apply(self.logits, real, sizes, *parts, *self.logits.parameters())
        mixed = mixed.masked_fill(~real.any(1)[:, None, None, None], 0)
        return self.outward(mixed.transpose(1, 2).flatten(2))


def _whole(
    logits: Callable[..., Tensor],
    real: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *x: Tensor,
) -> Tensor:
    """All pairs at once: (B, A, Q, h)."""
    told = logits(query, key, *x)
    if not real.all():
        told = told.masked_fill(~real[:, None, None], FAR)
    return told.softmax(3) @ value


def block_sizes(sets: int, queries: int, keys: int, most: int) -> tuple[int, int]:
    """Queries and keys of a block: about as many of both, at most `most` pairs in all sets."""
    each = max(1, most // sets)
    keys = min(keys, max(math.isqrt(each), each // queries))
    return max(1, each // keys), keys


def _cuts(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


class _Blocks(torch.autograd.Function):
    """The same, a block of queries and keys at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Relative,
        real: Tensor,
        sizes: tuple[int, int],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        query_x: Tensor,
        key_x: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        out, total = torch.empty_like(query), query.new_empty(query.shape[:3])
        for mine in _cuts(query.shape[2], sizes[0]):
            most = query.new_full((*query.shape[:2], query[:, :, mine].shape[2], 1), FAR)
            mass, mixed = torch.zeros_like(most), torch.zeros_like(query[:, :, mine])
            for theirs in _cuts(key.shape[2], sizes[1]):
                told = logits(query[:, :, mine], key[:, :, theirs], query_x[:, mine],
                              key_x[:, theirs])  # fmt: skip
                told = told.masked_fill(~real[:, None, None, theirs], FAR)
                higher = torch.maximum(most, told.amax(3, keepdim=True))
                weight, shrunk = torch.exp(told - higher), torch.exp(most - higher)
                mass = mass * shrunk + weight.sum(3, keepdim=True)
                mixed = mixed * shrunk + weight @ value[:, :, theirs]
                most = higher
            out[:, :, mine] = mixed / mass
            total[:, :, mine] = (most + mass.log())[..., 0]
        ctx.logits, ctx.sizes = logits, sizes
        ctx.save_for_backward(real, query, key, value, query_x, key_x, out, total)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """d logits = weight (slope.V - slope.out), block by block."""
        real, query, key, value, query_x, key_x, out, total = ctx.saved_tensors
        parameters = list(ctx.logits.parameters())
        found = [torch.zeros_like(one) for one in (query, key, value, query_x, key_x, *parameters)]
        share = (slope * out).sum(3, keepdim=True)
        for mine in _cuts(query.shape[2], ctx.sizes[0]):
            for theirs in _cuts(key.shape[2], ctx.sizes[1]):
                places: list[Any] = [
                    (slice(None), slice(None), mine), (slice(None), slice(None), theirs),
                    (slice(None), mine), (slice(None), theirs),
                ]  # fmt: skip
                inputs = [
                    part[place].detach().requires_grad_()
                    for part, place in zip((query, key, query_x, key_x), places, strict=True)
                ]
                with torch.enable_grad():
                    told = ctx.logits(*inputs)
                masked = told.detach().masked_fill(~real[:, None, None, theirs], FAR)
                weight = torch.exp(masked - total[:, :, mine, None])
                here = slope[:, :, mine]
                found[2][places[1]] += weight.mT @ here
                back = weight * (here @ value[places[1]].mT - share[:, :, mine])
                slopes = torch.autograd.grad(told, [*inputs, *parameters], back, allow_unused=True)
                targets = [found[0], found[1], found[3], found[4], *found[5:]]
                everything: list[Any] = [...] * len(parameters)
                for target, place, one in zip(targets, [*places, *everything], slopes, strict=True):
                    if one is not None:
                        target[place] += one
        return None, None, None, *found
