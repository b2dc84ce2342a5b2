"""Spectral layers of Fourier neural operators: low Fourier modes of a grid or of scattered points,
and maps between them (thesis C.5).

Coefficients are those of a Fourier series on the unit torus: c(k) = mean of u(xi) exp(-2 pi i k
xi), whatever the number of points, and u(xi) = sum of c(k) exp(2 pi i k xi). Kept are k1 from -m to
m - 1 (in torch.fft's order: 0..m-1, -m..-1) and k2 from 0 to m - 1; u is real, so that k2 > 0
counts twice. Scattered points cost N m^2: linear in their number.
Shapes: B sets, N points on the torus (N, 2), S grid side, H channels, m modes.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Spectral(nn.Module):
    """A complex matrix for every kept mode, H -> H; stored as pairs of real numbers (2m, m, H,
    H, 2)."""

    def __init__(self, width: int, modes: int):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.rand(2 * modes, modes, width, width, 2) / width**2)

    def forward(self, coefficients: Tensor) -> Tensor:
        """New coefficients (B, H, 2m, m), complex."""
        return torch.einsum("bhjk,jkho->bojk", coefficients, torch.view_as_complex(self.weight))


def analyse(grid: Float[Tensor, "B H S S"], modes: int) -> Tensor:
    """The low modes of functions on a regular grid, (B, H, 2m, m) complex; 2m <= S."""
    every = torch.fft.rfft2(grid, norm="forward")
    return torch.cat((every[:, :, :modes, :modes], every[:, :, -modes:, :modes]), 2)


def synthesise(coefficients: Tensor, side: int) -> Float[Tensor, "B H S S"]:
    """The function with these coefficients (B, H, 2m, m) on the grid of points (i/S, j/S)."""
    modes = coefficients.shape[3]
    every = coefficients.new_zeros(*coefficients.shape[:2], side, side // 2 + 1)
    every[:, :, :modes, :modes] = coefficients[:, :, :modes]
    every[:, :, -modes:, :modes] = coefficients[:, :, modes:]
    return torch.fft.irfft2(every, s=(side, side), norm="forward")


def analyse_points(
    values: Float[Tensor, "B N H"],
    points: Float[Tensor, "B N 2"],
    mask: Bool[Tensor, "B N"],
    modes: int,
) -> Tensor:
    """The low modes (B, H, 2m, m) of values at scattered points: means over the real points; 0
    where there is none."""
    phase = _phases(points, modes)
    weight = mask.to(values.dtype) / mask.sum(1, keepdim=True).clamp_min(1)
    weighted = (values * weight[..., None]).transpose(1, 2)
    return torch.complex(weighted @ phase.cos(), -(weighted @ phase.sin())).unflatten(
        2, (2 * modes, modes)
    )


def synthesise_points(
    coefficients: Tensor, points: Float[Tensor, "B N 2"]
) -> Float[Tensor, "B N H"]:
    """The function with these coefficients (B, H, 2m, m) at scattered points."""
    modes = coefficients.shape[3]
    twice = torch.ones(modes, device=points.device).index_fill(
        0, torch.arange(1, modes, device=points.device), 2.0
    )
    flat = (coefficients * twice).flatten(2).transpose(1, 2)
    phase = _phases(points, modes)
    return phase.cos() @ flat.real - phase.sin() @ flat.imag


def _phases(points: Tensor, modes: int) -> Tensor:
    """2 pi k xi of every point and kept mode, (B, N, 2m*m)."""
    k2 = torch.arange(modes, device=points.device, dtype=points.dtype)
    k1 = torch.cat((k2, k2 - modes))
    turns = points[..., 0, None, None] * k1[:, None] + points[..., 1, None, None] * k2
    return (2 * torch.pi * turns).flatten(2)
