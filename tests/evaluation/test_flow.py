"""Divergence, shear and spectra of fields of wind: against closed forms, and the simulated sky,
which has no divergence."""

import numpy as np
import pytest

from stages import seeds
from stages.errors import InputError
from stages.winds.laws import flow
from stages.winds.sky import wind

LAT, LON = np.linspace(45.0, 47.0, 41), np.linspace(5.0, 8.0, 61)


def test_a_wind_that_spreads_and_one_that_turns():
    north, east = np.meshgrid(np.radians(LAT - 46), np.radians(LON - 6.5), indexing="ij")
    flat = np.cos(np.radians(LAT))[:, None]
    rate = 1e-5 * wind.EARTH_M
    spread = flow.flow(LAT, LON, rate * east * flat, rate * north)
    assert spread.divergence_per_s == pytest.approx(2e-5, rel=0.01)
    assert spread.ratio == pytest.approx(np.sqrt(2), rel=0.01)
    turning = flow.flow(LAT, LON, -rate * north, rate * east * flat)
    assert turning.divergence_per_s < 0.02 * turning.shear_per_s
    still = flow.flow(LAT, LON, np.ones((41, 61)), np.zeros((41, 61)))
    assert still.shear_per_s == 0 and still.ratio == 0 and still.slope == 0


@pytest.mark.parametrize("wanted", [-1.0, -5 / 3, -3.0])
def test_the_slope_of_a_spectrum_is_the_one_that_was_drawn(wanted):
    rng = seeds.stream(0, "test", "spectrum")
    number = np.fft.rfftfreq(256)
    size = np.zeros(129)
    size[1:] = number[1:] ** (wanted / 2)
    phase = np.exp(2j * np.pi * rng.random((400, 129)))
    rows = np.fft.irfft(size * phase * np.abs(rng.normal(size=(400, 129))), axis=1)
    axis = 5.0 + 0.02 * np.arange(256)
    field = flow.flow(np.linspace(45.0, 46.0, 400), axis, rows, rows[::-1])
    assert field.slope == pytest.approx(wanted, abs=0.15)


def test_the_spectrum_holds_the_fields_energy():
    rows = seeds.stream(0, "test", "white").normal(0, 2.0, (500, 64))
    number, energy = flow.spectrum(
        np.linspace(45.0, 46.0, 500), LON[:1] + 0.05 * np.arange(64), rows
    )
    total = float(energy.sum() * (number[1] - number[0]))
    assert 2 * total == pytest.approx(4.0, rel=0.08)  # of positive wavenumbers alone


def test_the_simulated_sky_has_no_divergence_and_a_model_without_smoothness_has():
    sky = wind.make(20260, 46.7, 7.3, 600e3, 4000.0, 12000.0)
    lat, lon = np.meshgrid(LAT, LON, indexing="ij")
    u, v = (part.reshape(lat.shape) for part in sky(lat.ravel(), lon.ravel(), 1e4, 7200.0))
    true = flow.flow(LAT, LON, u, v)
    assert true.ratio < 0.01 and true.slope < -2
    finer = np.linspace(46.0, 46.2, 41), np.linspace(6.0, 6.3, 61)
    lat, lon = np.meshgrid(*finer, indexing="ij")
    near = flow.flow(
        *finer, *(part.reshape(lat.shape) for part in sky(lat.ravel(), lon.ravel(), 1e4, 7200.0))
    )
    assert near.ratio < true.ratio / 20
    noise = seeds.stream(0, "test", "noise").normal(0, 1.0, u.shape)
    rough = flow.flow(LAT, LON, u + noise, v)
    assert rough.ratio > 0.3 and rough.slope > true.slope + 1


def test_fields_without_a_regular_grid_are_refused():
    field = np.zeros((41, 61))
    for lat, lon, u in (
        (LAT[::-1], LON, field), (np.square(LAT), LON, field), (LAT[:5], LON, field[:5]),
        (LAT, LON, field[:9]), (LAT, LON, field + np.nan),
    ):  # fmt: skip
        with pytest.raises(InputError, match="axis|axes"):
            flow.flow(lat, lon, u, u)
