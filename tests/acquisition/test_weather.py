"""The simulated weather: its fields obey the stated law, its file is the archive's, its forecast
skill is known.

Oracles: harmonics from scipy's complex ones, winds from finite differences of the stream function,
moments over many draws.
"""

import hashlib

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.io import netcdf_file
from scipy.special import sph_harm_y

from stages.fields.problems.weather import make as weather
from stages.params import Weather

BASE = dict(
    seed=4,
    start="2001-01-01T00:00:00Z",
    days=20,
    step_h=12,
    grid_deg=10,
    degree_max=8,
    slope=4.0,
    memory_days=4.0,
    wind_sd_m_s=6.0,
    jet_m_s=14.0,
)
LEAD_S = 48 * 3600.0


def config(**changes):
    return Weather(**BASE | changes)


@pytest.fixture(scope="module")
def drawn():
    """A long draw: 2000 times of 12 h."""
    return weather.coefficients(config(days=1000))


def some(seed=0, top=5):
    rng = np.random.default_rng(seed)
    c = np.tril(np.ones((top, top + 1)), 1) * (
        rng.standard_normal((top, top + 1)) + 1j * rng.standard_normal((top, top + 1))
    )
    c[:, 0] = c[:, 0].real
    return c


def harmonics(c, lat, lon):
    """The oracle: the sum over all m from -l to l, term by term."""
    theta, phi = np.radians(90 - lat), np.radians(lon)
    total = np.zeros(np.broadcast(lat, lon).shape, complex)
    for l in range(1, len(c) + 1):  # noqa: E741 (degree, as books write it)
        for m in range(-l, l + 1):
            value = c[l - 1, abs(m)] if m >= 0 else (-1) ** m * np.conj(c[l - 1, -m])
            total += value * sph_harm_y(l, m, theta, phi)
    return total


def test_a_sum_of_harmonics_is_the_real_one_of_all_orders():
    lat, lon = np.array([63.0, -5.0, 44.5]), np.array([3.0, 190.0])
    expected = harmonics(some(), lat[:, None], lon[None])
    assert np.abs(expected.imag).max() < 1e-12
    np.testing.assert_allclose(weather.Sphere(5, lat, lon).value(some()), expected.real, atol=1e-12)


def test_the_wind_is_the_turned_gradient_of_the_stream_function_and_vorticity_its_laplacian():
    c, h, lat, lon = some() * 1e7, 0.02, np.array([63.0, -5.0, 44.5]), np.array([3.0, 190.0])

    def psi(north, east):
        return harmonics(c, lat[:, None] + north, lon[None] + east).real

    metres, cosine = weather.EARTH_M * np.radians(h), np.cos(np.radians(lat))[:, None]
    sphere = weather.Sphere(5, lat, lon)
    u, v = sphere.wind(c)
    np.testing.assert_allclose(u, -(psi(h, 0) - psi(-h, 0)) / (2 * metres), rtol=1e-5)
    np.testing.assert_allclose(v, (psi(0, h) - psi(0, -h)) / (2 * metres * cosine), rtol=1e-5)
    curved = (psi(h, 0) - 2 * psi(0, 0) + psi(-h, 0)) / metres**2 + (
        psi(0, h) - 2 * psi(0, 0) + psi(0, -h)
    ) / (metres * cosine) ** 2
    slope = (
        -np.tan(np.radians(lat))[:, None]
        * (psi(h, 0) - psi(-h, 0))
        / (2 * metres * weather.EARTH_M)
    )
    np.testing.assert_allclose(sphere.vorticity(c), curved + slope, rtol=1e-3)


def test_the_wind_has_the_stated_deviation_over_the_sphere():
    """Exactly, in expectation: quadrature of E u^2 over Gauss-Legendre latitudes, one
    coefficient at a time."""
    settings = config()
    nodes, weights = np.polynomial.legendre.leggauss(12)
    lat, lon = np.degrees(np.arcsin(nodes)), np.arange(0.0, 360.0, 15.0)
    sphere, sd, total = weather.Sphere(8, lat, lon), weather.deviations(settings), 0.0
    for l in range(8):  # noqa: E741 (degree, as books write it)
        for m in range(l + 2):
            for part in (
                (1, 1j) if m else (1,)
            ):  # variance 1 of order 0; a half each of the others' real and imaginary parts
                c = np.zeros((8, 9), complex)
                c[l, m] = sd[l, 0] * part * (1 if m == 0 else np.sqrt(0.5))
                u, v = sphere.wind(c)
                total += (weights @ (u**2 + v**2).mean(1)) / 2
    assert np.sqrt(total / 2) == pytest.approx(settings.wind_sd_m_s, rel=1e-9)


def test_every_coefficient_is_stationary_red_noise_with_the_stated_damping_and_phase(drawn):
    settings, lag = config(), 4
    keep, sd = weather.damping(settings, LEAD_S), weather.deviations(settings)
    variance = (np.abs(drawn) ** 2).mean(0) / sd**2
    inside = np.tril(np.ones((8, 9)), 1) > 0
    assert (drawn[:, ~inside] == 0).all() and (drawn[:, :, 0].imag == 0).all()
    assert np.abs(variance[inside] - 1).max() < 0.5 and variance[inside].mean() == pytest.approx(
        1, abs=0.05
    )
    found = (drawn[lag:] * np.conj(drawn[:-lag])).mean(0) / sd**2
    assert np.abs(found - keep)[inside].max() < 0.45 and np.abs(found - keep)[inside].mean() < 0.12
    by_degree = np.array([(found[n, 1 : n + 2] / keep[n, 1 : n + 2]).mean() for n in range(2, 8)])
    np.testing.assert_allclose(by_degree, 1, atol=0.35)


def test_two_steps_of_damping_are_one_of_twice_the_length():
    np.testing.assert_allclose(
        weather.damping(config(), 7200.0), weather.damping(config(), 3600.0) ** 2
    )


def test_small_waves_move_eastward():
    c, lon = np.zeros((8, 9), complex), np.arange(0.0, 360.0, 1.0)
    c[7, 6] = 1.0

    def crest(field):
        return lon[np.argmax(field[0, :60])]

    sphere = weather.Sphere(8, np.array([40.0]), lon)
    later = weather.damping(config(jet_m_s=20.0), 24 * 3600.0)
    before, after = sphere.value(c), sphere.value(c * later)
    shift = np.degrees(-np.angle(later[7, 6])) / 6
    assert shift > 1 and (crest(after) - crest(before)) % 60 == pytest.approx(shift, abs=1)


def test_the_best_forecast_has_the_stated_share_and_persistence_less(drawn):
    settings, lag = config(), 4
    keep, weight = (
        weather.damping(settings, LEAD_S),
        np.where(np.arange(9) == 0, 1, 2) * (np.arange(1, 9) * np.arange(2, 10))[:, None],
    )

    def energy(c):
        return (np.abs(c) ** 2 * weight).sum((1, 2)).mean()

    wind = weather.deviations(settings) ** 2 * weight * np.tril(np.ones((8, 9)), 1)
    share = (wind * np.abs(keep) ** 2).sum() / wind.sum()
    alike = (wind * keep.real).sum() / wind.sum()
    lost = energy(drawn[lag:] - keep * drawn[:-lag]) / energy(drawn)
    assert lost == pytest.approx(1 - share, abs=0.03) and 0.3 < share < 0.7
    assert energy(drawn[lag:] - drawn[:-lag]) / energy(drawn) == pytest.approx(
        2 - 2 * alike, abs=0.05
    )
    assert 2 - 2 * alike > 1 - share + 0.1


def test_the_variables_hang_together_and_are_possible():
    made = weather.fields(config(grid_deg=5, days=40, degree_max=18))
    lat = weather.axes(config(grid_deg=5))[1]
    below, above = made["u10"] + 1j * made["v10"], made["u100"] + 1j * made["v100"]
    ratio = np.median(below / above, axis=0)
    assert np.abs(ratio).min() > 0.5 and np.abs(ratio).max() < 0.85
    turn = np.degrees(np.angle(ratio))
    assert (turn[(lat > 30) & (lat < 85)] > 5).all() and (
        turn[(lat < -30) & (lat > -85)] < -5
    ).all()  # towards low pressure: leftward in the north
    assert made["tcc"].min() >= 0 and made["tcc"].max() <= 1 and made["tcc"].std() > 0.1
    assert (
        made["t2m"].min() > 180
        and made["t2m"].max() < 330
        and made["sp"].min() > 4e4
        and made["sp"].max() < 1.1e5
    )
    warm = made["t2m"].mean((0, 2))
    assert (
        warm[len(lat) // 2] > warm[0] + 15 and warm[0] < warm[-1]
    )  # January: the north pole is the colder one
    sea = made["sp"].mean(0) > 1.005e5  # low ground
    north = sea & (lat[:, None] > 40) & (lat[:, None] < 70)
    high = made["sp"] - made["sp"].mean(0)
    around = np.roll(high, -1, 2) - np.roll(
        high, 1, 2
    )  # pressure rises eastward where the wind comes from the equator
    wind = made["v100"] - made["v100"].mean(0)
    assert np.corrcoef(around[:, north].ravel(), wind[:, north].ravel())[0, 1] > 0.7


def test_the_file_has_the_archive_s_axes_types_and_attributes(tmp_path):
    weather.make(config(), tmp_path)
    with netcdf_file(tmp_path / "era5_simulated.nc", mmap=False) as file:
        assert (
            dict(file.dimensions) == {"longitude": 36, "latitude": 19, "time": 40}
            and file.version_byte == 2
        )
        assert (
            file.variables["latitude"][:].tolist() == list(range(90, -91, -10))
            and file.variables["longitude"][0] == 0
        )
        assert (
            file.variables["time"].units == b"hours since 1900-01-01 00:00:00.0"
            and np.diff(file.variables["time"][:]).tolist() == [12] * 39
        )
        assert file.variables["time"][0] == (
            np.datetime64("2001-01-01T00") - np.datetime64("1900-01-01T00")
        ).astype(int)
        for name, (unit, words) in weather.UNITS.items():
            stored = file.variables[name]
            assert (
                stored.dimensions == ("time", "latitude", "longitude")
                and stored.data.dtype == ">i2"
            )
            assert (stored.units.decode(), stored.long_name.decode()) == (
                unit,
                words,
            ) and stored._FillValue == stored.missing_value == -32767
            numbers = stored[:].astype(int)
            assert -32767 < numbers.min() < -30000 and 30000 < numbers.max() <= 32767


def test_packing_loses_half_a_step_at_most():
    values = np.random.default_rng(0).normal(300, 40, 5000)
    shorts, scale, offset = weather.packed(values)
    assert (
        np.abs(shorts * scale + offset - values).max() <= scale / 2 * 1.000001
        and np.abs(shorts).max() <= 32766
    )
    assert weather.packed(np.full(3, 7.0))[0].tolist() == [0, 0, 0]


def test_equal_seeds_give_equal_bytes_and_others_other_weather(tmp_path):
    digest = []
    for k, seed in enumerate((4, 4, 5)):
        (tmp_path / str(k)).mkdir()
        weather.make(config(seed=seed), tmp_path / str(k))
        digest.append(
            hashlib.sha256((tmp_path / str(k) / "era5_simulated.nc").read_bytes()).hexdigest()
        )
    assert digest[0] == digest[1] != digest[2]


@pytest.mark.parametrize(
    "change",
    [
        {"grid_deg": 7},
        {"step_h": 5},
        {"degree_max": 19},
        {"start": "2001-02-30T00:00:00Z"},
        {"days": 0},
        {"start": "2001-01-01"},
        {"grid_deg": 1, "days": 3660, "step_h": 1},
        {"memory_days": 0.0},
    ],
)
def test_weather_that_cannot_be_made_is_refused_by_the_parameters(change):
    with pytest.raises(ValidationError):
        config(**change)
