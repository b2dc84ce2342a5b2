"""GeoFNO, Fourier neural operator with a learned deformation (Li et al. 2023b; thesis appendix
C.5).

A network maps every position to the unit torus; the context's low Fourier modes there make a
function on a regular grid, `layers` FNO layers (a spectral map, a pointwise map and one of the
grid's coordinates, GELU) transform it, and its modes, mapped once more, are read at the targets'
places on the torus. Linear in the numbers of points. Shapes: B sets, N points, X position axes, H
width, S grid side, m modes.

Departures from the public code: modes of scattered points are means over them, not sums, so that a
context's size is no gain; the network sees positions and their sines, not polar angles about a
centre; positions are brought to the unit square first (`extent`), since a torus cannot tell -0.5
from 0.5. X may be 2 or more: the torus has two axes, the first two of the position, deformed in the
light of all. Counted with a complex weight as one parameter, as there, 12 modes and width 32 make
the thesis' 1.5 million.
"""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.errors import InputError
from stages.layers.graphs import EXTENTS
from stages.layers.spectral import Spectral, analyse, analyse_points, synthesise, synthesise_points

HIDDEN = 128  # the readout's hidden layer


class Deformation(nn.Module):
    """Positions (B, N, X) in the unit square to places on the torus (B, N, 2): p (1 + network),
    four tanh layers 4H wide."""

    def __init__(self, x_dim: int, width: int):
        super().__init__()
        self.octaves = max(1, width // 4)
        self.lift = nn.Linear(x_dim, width)
        sizes = [width + 2 * x_dim * self.octaves, *[4 * width] * 4]
        self.layers = nn.ModuleList(
            nn.Linear(inputs, outputs) for inputs, outputs in itertools.pairwise(sizes)
        )
        self.out = nn.Linear(4 * width, 2)

    def forward(self, places: Tensor) -> Tensor:
        """Places on the torus; whole numbers of turns do not matter."""
        waves = (
            places[..., None] * torch.pi * 2.0 ** torch.arange(self.octaves, device=places.device)
        ).flatten(2)
        hidden = torch.cat((self.lift(places), waves.sin(), waves.cos()), -1)
        for layer in self.layers:
            hidden = layer(hidden).tanh()
        return places[..., :2] * (1 + self.out(hidden))


class GeoFNO(FieldModel):
    """layers: FNO layers from grid to grid, between the one from points and the one to points.
    InputError for X < 2 or side < 2 modes."""

    context, learns, outputs = "slice", "gradient", "any"
    limits = {"modes": 64, "side": 256}
    words = {"extent": tuple(EXTENTS)}
    rates = {"deformation": 1e-4}  # learning rate of the parameters whose name begins so

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        modes: int = 4,
        width: int = 8,
        layers: int = 3,
        side: int = 40,
        extent: str = "unit",
    ):
        super().__init__()
        if x_dim < 2 or side < 2 * modes:
            raise InputError(
                "a Fourier operator on a plane cannot be made so",
                where="models.geofno",
                expected="at least 2 position axes, 2 modes <= side",
                found=f"{x_dim} axes, {modes} modes, side {side}",
            )
        self.modes, self.side, self.extent = modes, side, EXTENTS[extent]
        self.deformation = Deformation(x_dim, width)
        self.lift = nn.Linear(x_dim + i_dim, width)
        self.inward, self.outward = Spectral(width, modes), Spectral(width, modes)
        self.spectral = nn.ModuleList(Spectral(width, modes) for _ in range(layers))
        self.local = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))
        self.coordinates = nn.ModuleList(nn.Conv2d(2, width, 1) for _ in range(layers + 1))
        self.target = nn.Linear(x_dim, width)
        self.hidden, self.readout = nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, o_dim)

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O; an empty context leaves the function that the grid's
        coordinates make."""
        with torch.autocast(
            batch.context_x.device.type, enabled=False
        ):  # there is no Fourier transform of bfloat16
            low, high = self.extent

            def unit(x: Tensor) -> Tensor:
                return (x - low) / (high - low)

            values = self.lift(torch.cat((batch.context_x, batch.context_y), -1))
            modes = analyse_points(
                values, self.deformation(unit(batch.context_x)), batch.context_mask, self.modes
            )
            axis = torch.linspace(0, 1, self.side, device=values.device)
            plane = torch.stack(torch.meshgrid(axis, axis, indexing="ij"))[None]
            grid = functional.gelu(
                synthesise(self.inward(modes), self.side) + self.coordinates[0](plane)
            )
            for spectral, local, coordinates in zip(
                self.spectral, self.local, self.coordinates[1:], strict=True
            ):
                smooth = synthesise(spectral(analyse(grid, self.modes)), self.side)
                grid = functional.gelu(smooth + local(grid) + coordinates(plane))
            modes = self.outward(analyse(grid, self.modes))
            seen = synthesise_points(modes, self.deformation(unit(batch.target_x))) + self.target(
                batch.target_x
            )
            return Prediction(self.readout(functional.gelu(self.hidden(seen))))
