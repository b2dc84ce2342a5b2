"""Magnetic declination of BDS 6,0 headings: true heading = magnetic heading + declination (east
positive).

The field is IGRF-14 (ppigrf), its east and north parts evaluated at the nodes of a 1 degree grid on
1 January before and after each row, at 10 km, and interpolated linearly in between; only the cells
that rows fall into are evaluated. A row's value depends on that row alone, so files may be cut
anywhere. IGRF is itself linear in time between five-year epochs.
Accuracy: within 0.15 degrees of IGRF at the point itself, 0 to 20 km up, wherever the horizontal
field exceeds 15,000 nT (all airspace but the surroundings of the magnetic poles; tests); 0.04 over
Europe. IGRF is within about 0.5 degrees of the field (crust, storms), and an aircraft's own tables
may be years old: both are larger than what is lost here.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from stages.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

HEIGHT_KM = 10.0
FIRST_YEAR, LAST_YEAR = (
    1900,
    2029,
)  # IGRF-14 ends on 2030-01-01; beyond it ppigrf would go on with a constant


def _nodes(lat: np.ndarray, lon: np.ndarray, year: int) -> np.ndarray:
    """East and north field (N, 2, nT) at integer node coordinates on 1 January of `year`."""
    import ppigrf  # brings pandas: only here, and only when a declination is wanted

    east, north, _ = ppigrf.igrf(
        lon.astype(np.float64), np.clip(lat, -89.99, 89.99), HEIGHT_KM, datetime(year, 1, 1)
    )
    # ppigrf sums in an order that depends on how many nodes are asked for: rounding makes a node
    # the same in any company
    return np.round(np.stack([np.ravel(east), np.ravel(north)], axis=1), 3)


def _year_start_s(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


def covers(ts_s: "ArrayLike") -> np.ndarray:
    """Mask of Unix times (s) for which the magnetic model holds; False for NaN."""
    ts = np.asarray(ts_s, dtype=np.float64)
    return (ts >= _year_start_s(FIRST_YEAR)) & (ts < _year_start_s(LAST_YEAR + 1))


def declination_deg(ts_s: "ArrayLike", lat_deg: "ArrayLike", lon_deg: "ArrayLike") -> np.ndarray:
    """Declination in degrees, east positive, for rows of Unix time (s), latitude and longitude
    (degrees); all of shape (N,).

    NaN where a coordinate is not finite. DataError when a finite time lies outside 1900 to 2029, or
    a latitude beyond the poles.
    """
    ts, lat, lon = (np.asarray(x, dtype=np.float64) for x in (ts_s, lat_deg, lon_deg))
    result = np.full(ts.shape, np.nan)
    known = np.isfinite(ts) & np.isfinite(lat) & np.isfinite(lon)
    if not known.any():
        return result
    ts, lat, lon = ts[known], lat[known], lon[known]
    if not covers(ts).all():
        raise DataError(
            "a time lies outside the magnetic model",
            expected=f"Unix seconds of {FIRST_YEAR} to {LAST_YEAR}",
            found=f"{ts.min()} to {ts.max()}",
            remedy="mend the time stamps, or set decode.declination to false",
        )
    if (np.abs(lat) > 90).any():
        raise DataError(
            "a latitude lies beyond the poles",
            expected="-90 to 90 degrees",
            found=f"{lat.min()} to {lat.max()}",
            remedy="look at the source of the positions",
        )
    field = np.empty((ts.size, 2))
    years = ts.astype("datetime64[s]").astype("datetime64[Y]").astype(np.int64) + 1970
    for year in np.unique(years):
        rows = np.flatnonzero(years == year)
        start, end = _year_start_s(int(year)), _year_start_s(int(year) + 1)
        share = ((ts[rows] - start) / (end - start))[:, None]
        before, after = (_interpolated(lat[rows], lon[rows], int(y)) for y in (year, year + 1))
        field[rows] = before + share * (after - before)
    result[known] = np.degrees(np.arctan2(field[:, 0], field[:, 1]))
    return result


def _interpolated(lat: np.ndarray, lon: np.ndarray, year: int) -> np.ndarray:
    """Bilinear field (N, 2, nT) from the corners of each point's 1 degree cell; each corner is
    evaluated once."""
    south, west = np.floor(lat), np.floor(lon)
    up, right = (lat - south)[:, None], (lon - west)[:, None]
    row, column = south.astype(np.int64) + 90, (west.astype(np.int64) + 180) % 360
    corners = [(row + i) * 360 + (column + j) % 360 for i in (0, 1) for j in (0, 1)]
    table = np.full((182 * 360, 2), np.nan)
    used = np.zeros(len(table), dtype=bool)
    for keys in corners:
        used[keys] = True
    keys = np.flatnonzero(used)
    table[keys] = _nodes(keys // 360 - 90, keys % 360 - 180, year)
    lower, upper = (table[a] + right * (table[b] - table[a]) for a, b in (corners[:2], corners[2:]))
    return lower + up * (upper - lower)
