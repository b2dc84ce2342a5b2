"""Transformer neural processes on and off the grid (document G, chapter 3): points and a grid are
known, other points asked.

Tokens are MLP([place, value of a point, value of a cell, asked?, on the grid?]); a cell whose value
is unknown has a learned token and its place. `encoder` puts the points into the cells: "mhca" by a
query of each cell, "setconv" by a Gaussian of learned length; "none" keeps all tokens in one set,
which is the plain TNP that G compares with. `order` "after" grids values first and embeds then.
Cells attend to each other, all (`window` 1) or in shifted windows; targets read all cells or the
`nearest` along each axis (`reading`). `coarsen` by `patch`: "before" the points are added, "after",
or by the "encoder", which sees the fine cells as points. `reads`: both, only "off" the grid (the
cells stay, unknown), only "on" it. `index` "as_published" has the public code's error (errata.md,
A.003). A batch without a grid has one of `cells` cells along each axis from -reach to reach.
Departures: one query for all cells, which their places tell apart, not a free one a cell, so that
a model takes any grid; a window of neighbours that would leave the grid is moved inside.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers import grid as on
from stages.layers import likelihoods
from stages.layers.attention import Attention
from stages.layers.grid import INDICES, Grid, GriddedBatch
from stages.layers.gridding import CellAttention, Feed, NearestAttention, SphereConv, Windows
from stages.layers.heads import Predictive
from stages.layers.mlp import mlp
from stages.layers.set_conv import SetConv

ENCODERS = ("none", "setconv", "mhca")
DEGREES = 10.0


class Mixing(nn.Module):
    """A layer: cells among each other, then targets from cells."""

    def __init__(self, width: int, heads: int, window: int, nearest: int):
        super().__init__()
        self.norm, self.memory_norm, self.target_norm = (nn.LayerNorm(width) for _ in range(3))
        self.among = Windows(width, heads, window) if window else Attention(width, heads)
        self.reading = NearestAttention(width, heads) if nearest else Attention(width, heads)
        self.feed, self.target_feed = Feed(width), Feed(width)

    def forward(
        self, tokens: Tensor, target: Tensor, order: list[Tensor], near: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """New tokens of cells and targets; `order` windows, `near` the targets' cells."""
        if isinstance(self.among, Windows):
            for one in order:
                tokens = tokens + self.among(self.norm(tokens), one)
        else:
            tokens = tokens + self.among(self.norm(tokens), None, tokens.shape[1])
        tokens = self.feed(tokens)
        asked, kept = self.target_norm(target), self.memory_norm(tokens)
        if isinstance(self.reading, NearestAttention):
            assert near is not None
            read = self.reading(asked, kept, near)
        else:
            real = torch.ones_like(kept[:, :, 0], dtype=torch.bool)
            read = self.reading.read(asked, kept, real)
        return tokens, self.target_feed(target + read)


class Plain(nn.Module):
    """A layer without cells: all tokens among each other, targets from all."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm, self.memory_norm, self.target_norm = (nn.LayerNorm(width) for _ in range(3))
        self.among, self.reading = Attention(width, heads), Attention(width, heads)
        self.feed, self.target_feed = Feed(width), Feed(width)

    def forward(self, tokens: Tensor, target: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """New tokens of what is known and of targets."""
        asked = self.norm(tokens)
        tokens = self.feed(tokens + self.among.read(asked, asked, real))
        read = self.reading.read(self.target_norm(target), self.memory_norm(tokens), real)
        return tokens, self.target_feed(target + read)


class GridTNP(FieldModel):
    """On and off the grid; `grid_values` of a cell. SetConv begins 2 cells wide where a unit has
    `per_unit`, DEGREES wide on a "sphere", whose places are latitude and longitude in degrees."""

    context, learns, outputs = "slice", "gradient", "any"
    limits = {
        "window": 1024, "nearest": 64, "patch": 64, "cells": 256, "grid_values": 64,
        "per_unit": 4096, "reach": 10_000,
    }  # fmt: skip
    words = {
        "encoder": ENCODERS, "order": ("before", "after"), "reads": ("both", "off", "on"),
        "reading": ("nearest", "all"), "coarsen": ("none", "before", "after", "encoder"),
        "index": INDICES, "surface": ("plane", "sphere"), "head": tuple(likelihoods.HEADS),
    }  # fmt: skip

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """What G combines is whole."""
        found = super().misfits(whole)
        if whole["order"] == "after" and whole["encoder"] != "setconv":
            found.append("order after: only SetConv grids values before they are embedded")
        if whole["encoder"] == "none" and whole["coarsen"] != "none":
            found.append("coarsen: without an encoder there are no cells")
        if (whole["coarsen"] == "none") != (whole["patch"] == 1):
            found.append("patch: 1 where nothing is coarsened, above 1 where it is")
        if whole["order"] == "after" and whole["coarsen"] in ("after", "encoder"):
            found.append("coarsen: values that are gridded first are coarsened before")
        return found

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "mhca",
        order: str = "before",
        reads: str = "both",
        window: int = 1,
        nearest: int = 3,
        reading: str = "nearest",
        coarsen: str = "none",
        patch: int = 1,
        index: str = "row_major",
        surface: str = "plane",
        grid_values: int = 1,
        per_unit: int = 8,
        reach: int = 4,
        cells: int = 4,
        head: str = "gaussian",
        width: int = 32,
        heads: int = 4,
        layers: int = 2,
    ):
        super().__init__()
        self.head, self.law, self.i_dim = head, likelihoods.HEADS[head], i_dim
        self.grid_values, self.reads, self.kind, self.index = grid_values, reads, encoder, index
        sphere = surface == "sphere"
        self.coarsen, self.patch, self.sphere, self.late = coarsen, patch, sphere, order == "after"
        self.reach, self.cells, self.width = reach, cells, width
        self.nearest = nearest if reading == "nearest" else 0
        axes = 3 if sphere else x_dim
        self.embed = mlp(axes + i_dim + grid_values + 2, width, width, width)
        if reads != "off" or encoder != "none":
            self.unknown = nn.Parameter(0.1 * torch.randn(width))
        if encoder == "mhca":
            self.query = nn.Parameter(torch.randn(width))
            self.gather_norm = nn.LayerNorm(width)
            self.gather = CellAttention(width, heads)
        elif encoder == "setconv":
            self.conv: nn.Module = SphereConv(DEGREES) if sphere else SetConv(x_dim, 2 / per_unit)
            values = i_dim if self.late else width
            extra = grid_values + axes + 1 if self.late else 0
            self.gridded = mlp(1 + values + extra, width, width)
        if coarsen in ("before", "after"):
            self.merge = nn.Linear(width * patch**x_dim, width)
        if encoder == "none":
            self.layers = nn.ModuleList(Plain(width, heads) for _ in range(layers))
        else:
            window = window if window > 1 else 0
            self.layers = nn.ModuleList(
                Mixing(width, heads, window, self.nearest) for _ in range(layers)
            )
        self.readout = mlp(width, width, width, o_dim * self.law.numbers)

    def placed(self, x: Float[Tensor, "... X"]) -> Float[Tensor, "... Y"]:
        """What of a place is embedded: on the sphere the unit vector, which no date line cuts."""
        if not self.sphere:
            return x
        north, east = torch.deg2rad(x).unbind(-1)
        flat = north.cos()
        return torch.stack((flat * east.cos(), flat * east.sin(), north.sin()), -1)

    def token(self, x: Tensor, off: Tensor | None, on_grid: Tensor | None, flag: float) -> Tensor:
        """MLP([place, value, value of a cell, asked?, on the grid?])."""
        shape = x.shape[:-1]
        off = x.new_zeros(*shape, self.i_dim) if off is None else off
        flags = x.new_tensor([flag, float(on_grid is not None)]).expand(*shape, 2)
        cell = x.new_zeros(*shape, self.grid_values) if on_grid is None else on_grid
        return self.embed(torch.cat((self.placed(x), off, cell, flags), -1))

    def grid_of(self, batch: Batch) -> Grid:
        """The batch's grid, unknown where it is not read; else one of our own."""
        grid = batch.grid if isinstance(batch, GriddedBatch) else None
        sets = len(batch.context_x)
        if grid is None:
            low, high = (-90.0, 90.0) if self.sphere else (-self.reach, self.reach)
            line = torch.linspace(low, high, self.cells * self.patch, device=batch.context_x.device)
            axes = (line,) * batch.context_x.shape[2]
            if self.sphere:
                axes = (line, torch.arange(-180.0, 180.0, 180 / len(line), device=line.device))
            mask = torch.zeros(sets, *map(len, axes), dtype=torch.bool, device=line.device)
            values = torch.zeros(*mask.shape, self.grid_values, device=line.device)
            return Grid(axes, values, mask, self.sphere)
        if self.reads == "off":
            return Grid(grid.axes, grid.values, torch.zeros_like(grid.mask), grid.sphere)
        return grid

    def cell_tokens(self, grid: Grid) -> Float[Tensor, "B M H"]:
        """Of every cell, its value or that it is unknown, and its place."""
        places = grid.places().expand(len(grid.values), -1, -1)
        known, values = grid.mask.flatten(1)[:, :, None], grid.values.flatten(1, -2)
        told = self.token(places, None, values.masked_fill(~known, 0), 0.0)
        return torch.where(known, told, told + self.unknown)

    def encoded(self, batch: Batch, grid: Grid) -> tuple[Tensor, Grid]:
        """Tokens of the cells that the layers see, and the grid that they lie on."""
        real = batch.context_mask & (self.reads != "on")
        x, own = batch.context_x.masked_fill(~real[:, :, None], 0), self.cell_tokens(grid)
        if self.coarsen == "before":
            own, grid = self.merge(on.patches(own, grid.shape, self.patch)), grid.coarse(self.patch)
        points = self.token(x, batch.context_y, None, 0.0)
        if self.coarsen == "encoder":
            fine, coarse = grid.places(), grid.coarse(self.patch)
            x = torch.cat((x, fine.expand(len(x), -1, -1)), 1)
            real = torch.cat((real, torch.ones_like(own[:, :, 0], dtype=torch.bool)), 1)
            points, grid = torch.cat((points, own), 1), coarse
            own = self.cell_tokens(coarse)
        if self.kind == "mhca":
            normal = self.gather_norm(own)
            cell = on.nearest(grid, x, self.index)
            heard = self.gather(normal + self.query, normal, self.gather_norm(points), real, cell)
            tokens = own + heard
        else:
            told = batch.context_y if self.late else points
            smooth = self.smoothed(x, told, real, grid)
            if self.late:
                known = grid.mask.flatten(1)[:, :, None]
                raw = grid.values.flatten(1, -2).masked_fill(~known, 0)
                places = self.placed(grid.places()).expand(len(x), -1, -1)
                tokens = self.gridded(torch.cat((smooth, raw, known.float(), places), 2))
                tokens = torch.where(known, tokens, tokens + self.unknown)
            else:
                tokens = own + self.gridded(smooth)
        if self.coarsen == "after":
            tokens = self.merge(on.patches(tokens, grid.shape, self.patch))
            grid = grid.coarse(self.patch)
        return tokens, grid

    def smoothed(self, x: Tensor, told: Tensor, real: Tensor, grid: Grid) -> Tensor:
        """SetConv's density and values in every cell (B, M, F)."""
        if isinstance(self.conv, SphereConv):
            return self.conv.onto_grid(x, told, real, grid).flatten(2).mT
        axes = [axis.expand(len(x), -1) for axis in grid.axes]
        return self.conv.onto_grid(x, told, real, axes).flatten(2).mT  # type: ignore[operator]

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O."""
        target = self.token(batch.target_x, None, None, 1.0)
        if self.kind == "none":
            tokens = self.token(batch.context_x, batch.context_y, None, 0.0)
            real = batch.context_mask & (self.reads != "on")
            if self.reads != "off":
                own = self.cell_tokens(self.grid_of(batch))
                tokens = torch.cat((own, tokens), 1)
                real = torch.cat((torch.ones_like(own[:, :, 0], dtype=torch.bool), real), 1)
            for layer in self.layers:
                tokens, target = layer(tokens, target, real)
            return self.law.predict(self.readout(target).float())
        tokens, grid = self.encoded(batch, self.grid_of(batch))
        first = self.layers[0].among
        order = first.order(grid) if isinstance(first, Windows) else []
        near = None
        if self.nearest:
            near = on.neighbours(grid, batch.target_x, self.nearest, self.index)
        for layer in self.layers:
            tokens, target = layer(tokens, target, order, near)
        return self.law.predict(self.readout(target).float())
