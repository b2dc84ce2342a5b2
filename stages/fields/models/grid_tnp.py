"""Transformer neural processes on and off the grid (document G, chapter 3): points and a grid are
known, other points asked.

Tokens are MLP([place, value of a point, value of a cell, asked?, on the grid?]); a cell whose value
is unknown has a learned token and its place. `encoder` puts the points into the cells: "mhca" by a
query of each cell, "setconv" by a Gaussian of learned length; "none" keeps all tokens in one set,
which is the plain TNP that G compares with. `order` "after" grids values first and embeds then.
Cells attend to each other, all (`window` 1) or in shifted windows; targets read all cells or the
`nearest` along each axis (`reading`). `coarsen` by `patch`: "before" the points are added, "after",
or by the "encoder", which sees the fine cells as points. `reads`: both, only "off" the grid (the
cells stay, unknown), only "on" it. `index` "as_published" has the public code's error
(layers/grid.py, flat). A batch without a grid has one of `cells` cells along each axis from -reach
to reach. `latents` of "none": that many learned tokens read all others and each other, targets read
them alone (LBANP, Feng et al. 2023; section 4.2.6). `places` of a sphere: unit vectors, or
`harmonics` of `degrees` through a SIREN (section 3.1.2). `equivariance` "exact": no token has its
place; points know where they lie in their cell, targets where among their cells, and what is read
is told apart by its slot; so nothing changes when grid and points are moved together.
"approximate": beside that a learned function of the place, which is 0 at first (Ashman et al.
2024).
Departures: one query for all cells, which their places tell apart, not a free one a cell, so that
a model takes any grid; a window of neighbours that would leave the grid is moved inside. SetConv's
`pooling` "sum" is equation 3.4: the sum of the points' tokens, weighed, is added to the cell's.
"mean" divides it by the density and keeps that as a channel, and an MLP reads both.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers import grid as on
from stages.layers import gridding, likelihoods
from stages.layers.attention import Attention
from stages.layers.grid import INDICES, Grid, GriddedBatch
from stages.layers.gridding import CellAttention, Feed, NearestAttention, SphereConv, Windows
from stages.layers.harmonics import HarmonicPlaces
from stages.layers.heads import Predictive
from stages.layers.mlp import mlp
from stages.layers.set_conv import LEAST, SetConv

ENCODERS = ("none", "setconv", "mhca")
EQUIVARIANCE = ("none", "exact", "approximate")
DEGREES = 10.0


class Mixing(nn.Module):
    """A layer: cells among each other, then targets from cells."""

    def __init__(
        self, width: int, heads: int, window: int, nearest: int, slots: tuple[int, int] = (0, 0)
    ):
        super().__init__()
        self.norm, self.memory_norm, self.target_norm = (nn.LayerNorm(width) for _ in range(3))
        self.among = Windows(width, heads, window, slots[0]) if window else Attention(width, heads)
        self.reading = (
            NearestAttention(width, heads, slots[1]) if nearest else Attention(width, heads)
        )
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


class Latent(nn.Module):
    """A layer of few tokens: they read all others, then each other; targets read them."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm, self.memory_norm, self.target_norm = (nn.LayerNorm(width) for _ in range(3))
        self.own_norm, self.kept_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.gather, self.among, self.reading = (Attention(width, heads) for _ in range(3))
        self.feed, self.target_feed = Feed(width), Feed(width)

    def forward(
        self, latents: Tensor, target: Tensor, tokens: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        """New latents and targets."""
        heard = self.gather.read(self.norm(latents), self.memory_norm(tokens), real)
        latents = latents + heard
        among = self.among(self.own_norm(latents), None, latents.shape[1])
        latents = self.feed(latents + among)
        every = torch.ones_like(latents[:, :, 0], dtype=torch.bool)
        read = self.reading.read(self.target_norm(target), self.kept_norm(latents), every)
        return latents, self.target_feed(target + read)


class GridTNP(FieldModel):
    """On and off the grid; `grid_values` of a cell. SetConv begins 2 cells wide where a unit has
    `per_unit`, DEGREES wide on a "sphere", whose places are latitude and longitude in degrees."""

    context, learns, outputs = "slice", "gradient", "any"
    limits = {
        "window": 1024, "nearest": 64, "patch": 64, "cells": 256, "grid_values": 64,
        "per_unit": 4096, "reach": 10_000, "latents": 65536, "degrees": 64,
    }  # fmt: skip
    words = {
        "encoder": ENCODERS, "order": ("before", "after"), "reads": ("both", "off", "on"),
        "reading": ("nearest", "all"), "coarsen": ("none", "before", "after", "encoder"),
        "index": INDICES, "surface": ("plane", "sphere"), "head": tuple(likelihoods.HEADS),
        "places": ("plain", "harmonics"), "equivariance": EQUIVARIANCE,
        "pooling": ("mean", "sum"),
    }  # fmt: skip

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """What G combines is whole."""
        found = super().misfits(whole)
        if whole["order"] == "after" and whole["encoder"] != "setconv":
            found.append("order after: only SetConv grids values before they are embedded")
        embedded = whole["encoder"] == "setconv" and whole["order"] == "before"
        if whole["pooling"] == "sum" and not embedded:
            found.append("pooling sum: only of SetConv, of embedded points")
        if whole["encoder"] == "none" and whole["coarsen"] != "none":
            found.append("coarsen: without an encoder there are no cells")
        if (whole["coarsen"] == "none") != (whole["patch"] == 1):
            found.append("patch: 1 where nothing is coarsened, above 1 where it is")
        if whole["order"] == "after" and whole["coarsen"] in ("after", "encoder"):
            found.append("coarsen: values that are gridded first are coarsened before")
        if whole["latents"] and whole["encoder"] != "none":
            found.append("latents: only without an encoder")
        if whole["places"] == "harmonics" and whole["surface"] != "sphere":
            found.append("places harmonics: only on a sphere")
        if whole["equivariance"] != "none" and (
            whole["encoder"] == "none" or whole["reading"] == "all" or whole["order"] == "after"
        ):
            found.append("equivariance: of an encoder alone, whose targets read the nearest cells")
        return found

    def __init__(
        self, x_dim: int, i_dim: int, o_dim: int, encoder: str = "mhca", order: str = "before",
        reads: str = "both", window: int = 1, nearest: int = 3, reading: str = "nearest",
        coarsen: str = "none", patch: int = 1, index: str = "row_major", surface: str = "plane",
        grid_values: int = 1, per_unit: int = 8, reach: int = 4, cells: int = 4,
        latents: int = 0, places: str = "plain", degrees: int = 10, equivariance: str = "none",
        pooling: str = "mean", head: str = "gaussian", width: int = 32, heads: int = 4,
        layers: int = 2,
    ):  # fmt: skip
        super().__init__()
        self.head, self.law, self.i_dim = head, likelihoods.HEADS[head], i_dim
        self.grid_values, self.reads, self.kind, self.index = grid_values, reads, encoder, index
        sphere = surface == "sphere"
        self.coarsen, self.patch, self.sphere, self.late = coarsen, patch, sphere, order == "after"
        self.reach, self.cells, self.width, self.summed = reach, cells, width, pooling == "sum"
        self.nearest = nearest if reading == "nearest" else 0
        axes = width if places == "harmonics" else 3 if sphere else x_dim
        self.waves = HarmonicPlaces(degrees, width) if places == "harmonics" else None
        self.relative = equivariance != "none"
        self.breaking = nn.Linear(axes, width) if equivariance == "approximate" else None
        if self.breaking is not None:
            nn.init.zeros_(self.breaking.weight)
            nn.init.zeros_(self.breaking.bias)
        told = x_dim if self.relative else axes
        self.embed = mlp(told + i_dim + grid_values + 2, width, width, width)
        if reads != "off" or encoder != "none":
            self.unknown = nn.Parameter(0.1 * torch.randn(width))
        if encoder == "mhca":
            self.query = nn.Parameter(torch.randn(width))
            self.gather_norm = nn.LayerNorm(width)
            self.gather = CellAttention(width, heads)
        elif encoder == "setconv":
            self.conv: nn.Module = SphereConv(DEGREES) if sphere else SetConv(x_dim, 2 / per_unit)
            if pooling == "mean":
                values, extra = (i_dim, grid_values + axes + 1) if self.late else (width, 0)
                self.gridded = mlp(1 + values + extra, width, width)
        if coarsen in ("before", "after"):
            self.merge = nn.Linear(width * patch**x_dim, width)
        self.latents = nn.Parameter(torch.randn(latents, width)) if latents else None
        if encoder == "none":
            kind = Latent if latents else Plain
            self.layers = nn.ModuleList(kind(width, heads) for _ in range(layers))
        else:
            window = window if window > 1 else 0
            slots = (window**x_dim, nearest**x_dim) if self.relative else (0, 0)
            self.layers = nn.ModuleList(
                Mixing(width, heads, window, self.nearest, slots) for _ in range(layers)
            )
        self.readout = mlp(width, width, width, o_dim * self.law.numbers)

    def placed(self, x: Float[Tensor, "... X"]) -> Float[Tensor, "... Y"]:
        """What of a place is embedded: on the sphere the unit vector, which no date line cuts, or
        what sines make of its harmonics."""
        if not self.sphere:
            return x
        north, east = torch.deg2rad(x).unbind(-1)
        flat = north.cos()
        place = torch.stack((flat * east.cos(), flat * east.sin(), north.sin()), -1)
        return place if self.waves is None else self.waves(place)

    def token(
        self,
        x: Tensor,
        off: Tensor | None,
        on_grid: Tensor | None,
        flag: float,
        beside: Tensor | None = None,
    ) -> Tensor:
        """MLP([place, value, value of a cell, asked?, on the grid?]); of an equivariant model the
        place is where it lies among cells, `beside`, and what breaks the symmetry is added."""
        shape = x.shape[:-1]
        off = x.new_zeros(*shape, self.i_dim) if off is None else off
        flags = x.new_tensor([flag, float(on_grid is not None)]).expand(*shape, 2)
        cell = x.new_zeros(*shape, self.grid_values) if on_grid is None else on_grid
        return self.embedded(x, torch.cat((off, cell, flags), -1), beside)

    def embedded(self, x: Tensor, numbers: Tensor, beside: Tensor | None) -> Tensor:
        """Tokens of places and of what is known there."""
        if not self.relative:
            return self.embed(torch.cat((self.placed(x), numbers), -1))
        beside = torch.zeros_like(x) if beside is None else beside
        found = self.embed(torch.cat((beside, numbers), -1))
        return found if self.breaking is None else found + self.breaking(self.placed(x))

    def beside(self, x: Tensor, grid: Grid, count: int) -> Tensor | None:
        """Where points lie from the first of the `count` nearest cells along each axis, in cells;
        None where nobody asks."""
        return on.beside(grid, x, count) if self.relative else None

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

    def cell_tokens(self, grid: Grid, beside: Tensor | None = None) -> Float[Tensor, "B M H"]:
        """Of every cell, its value or that it is unknown, and its place."""
        places = grid.places().expand(len(grid.values), -1, -1)
        known, values = grid.mask.flatten(1)[:, :, None], grid.values.flatten(1, -2)
        told = self.token(places, None, values.masked_fill(~known, 0), 0.0, beside)
        return torch.where(known, told, told + self.unknown)

    def encoded(self, batch: Batch, grid: Grid) -> tuple[Tensor, Grid]:
        """Tokens of the cells that the layers see, and the grid that they lie on."""
        real = batch.context_mask & (self.reads != "on")
        x, layers = batch.context_x.masked_fill(~real[:, :, None], 0), grid
        fine = grid.places().expand(len(x), -1, -1)
        if self.coarsen == "encoder":
            layers = grid.coarse(self.patch)
        own = self.cell_tokens(grid, self.beside(fine, layers, 1))
        if self.coarsen == "before":
            own, grid = self.merge(on.patches(own, grid.shape, self.patch)), grid.coarse(self.patch)
            layers = grid
        points = self.token(x, batch.context_y, None, 0.0, self.beside(x, layers, 1))
        if self.coarsen == "encoder":
            x = torch.cat((x, fine), 1)
            real = torch.cat((real, torch.ones_like(own[:, :, 0], dtype=torch.bool)), 1)
            points, grid = torch.cat((points, own), 1), layers
            own = self.cell_tokens(grid)
        if self.kind == "mhca":
            normal = self.gather_norm(own)
            cell = on.nearest(grid, x, self.index)
            heard = self.gather(normal + self.query, normal, self.gather_norm(points), real, cell)
            tokens = own + heard
        else:
            told = batch.context_y if self.late else points
            smooth = self.smoothed(x, told, real, grid)
            if self.summed:
                tokens = own + smooth[:, :, 1:] * (smooth[:, :, :1] + LEAST)
            elif self.late:
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

    def streamed(self, batch: Batch, grid: Grid) -> tuple[Tensor, Grid]:
        """`encoded` by MHCA of a fine grid that the encoder coarsens, without a token of every fine
        cell at once."""
        coarse, sets = grid.coarse(self.patch), len(batch.context_x)
        real = batch.context_mask & (self.reads != "on")
        known = grid.mask.flatten(1)[:, :, None]
        x = batch.context_x.masked_fill(~real[:, :, None], 0)
        x = torch.cat((x, grid.places().expand(sets, -1, -1)), 1)
        none = x.new_zeros(*batch.context_x.shape[:2], self.grid_values + 2)
        values = grid.values.flatten(1, -2).masked_fill(~known, 0)
        fine = torch.cat((values, torch.ones_like(known, dtype=x.dtype), ~known), 2)
        off = torch.cat((batch.context_y, x.new_zeros(*fine.shape[:2], self.i_dim)), 1)
        raw = torch.cat((x, off, torch.cat((none, fine), 1)), 2)
        real = torch.cat((real, real.new_ones(fine.shape[:2])), 1)
        own, cell = self.cell_tokens(coarse), on.nearest(coarse, x, self.index)
        normal = self.gather_norm(own)

        def embed(part: Tensor) -> Tensor:
            widths = [x.shape[2], self.i_dim, self.grid_values, 1, 1]
            place, off, value, on_grid, unknown = part.split(widths, 2)
            flags = torch.cat((torch.zeros_like(on_grid), on_grid), 2)
            numbers = torch.cat((off, value, flags), 2)
            found = self.embedded(place, numbers, self.beside(place, coarse, 1))
            return self.gather_norm(found + unknown * self.unknown)

        heard = self.gather.streamed(normal + self.query, normal, raw, embed, real, cell)
        return own + heard, coarse

    def smoothed(self, x: Tensor, told: Tensor, real: Tensor, grid: Grid) -> Tensor:
        """SetConv's density and values in every cell (B, M, F)."""
        if isinstance(self.conv, SphereConv):
            return self.conv.onto_grid(x, told, real, grid).flatten(2).mT
        axes = [axis.expand(len(x), -1) for axis in grid.axes]
        return self.conv.onto_grid(x, told, real, axes).flatten(2).mT  # type: ignore[operator]

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O."""
        if self.kind == "none":
            target = self.token(batch.target_x, None, None, 1.0)
            tokens = self.token(batch.context_x, batch.context_y, None, 0.0)
            real = batch.context_mask & (self.reads != "on")
            if self.reads != "off":
                own = self.cell_tokens(self.grid_of(batch))
                tokens = torch.cat((own, tokens), 1)
                real = torch.cat((torch.ones_like(own[:, :, 0], dtype=torch.bool), real), 1)
            latents = None if self.latents is None else self.latents.expand(len(target), -1, -1)
            for layer in self.layers:
                if latents is None:
                    tokens, target = layer(tokens, target, real)
                else:
                    latents, target = layer(latents, target, tokens, real)
            return self.law.predict(self.readout(target).float())
        grid = self.grid_of(batch)
        many = math.prod(grid.shape) > gridding.CHUNK
        if many and self.kind == "mhca" and self.coarsen == "encoder":
            tokens, grid = self.streamed(batch, grid)
        else:
            tokens, grid = self.encoded(batch, grid)
        among = self.beside(batch.target_x, grid, self.nearest)
        target = self.token(batch.target_x, None, None, 1.0, among)
        first = self.layers[0].among
        order = first.order(grid) if isinstance(first, Windows) else []
        near = None
        if self.nearest:
            near = on.neighbours(grid, batch.target_x, self.nearest, self.index)
        for layer in self.layers:
            tokens, target = layer(tokens, target, order, near)
        return self.law.predict(self.readout(target).float())
