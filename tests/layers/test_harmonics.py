"""Spherical harmonics against scipy's, on the poles as anywhere, and what a SIREN makes of them."""

import numpy as np
import torch
from scipy.special import sph_harm_y

from stages import seeds
from stages.layers.harmonics import HarmonicPlaces, harmonics

DEGREES = 10


def places(count):
    drawn = torch.randn(count, 3, generator=seeds.torch_stream(0, "harmonics", count)).double()
    return drawn / drawn.norm(dim=1, keepdim=True)


def test_harmonics_are_those_of_scipy_also_at_the_poles():
    ends = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]]).double()
    x = torch.cat((ends, places(40)))
    found = harmonics(x, DEGREES).numpy()
    south, east = np.arccos(x[:, 2].numpy()), np.arctan2(x[:, 1].numpy(), x[:, 0].numpy())
    for degree in range(DEGREES):
        for m in range(-degree, degree + 1):
            whole = sph_harm_y(degree, abs(m), south, east) * (-1) ** m * np.sqrt(4 * np.pi)
            expected = whole.real if m == 0 else np.sqrt(2) * (whole.real if m > 0 else whole.imag)
            column = degree**2 + degree + m
            np.testing.assert_allclose(found[:, column], expected, atol=1e-12)


def test_all_orders_of_a_degree_together_are_the_same_everywhere():
    found = harmonics(places(30).float(), DEGREES).square()
    for degree in range(DEGREES):  # Unsoeld's theorem: their squares sum to 2 l + 1
        total = found[:, degree**2 : (degree + 1) ** 2].sum(1)
        torch.testing.assert_close(total, torch.full_like(total, 2 * degree + 1), rtol=1e-4, atol=0)


def test_places_are_told_apart_smoothly_and_every_weight_learns():
    seeds.everything(0)
    layer, x = HarmonicPlaces(DEGREES, 16), places(50).float()
    found = layer(x)
    assert found.abs().max() <= 1 and torch.pdist(found).min() > 1e-3
    near = torch.nn.functional.normalize(x + 1e-5, dim=1)
    assert (layer(near) - found).abs().max() < 1e-2
    found.square().sum().backward()
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in layer.parameters())
