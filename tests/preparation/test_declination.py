"""Declination against IGRF evaluated point by point, within the accuracy that is stated, and its
behaviour at edges."""

from datetime import UTC, datetime

import numpy as np
import ppigrf
import pytest

from stages.errors import DataError
from stages.winds.decoding.declination import declination_deg


def seconds(*date) -> float:
    return datetime(*date, tzinfo=UTC).timestamp()


def test_within_the_stated_accuracy():
    """0.15 degrees where the horizontal field exceeds 15,000 nT, 0.04 over Europe, from the
    ground to 20 km."""
    draw = np.random.default_rng(0)
    for south, north, west, east, limit in ((-80, 80, -180, 180, 0.15), (40, 60, -10, 20, 0.04)):
        lat, lon = draw.uniform(south, north, 2000), draw.uniform(west, east, 2000)
        for date in ((2017, 1, 11), (2014, 12, 30)):
            found = declination_deg(np.full(2000, seconds(*date)), lat, lon)
            for height_km in (0.0, 20.0):
                field_east, field_north, _ = (
                    x.ravel() for x in ppigrf.igrf(lon, lat, height_km, datetime(*date))
                )
                strong = np.hypot(field_east, field_north) > 15_000
                gap = (found - np.degrees(np.arctan2(field_east, field_north)) + 180) % 360 - 180
                assert strong.mean() > 0.7
                assert np.abs(gap[strong]).max() < limit


@pytest.mark.parametrize(
    ("lat", "lon", "degrees"),
    [(64.1, -21.9, -12), (-36.9, 174.8, 20), (52.3, 4.8, 2), (45.5, -73.6, -14)],
)
def test_sign_and_size_of_known_places(lat, lon, degrees):
    """Reykjavik and Montreal lie west of north, Auckland east, Amsterdam nearly on it (charts of
    2020)."""
    assert declination_deg([seconds(2020, 6, 1)], [lat], [lon])[0] == pytest.approx(
        degrees, abs=1.2
    )


def test_a_row_depends_on_itself_alone():
    draw = np.random.default_rng(1)
    ts = seconds(2019, 12, 31) + draw.uniform(0, 2e5, 300)
    lat = draw.uniform(40, 50, 300)
    lon = draw.uniform(-2, 9, 300)
    whole = declination_deg(ts, lat, lon)
    parts = np.concatenate(
        [
            declination_deg(ts[i : i + 60], lat[i : i + 60], lon[i : i + 60])
            for i in range(0, 300, 60)
        ]
    )
    assert np.array_equal(whole, parts)


def test_no_seam_at_the_date_line_the_year_or_the_pole():
    lon = np.array([179.9999, -179.9999, 180.0, -180.0])
    assert np.ptp(declination_deg(np.full(4, seconds(2020, 1, 1)), np.full(4, 10.0), lon)) < 1e-3
    years = declination_deg(
        [seconds(2021, 1, 1) - 1, seconds(2021, 1, 1)], [50.0, 50.0], [5.0, 5.0]
    )
    assert abs(years[1] - years[0]) < 1e-4
    assert np.isfinite(declination_deg([0.0, 0.0], [90.0, -90.0], [0.0, 180.0])).all()


def test_unknown_places_and_times():
    assert np.isnan(declination_deg([0.0, np.nan], [np.nan, 50.0], [5.0, 5.0])).all()
    with pytest.raises(DataError, match="outside the magnetic model"):
        declination_deg([seconds(2031, 1, 1)], [50.0], [5.0])
