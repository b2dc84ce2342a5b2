"""Joint TNP: points that read a grid around them, then each other (our own, O2; document G for what
a grid and points share, the thesis' section 3.5.1 for attention by distance).

Every point and every target has the grid's value at its place, linear between cells; of a context
point the token knows its value, that of the grid and their difference (the increment, which is what
assimilation carries), of a target that of the grid alone: token = MLP([y, g, y - g, target?, grid
known?, what else the grid tells, time]). Layers: the context among itself, then targets from the
context. A logit is q.k less a learned metric of the difference of places, sum_a (l_a d_a)^2 + m_a
|d_a|, one a head; beside the keys stands one that is nobody's, so that a place far from all reads
nothing. The mean is g plus what is read. Components share all weights and do not know of each
other: none is told apart in the law that this is made for. `reads`: both, the "points" alone, or
the "grid" alone, which needs no attention. Positions enter as differences alone, times also as they
are. Shapes: B sets, C context points, T targets, X axes, I components, G values of a cell, of which
the first I are those of the points, H width, A heads.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.fields.models.linear_interpolation import between
from stages.layers.grid import Grid, GriddedBatch
from stages.layers.heads import FLOOR, Gaussian
from stages.layers.mlp import mlp

FAR = -1e30  # the logit of a key that is not real
WIDEST, NARROWEST = -1.0, 2.0  # logarithms of the heads' scales where learning starts
READS = ("both", "points", "grid")


class MetricAttention(nn.Module):
    """softmax(q.k - metric, 0) V of each component for itself."""

    def __init__(self, x_dim: int, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.outward = nn.Linear(width, width)
        start = torch.linspace(WIDEST, NARROWEST, heads)[:, None].repeat(1, x_dim)
        self.square, self.linear = nn.Parameter(start), nn.Parameter(start - 1)
        self.nobody = nn.Parameter(torch.zeros(heads))

    def forward(
        self,
        queries: Float[Tensor, "B I Q H"],
        memory: Float[Tensor, "B I C H"],
        real: Bool[Tensor, "B C"],
        apart: Float[Tensor, "B Q C X"],
    ) -> Float[Tensor, "B I Q H"]:
        """What queries read of the `real` memory, `apart` from them; the bias where none is."""
        query = self.query(queries).unflatten(3, (self.heads, -1)).transpose(2, 3)
        key, value = (
            self.key_value(memory).unflatten(3, (2, self.heads, -1)).permute(3, 0, 1, 4, 2, 5)
        )
        far = apart.square() @ (2 * self.square).exp().T + apart.abs() @ self.linear.exp().T
        far = far.masked_fill(~real[:, None, :, None], -FAR).permute(0, 3, 1, 2)[:, None]
        logits = query @ key.mT * query.shape[-1] ** -0.5 - far
        nobody = self.nobody[:, None, None].expand(*logits.shape[:-1], 1)
        weights = torch.cat((logits, nobody), 4).softmax(4)[..., :-1]
        return self.outward((weights @ value).transpose(2, 3).flatten(3))


class Layer(nn.Module):
    """Pre-norm, the same for the context among itself and for targets that read it."""

    def __init__(self, x_dim: int, width: int, heads: int):
        super().__init__()
        self.reading = MetricAttention(x_dim, width, heads)
        self.norm, self.memory_norm, self.feed_norm = (nn.LayerNorm(width) for _ in range(3))
        self.feed = mlp(width, 2 * width, width)

    def forward(self, tokens: Tensor, memory: Tensor, real: Tensor, apart: Tensor) -> Tensor:
        """New tokens."""
        read = self.reading(self.norm(tokens), self.memory_norm(memory), real, apart)
        tokens = tokens + read
        return tokens + self.feed(self.feed_norm(tokens))


class JointTNP(FieldModel):
    """x is east, north, up and time (layers/local.py), the grid lies on the axes before time;
    `grid_values` a cell, at least as many as a point has."""

    context, learns, head = "recent", "gradient", "gaussian"
    words = {"reads": READS}
    limits = {"grid_values": 64}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        reads: str = "both",
        grid_values: int = 3,
        width: int = 16,
        heads: int = 4,
        layers: int = 2,
    ):
        super().__init__()
        self.reads, self.i_dim = reads, i_dim
        self.others = max(grid_values - i_dim, 0)
        self.embed = mlp(6 + self.others, width, width)
        several = 0 if reads == "grid" else layers
        self.layers = nn.ModuleList(Layer(x_dim, width, heads) for _ in range(several))
        self.readout = mlp(width, width, 2)

    def around(self, grid: Grid | None, x: Float[Tensor, "B N X"]) -> Float[Tensor, "B N G"]:
        """The grid's values at places, a last one that says whether it is known; 0 where not."""
        if grid is None or self.reads == "points":
            return x.new_zeros(*x.shape[:2], self.i_dim + self.others + 1)
        known = grid.mask.flatten(1).any(1).to(x.dtype)[:, None, None]
        found = between(grid, x[:, :, : len(grid.axes)]) * known
        return torch.cat((found, known.expand(-1, x.shape[1], 1)), 2)

    def tokens(self, x: Tensor, y: Tensor | None, around: Tensor) -> Float[Tensor, "B I N H"]:
        """Of context points with their values, or of targets."""
        grid, rest = around.split([self.i_dim, self.others + 1], 2)
        value = torch.zeros_like(grid) if y is None else y
        increment = torch.zeros_like(grid) if y is None else y - grid
        flag = torch.full_like(x[:, :, :1], float(y is None))
        shared = torch.cat((flag, rest, x[:, :, -1:]), 2)[:, None]
        own = torch.stack((value, grid, increment), 3).transpose(1, 2)
        return self.embed(torch.cat((own, shared.expand(-1, own.shape[1], -1, -1)), 3))

    def forward(self, batch: Batch) -> Gaussian:
        """The law of a measurement at every target, B T O; without a context that of the grid
        alone, without both the same everywhere but for the time."""
        grid = batch.grid if isinstance(batch, GriddedBatch) else None
        real, target_x = batch.context_mask, batch.target_x
        # what stands in the padding is anything
        x = batch.context_x.masked_fill(~real[:, :, None], 0)
        y = batch.context_y.masked_fill(~real[:, :, None], 0)
        near = self.around(grid, target_x)
        context, target = self.tokens(x, y, self.around(grid, x)), self.tokens(target_x, None, near)
        among, across = x[:, :, None] - x[:, None], target_x[:, :, None] - x[:, None]
        for layer in self.layers:
            context = layer(context, context, real, among)
            target = layer(target, context, real, across)
        read, raw = self.readout(target).transpose(1, 2).unbind(3)
        scale = functional.softplus(raw).square().add(FLOOR**2).sqrt()
        return Gaussian(near[:, :, : self.i_dim] + read, scale)
