"""Meteo-Particle (Sun et al. 2017; thesis section 1.4.1) without temperature: particles carry each
report's wind, walk, and die.

Rules and constants: layers/particles.py. A step lasts `step_s` = 10 s, so that the authors' drift
of 10 wind / 1000 km a step is the wind's own (their code steps once a second and calls the 10 a
factor: step_s = 1). A report is judged by both components of its wind; their code holds the
eastward one against both means. With their spread of 2e-4 m/s a lone aircraft is hardly believed
again until its particles die. The wind at a target is the weighted mean of the particles near it
(more than 10 within +-20 km and +-0.5 km), whatever the lead: they say how the wind is at the issue
time. Elsewhere the authors give none; there it is the same mean over all living particles
(`reached` tells which targets have their own), and where nothing lives the mean of all reports
read. Every set draws the same numbers, from `seed`, and takes its reports in order of time, place
and wind.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool
from torch import Tensor

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.errors import InputError
from stages.layers.local import HORIZONTAL_KM, TIME_MIN, VERTICAL_KM
from stages.layers.particles import (
    Law,
    Particles,
    Reports,
    accepted,
    latest,
    local_mean,
    released,
    wide_mean,
)

# of the authors' area, 0 to 12 km: the altitude of local height 0 until `set_scaler` says better
MIDDLE_KM = 6.0


class Particle(FieldModel):
    """The arguments are the authors' constants; `window_s` is how far back a report can still
    have a living particle."""

    if TYPE_CHECKING:
        y_mean: Tensor
        y_std: Tensor
        altitude_km: Tensor

    context, learns = "recent", "nothing"

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        particles: int = 300,
        ageing_s: float = 180.0,
        walk_km: float = 5.0,
        walk_up_km: float = 0.1,
        weight_km: float = 30.0,
        accept: float = 3.0,
        wind_spread_m_s: float = 2e-4,
        step_s: float = 10.0,
        seed: int = 0,
    ):
        super().__init__()
        self.law = Law(
            particles, ageing_s, walk_km, walk_up_km, weight_km, accept, wind_spread_m_s, step_s
        )
        wrong = [name for name, value in self.law._asdict().items() if not 0 < value < float("inf")]
        if wrong or (x_dim, i_dim, o_dim) != (4, 2, 2):
            raise InputError(
                "particles cannot be made of this",
                where="models.particle",
                found=f"x_dim {x_dim}, i_dim {i_dim}, o_dim {o_dim}, {self.law}",
                expected="4 axes (east, north, up, t), 2 winds, and constants above 0",
            )
        self.seed, self.steps = seed, self.law.steps()
        self.window_s = self.steps * step_s
        self.register_buffer("y_mean", torch.zeros(2))
        self.register_buffer("y_std", torch.ones(2))
        self.register_buffer("altitude_km", torch.tensor(MIDDLE_KM))

    def set_scaler(
        self,
        y_mean: Sequence[float] | Tensor,
        y_std: Sequence[float] | Tensor,
        altitude_km: float = MIDDLE_KM,
    ) -> None:
        """Mean and standard deviation (2,) of the training rows' winds, m/s, and their mean
        altitude, where local height is 0."""
        for buffer, value in (
            (self.y_mean, y_mean),
            (self.y_std, y_std),
            (self.altitude_km, altitude_km),
        ):
            buffer.copy_(torch.as_tensor(value))

    @torch.no_grad()
    def forward(self, batch: Batch) -> Prediction:
        """The wind at every target, B T 2; 0 for an empty context."""
        return Prediction(
            torch.stack([self._field(batch, row)[0] for row in range(len(batch.context_x))]).to(
                batch.context_y.dtype
            )
        )

    @torch.no_grad()
    def reached(self, batch: Batch) -> Bool[Tensor, "B T"]:
        """Whether more than 10 particles are near a target: elsewhere the authors' model has no
        wind to give."""
        return torch.stack([self._field(batch, row)[1] for row in range(len(batch.context_x))])

    def particles(self, x: Tensor, y: Tensor) -> tuple[Particles, Reports, Tensor]:
        """The living at the issue time, the reports that made them, and the standardised winds
        (N, 2) of these; x (C, 4), y (C, 2)."""
        # what was reported at or after the issue time counts as the last step's
        step = (-x[:, 3] * (60 * TIME_MIN / self.law.step_s)).floor().clamp_min(0)
        x, y, step = (values[step < self.steps] for values in (x, y, step.long()))
        columns = torch.cat((x[:, 3:], x[:, :3], y), 1)
        order = torch.arange(len(x), device=x.device)
        for column in range(columns.shape[1] - 1, -1, -1):
            order = order[torch.argsort(columns[order, column], stable=True)]
        x, y, step = x[order], y[order], step[order]
        reports = Reports(
            self._place_km(x), y * self.y_std + self.y_mean, x[:, 3] * (60 * TIME_MIN), step
        )
        kept = latest(reports)
        reports, y = reports.of(kept), y[kept]
        generator = torch.Generator(x.device).manual_seed(self.seed)
        kept = accepted(reports, self.law, generator)
        reports, y = reports.of(kept), y[kept]
        return released(reports, self.law, generator), reports, y

    def _place_km(self, x: Tensor) -> Tensor:
        return torch.stack(
            (
                x[:, 0] * HORIZONTAL_KM,
                x[:, 1] * HORIZONTAL_KM,
                x[:, 2] * VERTICAL_KM + self.altitude_km,
            ),
            1,
        )

    def _field(self, batch: Batch, row: int) -> tuple[Tensor, Tensor]:
        """Wind (T, 2), standardised, and whether a target is reached (T,)."""
        real = batch.context_mask[row]
        x, y, targets = (
            values.float()
            for values in (
                batch.context_x[row, real],
                batch.context_y[row, real],
                batch.target_x[row],
            )
        )
        particles, reports, values = self.particles(x, y)
        if not len(particles.report) or not len(targets):
            everywhere = y.sum(0) / max(1, len(y))
            return everywhere.expand(len(targets), -1), torch.zeros(
                len(targets), dtype=torch.bool, device=x.device
            )
        asked = self._place_km(targets)
        mean, reached = local_mean(particles, reports, values, asked, self.law)
        if not reached.all():
            mean[~reached] = wide_mean(particles, reports, values, asked[~reached], self.law)
        return mean, reached
