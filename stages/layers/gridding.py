"""From points to the cells of a grid and back: grid encoders, windowed attention, and reading the
nearest cells (document G, sections 3.3 and 3.4).

MHCA: every cell asks, by its own query, what lies in it: its own token and the points nearest to
it. G pads each cell to the most points that one has; here the softmax is taken over sums by cell,
so nothing is padded or capped. Of many points CHUNK at a time are embedded, heard and, where a
gradient is wanted, embedded again for it, so that memory grows with the cells alone. SetConv on the
plane is set_conv.py's; on the sphere a point reaches the SUPPORT x SUPPORT cells around it, by a
Gaussian of the great-circle angle (near a pole, where columns are close, that cuts it off).
Shapes: B sets, M cells, N points, T targets, K neighbours, A heads, h numbers a head, H = A h, W
windows, J cells a window.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from stages.layers import grid as cells
from stages.layers.attention import Attention, usable
from stages.layers.grid import Grid
from stages.layers.mlp import mlp
from stages.layers.set_conv import LEAST

FAR = -1e30  # the logit of a point that is not real: finite, so that nothing is NaN
SUPPORT = 5
CHUNK = 4096  # tokens that are embedded at once where there are more
LARGE = 1 << 20  # numbers that are read from cells, above which they are read again for a gradient


def rows(table: Float[Tensor, "B M *H"], index: Int[Tensor, "B ..."]) -> Tensor:
    """The rows of each set's table that its index (B, ...) names: (B, ..., *H)."""
    sets = torch.arange(len(table), device=table.device)
    return table[sets.view(-1, *(1,) * (index.dim() - 1)), index]


class CellAttention(nn.Module):
    """Cross-attention of each cell to its own token and the points in it."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.outward = nn.Linear(width, width)

    def forward(
        self,
        asking: Float[Tensor, "B M H"],
        own: Float[Tensor, "B M H"],
        points: Float[Tensor, "B N H"],
        real: Bool[Tensor, "B N"],
        cell: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B M H"]:
        """What every cell hears; `cell` says where each point belongs."""
        query = self.query(asking).unflatten(2, (self.heads, -1))
        query = query * query.shape[-1] ** -0.5
        own_key, own_value = self.key_value(own).unflatten(2, (2, self.heads, -1)).unbind(2)
        key, value = self.key_value(points).unflatten(2, (2, self.heads, -1)).unbind(2)
        self_logit = (query * own_key).sum(3)
        logit = (rows(query, cell) * key).sum(3).masked_fill(~real[:, :, None], FAR)
        index = cell[:, :, None].expand_as(logit)
        with torch.no_grad():
            most = self_logit.scatter_reduce(1, index, logit, "amax")
        own_weight = (self_logit - most).exp()
        weight = (logit - rows(most, cell)).exp() * real[:, :, None]
        mass = own_weight.scatter_add(1, index, weight)
        heard = (weight[..., None] * value).flatten(2)
        mixed = (own_weight[..., None] * own_value).flatten(2)
        mixed = mixed.scatter_add(1, cell[:, :, None].expand_as(heard), heard)
        return self.outward((mixed.unflatten(2, (self.heads, -1)) / mass[..., None]).flatten(2))

    def streamed(
        self,
        asking: Float[Tensor, "B M H"],
        own: Float[Tensor, "B M H"],
        raw: Float[Tensor, "B N R"],
        embed: Callable[[Tensor], Tensor],
        real: Bool[Tensor, "B N"],
        cell: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B M H"]:
        """The same of points that `embed` makes of rows (B, n, R), chunk by chunk: the softmax's
        largest logit, its sum and the mixed values of every cell are carried along."""
        query = self.query(asking).unflatten(2, (self.heads, -1))
        query = query * query.shape[-1] ** -0.5
        own_key, own_value = self.key_value(own).unflatten(2, (2, self.heads, -1)).unbind(2)
        logit = (query * own_key).sum(3)
        most = logit.detach()
        mass = (logit - most).exp()
        mixed = mass[..., None] * own_value

        def heard(rows_of: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
            return self._heard(embed(rows_of), *state)

        for start in range(0, raw.shape[1], CHUNK):
            part = slice(start, start + CHUNK)
            mass, mixed, most = checkpoint(
                heard, raw[:, part], query, mass, mixed, most, real[:, part], cell[:, part],
                use_reentrant=False, preserve_rng_state=False,
            )  # fmt: skip
        return self.outward((mixed / mass[..., None]).flatten(2))

    def _heard(
        self,
        points: Tensor,
        query: Tensor,
        mass: Tensor,
        mixed: Tensor,
        most: Tensor,
        real: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Sums (B, M, A), mixed values (B, M, A, h) and largest logits with these points, too."""
        key, value = self.key_value(points).unflatten(2, (2, self.heads, -1)).unbind(2)
        logit = (rows(query, cell) * key).sum(3).masked_fill(~real[:, :, None], FAR)
        index = cell[:, :, None].expand_as(logit)
        with torch.no_grad():
            more = most.scatter_reduce(1, index, logit, "amax")
            scale = (most - more).exp()
        weight = (logit - rows(more, cell)).exp() * real[:, :, None]
        mass = (mass * scale).scatter_add(1, index, weight)
        heard = (weight[..., None] * value).flatten(2)
        whole = (mixed * scale[..., None]).flatten(2)
        whole = whole.scatter_add(1, cell[:, :, None].expand_as(heard), heard)
        return mass, whole.unflatten(2, (self.heads, -1)), more


class SphereConv(nn.Module):
    """SetConv by the great-circle angle; the length begins at `length`, in degrees."""

    def __init__(self, length: float):
        super().__init__()
        self.raw_length = nn.Parameter(torch.tensor([math.log(math.expm1(length))]))

    def onto_grid(
        self,
        x: Float[Tensor, "B N X"],
        y: Float[Tensor, "B N H"],
        real: Bool[Tensor, "B N"],
        grid: Grid,
    ) -> Float[Tensor, "B F *cells"]:
        """Density and values in every cell, as SetConv gives them."""
        index = cells.neighbours(grid, x, SUPPORT)
        gap = torch.rad2deg(cells.angle(x[:, :, None], grid.places()[index]))
        length = functional.softplus(self.raw_length) + LEAST
        weight = torch.exp(-0.5 * (gap / length).square()) * real[:, :, None]
        told = torch.cat((torch.ones_like(y[:, :, :1]), y), 2)
        total = told.new_zeros(len(x), math.prod(grid.shape), told.shape[2])
        for place in range(index.shape[2]):  # one neighbour at a time: no points x K x H tensor
            where = index[:, :, place, None].expand_as(told)
            total = total.scatter_add(1, where, weight[:, :, place, None] * told)
        density = total[:, :, :1]
        found = torch.cat((density, total[:, :, 1:] / (density + LEAST)), 2)
        return found.mT.unflatten(2, grid.shape)


class Windows(nn.Module):
    """Attention within windows, then, by the same weights, within windows shifted by half of one
    (G, section 3.4.1; Liu et al. 2021). With `slots` a cell also knows where in its window it lies,
    window^X places; a grid with fewer cells than a window along an axis has none of that."""

    def __init__(self, width: int, heads: int, window: int, slots: int = 0):
        super().__init__()
        self.window = window
        self.attention = Attention(width, heads)
        self.slots = nn.Parameter(0.1 * torch.randn(slots, width)) if slots else None

    def order(self, grid: Grid) -> list[Tensor]:
        """The windows of a grid, plain and shifted: found once a batch."""
        told = grid.shape, grid.periodic, self.window
        return [
            cells.windows(*told, shift).to(grid.values.device) for shift in (0, self.window // 2)
        ]

    def forward(
        self, tokens: Float[Tensor, "B M H"], order: Int[Tensor, "W J"]
    ) -> Float[Tensor, "B M H"]:
        """What each cell reads from its window."""
        inside = order >= 0
        parts = tokens[:, order.clamp_min(0)]
        if self.slots is not None and len(self.slots) == order.shape[1]:
            parts = parts + self.slots
        parts = parts.flatten(0, 1)
        mask = None if inside.all() else usable(inside.repeat(len(tokens), 1))
        read = self.attention(parts, mask, parts.shape[1]).unflatten(0, (len(tokens), -1))
        back = torch.empty_like(order[inside])
        back[order[inside]] = torch.nonzero(inside.flatten())[:, 0]
        return read.flatten(1, 2)[:, back]


class NearestAttention(nn.Module):
    """Cross-attention of every target to K cells (G, section 3.4.2); with `slots` = K the cells
    are told apart by their place among them."""

    def __init__(self, width: int, heads: int, slots: int = 0):
        super().__init__()
        self.heads = heads
        self.slots = nn.Parameter(torch.randn(slots, width)) if slots else None
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.outward = nn.Linear(width, width)

    def forward(
        self,
        targets: Float[Tensor, "B T H"],
        memory: Float[Tensor, "B M H"],
        near: Int[Tensor, "B T K"],
    ) -> Float[Tensor, "B T H"]:
        """What targets read from their cells."""
        query = self.query(targets).unflatten(2, (self.heads, -1))
        kept = self.key_value(memory)  # of each cell once, then those of every target's
        if near.numel() * kept.shape[2] < LARGE:
            return self.outward(self._mixed(query, kept, near))
        mixed = checkpoint(
            self._mixed, query, kept, near, use_reentrant=False, preserve_rng_state=False
        )
        return self.outward(mixed)

    def _mixed(self, query: Tensor, kept: Tensor, near: Tensor) -> Tensor:
        """Values of the cells (B, T, H) weighed by the softmax, heads side by side. Products of few
        numbers each: as sums they take a third of the time of as many small matrices."""
        kept = rows(kept, near)
        if self.slots is not None and len(self.slots) == near.shape[2]:
            kept = kept + self.key_value(self.slots)
        key, value = kept.unflatten(3, (2, self.heads, -1)).unbind(3)
        logit = ((query * query.shape[-1] ** -0.5)[:, :, None] * key).sum(4)
        return (logit.softmax(2)[..., None] * value).sum(2).flatten(2)


class Feed(nn.Module):
    """x <- x + MLP(norm x), the hidden layer as wide as x."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.network = mlp(width, width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """New tokens."""
        return tokens + self.network(self.norm(tokens))
