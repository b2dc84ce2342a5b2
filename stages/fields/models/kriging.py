"""Local kriging: Gaussian-process regression on the past winds nearest to each target, with a
spread (our own: not in the thesis).

The law is that of layers/gaussian_process.py, one for all places: the local mean is unknown, N(0,
level^2), which with a wide level is ordinary kriging, and east and north share lengths and
variances. Its six numbers are learned by gradient from `loss`, the negative logarithm of a
composite marginal likelihood: every target with its neighbours counts as if independent of the
other targets, though they share neighbours, so it is no likelihood of the whole data. The spread is
that of a measurement, nugget included. float64 inside; sets are taken in chunks, so memory does not
grow with their number. Winds are standardised.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers.averaging import bounded
from stages.layers.distances import chunks
from stages.layers.gaussian_process import KINDS, Law, conditional, local_lengths, log_density
from stages.layers.heads import Gaussian

SD, NOISE, LEVEL = 0.5, 0.2, 0.7  # where learning starts, of a standardised wind


class Kriging(FieldModel):
    """`kind` of layers/gaussian_process.py; lengths in km and minutes: where learning starts."""

    if TYPE_CHECKING:
        start: Tensor

    context, learns = "neighbours", "gradient"
    own_loss = True
    limits = {"places": 4096}
    words = {"kind": tuple(KINDS)}
    learning_rate = 0.03  # six logarithms, as in kernel.py

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        places: int = 32,
        kind: str = "squared_exponential",
        horizontal_km: float = 100.0,
        vertical_km: float = 1.0,
        time_min: float = 60.0,
    ):
        super().__init__()
        self.places, self.kind = places, kind
        self.register_buffer(
            "start",
            torch.tensor(
                [*local_lengths(horizontal_km, vertical_km, time_min), SD, NOISE, LEVEL]
            ).log(),
        )
        self.shift = nn.Parameter(torch.zeros(6))

    def metric(self, target_x: Tensor) -> None:
        """None: neighbours of the targets (M, 4) are chosen under the project's own metric."""
        return

    def law(self) -> Law:
        """What has been learned so far, float64 scalars; sd, noise and level of a standardised
        wind."""
        horizontal, vertical, time, sd, noise, level = bounded(self.start, self.shift).double()
        return Law((horizontal, vertical, time), sd, noise, level, self.kind)

    def forward(self, batch: Batch) -> Gaussian:
        """Mean and standard deviation of a measurement at every target, B T O; 0 and the law's
        own spread for an empty context."""
        law = self.law()
        parts = [
            conditional(part.context_x, part.context_y, part.context_mask, part.target_x, law)
            for part in _parts(batch)
        ]
        mean, variance = (
            torch.cat(values).to(batch.context_y.dtype) for values in zip(*parts, strict=True)
        )
        return Gaussian(mean, variance.sqrt().expand_as(mean))

    def loss(self, batch: Batch) -> Tensor:
        """-log p(context values, target values) of all sets, for one component of one real
        point; standardised, so no unit."""
        law, parts = self.law(), list(_parts(batch))
        # of many chunks none is kept for the way back: each is computed again there
        density = (
            log_density
            if len(parts) == 1
            else lambda *given: checkpoint(log_density, *given, use_reentrant=False)
        )
        points: Any
        total: Any
        total, points = 0.0, 0
        for part in parts:
            mask = torch.cat((part.context_mask, part.target_mask), 1)
            x = torch.cat((part.context_x, part.target_x), 1)
            # what is fitted is known
            y = torch.cat((part.context_y, part.target_y), 1)  # type: ignore[arg-type]
            total, points = total + density(x, y, mask, law).sum(), points + mask.sum()
        return -total / (points.clamp_min(1) * batch.context_y.shape[2])


def _parts(batch: Batch) -> Iterator[Batch]:
    """The sets of a batch in chunks, float64: no square of a float32 number overflows there, so
    padding may hold any."""
    for rows in chunks(
        max(1, len(batch.context_x)), (batch.context_x.shape[1] + batch.target_x.shape[1]) ** 2
    ):
        values = {name: value[rows] for name, value in vars(batch).items() if value is not None}
        yield Batch(
            **{
                name: value.double() if value.is_floating_point() else value
                for name, value in values.items()
            }
        )
