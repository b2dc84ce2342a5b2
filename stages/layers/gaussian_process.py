"""Gaussian-process regression in local coordinates: what kriging and the optimum share (not in the
thesis: classical rivals of its models).

y_i = m + f(x_i) + e_i,  m ~ N(0, level^2),  cov f = sd^2 rho,  e ~ N(0, noise^2),
independent for each component of y, one law for all.
rho(x, x') = h( (de^2 + dn^2) / l_h^2 + dz^2 / l_z^2 ) exp(-|dt| / l_t): h "squared_exponential"
exp(-r^2 / 2), or "matern" of smoothness 3/2, (1 + sqrt(3) r) exp(-sqrt(3) r); products of positive
definite functions are positive definite. level = 0: the mean is known (simple kriging); as level
grows m is estimated by generalised least squares (ordinary kriging). All float64, by Cholesky.
Padding is exact: its rows are those of the identity, its values 0. Equal points: JITTER.
Shapes: B sets, N and M points, T targets, O components. Lengths in the units of layers/local.py.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from stages.layers.local import HORIZONTAL_KM, TIME_MIN, VERTICAL_KM

# share of the variance added to the diagonal: what N^2 float64 roundings of N = 3,000 equal points
# can take from it
JITTER = 1e-9
LEAST = 1e-24  # below this a squared distance is one of equal points, where a root has no slope

Scalar = float | Tensor


class Law(NamedTuple):
    """The law of the values: `lengths` (l_h, l_z, l_t), the others in the unit of the values;
    numbers or tensors to learn."""

    lengths: tuple[Scalar, Scalar, Scalar]
    sd: Scalar
    noise: Scalar
    level: Scalar = 0.0
    kind: str = "squared_exponential"

    def variance(self) -> Scalar:
        """Of the true value at any point."""
        return self.sd**2 + self.level**2


def local_lengths(
    horizontal_km: float, vertical_km: float, time_min: float
) -> tuple[float, float, float]:
    """(l_h, l_z, l_t) in local units."""
    return horizontal_km / HORIZONTAL_KM, vertical_km / VERTICAL_KM, time_min / TIME_MIN


def _matern(square: Tensor) -> Tensor:
    root = (3 * square.clamp_min(LEAST)).sqrt()
    return torch.log1p(root) - root


KINDS = {
    "squared_exponential": lambda square: -0.5 * square,
    "matern": _matern,
}  # the logarithm of h


def correlation(
    a: Float[Tensor, "B N 4"], b: Float[Tensor, "B M 4"], law: Law
) -> Float[Tensor, "B N M"]:
    """rho of every pair."""

    def gap(axis: int) -> Tensor:
        return a[:, :, None, axis] - b[:, None, :, axis]

    horizontal, vertical, time = law.lengths
    square = (gap(0).square() + gap(1).square()) * horizontal**-2 + gap(2).square() * vertical**-2
    return torch.exp(KINDS[law.kind](square) - gap(3).abs() * time**-1)


def covariance(
    x: Float[Tensor, "B N 4"], mask: Bool[Tensor, "B N"], law: Law
) -> Float[Tensor, "B N N"]:
    """Of measurements at x; rows and columns of points that are not real are the identity's."""
    signal = law.sd**2 * correlation(x, x, law) + law.level**2
    if not mask.all():
        signal = signal * (mask[:, :, None] & mask[:, None, :])
    return signal + torch.diag_embed(torch.where(mask, law.noise**2 + JITTER * law.variance(), 1.0))


def conditional(
    x: Float[Tensor, "B N 4"],
    y: Float[Tensor, "B N O"],
    mask: Bool[Tensor, "B N"],
    targets: Float[Tensor, "B T 4"],
    law: Law,
) -> tuple[Float[Tensor, "B T O"], Float[Tensor, "B T 1"]]:
    """Mean and variance of a measurement at each target, given measurements y at x; (0, the law's
    own variance) where there are none.

    Positions and values in the padding are finite.
    """
    cross = (law.sd**2 * correlation(x, targets, law) + law.level**2) * mask[:, :, None]
    values = y * mask[:, :, None]
    white = torch.linalg.solve_triangular(
        torch.linalg.cholesky(covariance(x, mask, law)), torch.cat((cross, values), 2), upper=False
    )
    cross, values = white.split([cross.shape[2], values.shape[2]], 2)
    left = (law.variance() - cross.square().sum(1)).clamp_min(
        0
    )  # of the true value; roundings must not make it negative
    return cross.mT @ values, (left + law.noise**2)[:, :, None]


def log_density(
    x: Float[Tensor, "B N 4"], y: Float[Tensor, "B N O"], mask: Bool[Tensor, "B N"], law: Law
) -> Float[Tensor, " B"]:
    """log p(y) of each set's measurements, all components together; 0 for a set without any.
    Gradients reach the law, not y.

    d log p / dK = (a a' - O K^-1) / 2, a = K^-1 y, is written out: half the time of the way back
    through a Cholesky factor.
    """
    among, y = covariance(x, mask, law), y * mask[:, :, None]
    with torch.no_grad():
        lower = torch.linalg.cholesky(among)
        inverse = torch.cholesky_inverse(lower)
        solved = inverse @ y
        slope = 0.5 * (solved @ solved.mT - y.shape[2] * inverse)
        each = lower.diagonal(dim1=1, dim2=2).log().sum(1) + 0.5 * math.log(2 * math.pi) * mask.sum(
            1
        )
        density = -0.5 * (y * solved).sum((1, 2)) - y.shape[2] * each
    return density + ((among - among.detach()) * slope).sum((1, 2))
