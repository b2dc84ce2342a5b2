"""ConvCNP, convolutional conditional neural process (Gordon et al. 2020; document N, chapter 3), in
one, two or three dimensions.

The context goes onto a grid that begins a margin before the set's first point (layers/set_conv.py),
so that a shift of all points moves the grid with them; `layers` residual convolutions with ReLU;
targets read the grid, and an MLP the law of each component off what was read. As in the authors'
public code (reference code H) no pooling: 5 convolutions of 9 cells see 20 cells far. Cells outside
a set's own grid stay 0, so that a batch gives what each set gives alone. Memory grows with the
cells: their number an axis to the power of the axes.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.errors import InputError
from stages.layers import likelihoods
from stages.layers.heads import Predictive
from stages.layers.mlp import mlp
from stages.layers.set_conv import SetConv, regular_axes

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
MOST = {1: 1 << 14, 2: 256, 3: 32}  # cells along an axis; a longer set has wider ones


class ConvCNP(FieldModel):
    """density: cells a unit of length; kernel: cells of a convolution along an axis, odd; head: the
    law of each component. InputError for more than three axes."""

    context, learns, outputs = "slice", "gradient", "any"
    limits = {"density": 1024, "kernel": 63}
    words = {"head": tuple(likelihoods.HEADS)}

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """The middle of a convolution is a cell."""
        found = super().misfits(whole)
        return found if whole["kernel"] % 2 else [*found, f"kernel {whole['kernel']} is not odd"]

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        head: str = "gaussian",
        density: int = 16,
        kernel: int = 9,
        width: int = 32,
        layers: int = 5,
    ):
        super().__init__()
        if x_dim not in CONVOLUTIONS:
            raise InputError(
                "there is no such convolution",
                where="models.convcnp",
                expected="1 to 3 position axes",
                found=str(x_dim),
            )
        self.head, self.law = head, likelihoods.HEADS[head]
        self.density, self.margin, self.most = float(density), kernel // 2, MOST[x_dim]
        self.inward = SetConv(x_dim, 2 / density)
        self.outward = SetConv(x_dim, 2 / density)
        self.lift = nn.Linear(1 + i_dim, width)
        self.convolutions = nn.ModuleList(
            CONVOLUTIONS[x_dim](width, width, kernel, padding=kernel // 2) for _ in range(layers)
        )
        self.readout = mlp(width, width, width, o_dim * self.law.numbers)

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O; an empty context has density 0 everywhere."""
        points = torch.cat((batch.context_x, batch.target_x), 1)
        real = torch.cat((batch.context_mask, batch.target_mask), 1)
        if not points.shape[1]:  # a grid needs a point, though it be none of the set's
            points, real = pad(points, (0, 0, 0, 1)), pad(real, (0, 1))
        axes, own = regular_axes(points, real, self.density, self.margin, self.most)
        grid = self.inward.onto_grid(batch.context_x, batch.context_y, batch.context_mask, axes)
        mine = _product(own)
        grid = self.lift(grid.movedim(1, -1)).movedim(-1, 1) * mine
        for convolution in self.convolutions:
            grid = (grid + torch.relu(convolution(grid))) * mine
        read = self.outward.from_grid(grid, axes, batch.target_x)
        return self.law.predict(likelihoods.full(self.readout(read)))


def _product(own: list[Tensor]) -> Tensor:
    """Which cells of the whole grid are each set's: (B, 1, *)."""
    found = own[0][:, None]
    for axis in own[1:]:
        found = found[..., None] & axis.unflatten(1, (*[1] * (found.dim() - 1), -1))
    return found
