"""The best forecast there is of a simulated wind: the exact Gaussian process of the law that it was
drawn from (not in the thesis).

Each component is mean + f + noise, f of the law in layers/gaussian_process.py with sd_m_s and the
lengths given. All measurements before the issue time are conditioned on and nothing is learned: in
mean square no forecast beats this one on a wind of that law, and on no other wind does it mean
anything. The law is in m/s, batches are standardised: `set_scaler` says how. float64 inside. Time
N^3 / 3 and memory N^2 for N measurements, which the exact answer needs.
"""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers.gaussian_process import Law, conditional, local_lengths
from stages.layers.heads import Gaussian


class Optimum(FieldModel):
    """The law: mean, standard deviation and noise of a component in m/s, lengths in km and
    minutes."""

    if TYPE_CHECKING:
        y_mean: Tensor
        y_std: Tensor

    context, learns = "recent", "nothing"
    window_s = math.inf

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        mean_m_s_east: float = 0.0,
        mean_m_s_north: float = 0.0,
        sd_m_s: float = 10.0,
        noise_m_s: float = 1.0,
        horizontal_km: float = 150.0,
        vertical_km: float = 2.0,
        time_min: float = 90.0,
    ):
        super().__init__()
        self.mean_m_s = (mean_m_s_east, mean_m_s_north)
        self.law = Law(local_lengths(horizontal_km, vertical_km, time_min), sd_m_s, noise_m_s)
        self.register_buffer("y_mean", torch.zeros(2))
        self.register_buffer("y_std", torch.ones(2))

    def set_scaler(self, y_mean: Tensor, y_std: Tensor, altitude_km: float = 0.0) -> None:
        """Mean and standard deviation (2,) of the training rows' winds, m/s: what batches are
        standardised with. The law is the same at every altitude."""
        self.y_mean.copy_(torch.as_tensor(y_mean))
        self.y_std.copy_(torch.as_tensor(y_std))

    @torch.no_grad()
    def forward(self, batch: Batch) -> Gaussian:
        """Mean and standard deviation of a measurement at every target, B T 2; the law's own for
        an empty context."""
        scale, zero = self.y_std.double(), self.y_mean.double()
        above = zero - zero.new_tensor(
            self.mean_m_s
        )  # how far a standardised 0 lies above the law's mean, m/s
        mean, variance = conditional(
            batch.context_x.double(),
            batch.context_y * scale + above,
            batch.context_mask,
            batch.target_x.double(),
            self.law,
        )
        output = batch.context_y.dtype
        return Gaussian(((mean - above) / scale).to(output), (variance.sqrt() / scale).to(output))
