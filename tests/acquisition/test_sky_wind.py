"""The simulated wind: no divergence, realistic sizes, a memory of hours."""

import numpy as np
import pytest

from stages.winds.sky import wind

R = 6371008.8
PLACE = (46.7, 7.3, 600e3, 4000.0, 12000.0)


def points(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(44, 49.4, n),
        rng.uniform(4, 10.5, n),
        rng.uniform(4000, 12000, n),
        rng.uniform(0, 9 * 3600, n),
    )


@pytest.fixture(scope="module")
def sky():
    return wind.make(7, *PLACE)


def test_wind_is_the_rotated_gradient_of_the_stream_function(sky):
    lat, lon, z, t = points()
    h = 1e-4
    d_north = (sky.stream(lat + h, lon, z, t) - sky.stream(lat - h, lon, z, t)) / (
        2 * R * np.radians(h)
    )
    d_east = (sky.stream(lat, lon + h, z, t) - sky.stream(lat, lon - h, z, t)) / (
        2 * R * np.radians(h) * np.cos(np.radians(lat))
    )
    u, v = sky(lat, lon, z, t)
    assert np.abs(u + d_north).max() < 1e-4
    assert np.abs(v - d_east).max() < 1e-4


def test_no_horizontal_divergence_on_the_sphere(sky):
    lat, lon, z, t = points()
    h = 1e-4
    east = [np.array(sky(lat, lon + s * h, z, t)) for s in (1, -1)]
    north = [
        np.array(sky(lat + s * h, lon, z, t)) * np.cos(np.radians(lat + s * h)) for s in (1, -1)
    ]
    area = 2 * R * np.radians(h) * np.cos(np.radians(lat))
    divergence = (east[0][0] - east[1][0] + north[0][1] - north[1][1]) / area
    vorticity = (east[0][1] - east[1][1] - north[0][0] + north[1][0]) / area
    # leaving out the sphere's metric alone would give a ratio of about 1e-2
    assert np.sqrt((divergence**2).mean()) < 1e-5 * np.sqrt((vorticity**2).mean())


def test_magnitudes_are_those_of_the_upper_air():
    lat, lon, z, t = points(2000)
    variances, strongest = [], []
    for seed in range(20):
        sky = wind.make(seed, *PLACE)
        u, v = sky.eddies(lat, lon, z, t)
        variances += [(u**2).mean(), (v**2).mean()]
        strongest.append(np.hypot(*sky(lat, lon, 10500.0, t)).max())
    # each scale adds its variance: 2 m/s at 50 km, growing as the cube root of length
    expected = sum((2 * (length / 50) ** (1 / 3)) ** 2 for length in (50, 90, 165, 300))
    assert np.mean(variances) == pytest.approx(expected, rel=0.15)
    assert 3 < np.sqrt(np.mean(variances)) < 8
    assert min(strongest) > 30 and max(strongest) < 90


def test_eddies_last_for_hours_and_not_for_ever():
    lat, lon, z, _ = points(300)
    pairs = {lag: [] for lag in (60.0, 1800.0, 4 * 3600.0)}
    for seed in range(12):
        sky = wind.make(seed, *PLACE)
        now = np.concatenate(sky.eddies(lat, lon, z, 3600.0))
        for lag, found in pairs.items():
            later = np.concatenate(sky.eddies(lat, lon, z, 3600.0 + lag))
            found.append((now * later).mean() / np.sqrt((now**2).mean() * (later**2).mean()))
    minute, half_hour, four_hours = (np.mean(found) for found in pairs.values())
    assert minute > 0.99
    assert 0.6 < half_hour < 0.97
    assert abs(four_hours) < 0.35


def test_a_point_alone_and_among_others_and_a_seed_twice(sky):
    lat, lon, z, t = points(wind.CHUNK + 5)
    u, v = sky(lat, lon, z, t)
    for i in (0, wind.CHUNK - 1, wind.CHUNK, len(lat) - 1):
        assert np.allclose([u[i], v[i]], np.ravel(sky(lat[i], lon[i], z[i], t[i])), atol=1e-9)
    again = wind.make(7, *PLACE)(lat, lon, z, t)
    assert np.array_equal(u, again[0]) and np.array_equal(v, again[1])
    assert not np.allclose(u, wind.make(8, *PLACE)(lat, lon, z, t)[0], atol=1)
