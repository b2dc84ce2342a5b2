"""Bins of altitude and distance, great circles, nearest points, hulls and tracks, against
definitions written out and cases made by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.scores.hull import Hull
from stages.winds import breakdown
from stages.winds.breakdown import HULL_TOLERANCE_M_S as ALLOWED

# Where it errs: bands, distance, hull, track.


def test_altitude_bands():
    got = breakdown.altitude_bands(np.array([29_999.0, 30_000, 34_999.9, 35_000, 900, -50]))
    assert got.tolist() == [
        "FL250-300",
        "FL300-350",
        "FL300-350",
        "FL350-400",
        "FL000-050",
        "below FL000",
    ]


def test_distance_bins():
    got = breakdown.distance_bins(np.array([0, 4.99, 5, 79, 80, 159, 160, 900]))
    assert got.tolist() == [
        "000-005 km",
        "000-005 km",
        "005-010 km",
        "040-080 km",
        "080-160 km",
        "080-160 km",
        "160 km and more",
        "160 km and more",
    ]
    assert sorted(set(got)) == list(dict.fromkeys(got))


@pytest.mark.parametrize(
    ("a", "b", "km"),
    [
        ((0, 0), (0, 1), 111.195),
        ((45, 7), (46, 7), 111.195),
        ((60, 0), (60, 1), 55.597),
        ((10, 179.5), (10, -179.5), 109.505),
    ],
)
def test_great_circles(a, b, km):
    assert breakdown.great_circle_km(*a, *b) == pytest.approx(km, abs=0.2)


def test_great_circles_are_close_to_the_ellipsoids():
    from pyproj import Geod

    rng = np.random.default_rng(0)
    a, b = rng.uniform((44, 4), (50, 10), (50, 2)), rng.uniform((44, 4), (50, 10), (50, 2))
    exact = Geod(ellps="WGS84").inv(a[:, 1], a[:, 0], b[:, 1], b[:, 0])[2]
    assert breakdown.great_circle_km(a[:, 0], a[:, 1], b[:, 0], b[:, 1]) == pytest.approx(
        np.array(exact) / 1000, rel=0.005
    )


def test_nearest_is_the_smallest_of_all_distances():
    rng = np.random.default_rng(0)
    low, high = (44, 4, 10_000), (49, 10, 40_000)
    targets, context = rng.uniform(low, high, (30, 3)), rng.uniform(low, high, (17, 3))
    expected = [
        min(
            math.hypot(breakdown.great_circle_km(*t[:2], *c[:2]), (t[2] - c[2]) * 0.0003048)
            for c in context
        )
        for t in targets
    ]
    assert breakdown.nearest_km(targets, context) == pytest.approx(expected)
    assert breakdown.nearest_km(targets, context, block=40) == pytest.approx(expected)
    assert breakdown.nearest_km(context, context).tolist() == pytest.approx([0.0] * 17, abs=1e-4)


def test_hull_of_a_square():
    hull = Hull(np.array([[0.0, 0], [10, 0], [10, 10], [0, 10], [5, 5]]))
    asked = np.array([[5.0, 5], [0, 0], [10, 9.9995], [10.01, 5], [-3, -3], [5, 10.0005]])
    assert hull.outside(asked, ALLOWED).tolist() == [False, False, False, True, True, False]


@pytest.mark.parametrize("line", [[[0.0, 0], [2, 2], [1, 1]], [[0.0, 0], [2, 2]]])
def test_hull_of_a_line(line):
    asked = np.array([[1.5, 1.5], [2.5, 2.5], [1, 1.1], [-0.1, -0.1]])
    assert Hull(np.array(line)).outside(asked, ALLOWED).tolist() == [False, True, True, True]


def test_hull_of_a_point():
    asked = np.array([[3.0, 3], [3, 3.1]])
    assert Hull(np.full((4, 2), 3.0)).outside(asked, ALLOWED).tolist() == [False, True]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40))
def test_averages_stay_in_the_hull_and_far_points_do_not(seed, n):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 20, (n, 2))
    hull = Hull(values)
    assert not hull.outside(rng.dirichlet(np.ones(n), 50) @ values, ALLOWED).any()
    angle = rng.uniform(0, 2 * math.pi, 50)
    direction = np.stack([np.cos(angle), np.sin(angle)], 1)
    reach = (values @ direction.T).max(0)  # the supporting line in each direction
    beyond = values.mean(0) + direction * (reach - values.mean(0) @ direction.T + 0.01)[:, None]
    assert hull.outside(beyond, ALLOWED).all()


def test_tracks_of_three_aircraft():
    t = np.arange(5) * 15.0
    still = np.full(5, 47.0)
    slices, flight = np.zeros(15, int), np.repeat([7, 8, 9], 5)
    lat = np.r_[still, 47 + t * 0.002, still]
    lon = np.r_[6 + t * 0.003, still * 0 + 6, still * 0 + 6]
    shuffled = np.random.default_rng(0).permutation(15)
    got = breakdown.tracks(
        slices, flight[shuffled], np.tile(t, 3)[shuffled], lat[shuffled], lon[shuffled]
    )
    back = np.empty_like(got)
    back[shuffled] = got
    assert back[:5] == pytest.approx(np.tile([1, 0], (5, 1))) and back[5:10] == pytest.approx(
        np.tile([0, 1], (5, 1)), abs=1e-12
    )
    assert np.isnan(back[10:]).all()  # it has not moved


def test_a_track_is_the_great_circles_course():
    from pyproj import Geod

    lat, lon = np.array([46.0, 46.08]), np.array([7.0, 7.12])
    got = breakdown.tracks(np.zeros(2, int), np.zeros(2, int), np.array([0.0, 50]), lat, lon)
    azimuth = Geod(ellps="sphere").inv(7.0, 46.0, 7.12, 46.08)[0]
    assert math.degrees(math.atan2(*got[0])) == pytest.approx(azimuth, abs=0.2)
