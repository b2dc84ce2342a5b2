"""A wind whose law is known: each component a Gaussian process, measured with independent noise
along simulated flights.

Component c at place p and time t is mean_c + GP, independent of the other component, with
covariance sd^2 exp(-(de^2 + dn^2) / (2 horizontal^2) - dz^2 / (2 vertical^2) - |dt| / time); a
measurement adds normal noise of noise_m_s. So the exact GP with these numbers gives the best
forecast there is, and every model its distance from it. Distances are those of the plane about the
area's middle (lat0, lon0), R = 6371.0088 km, one degree = 111.19508 km: east = R cos(lat0) (lon -
lon0), north = R (lat - lat0), up = altitude, in km; t in min since the start. The draw uses
positions and times as rounded in the file. Aircraft cross the area straight at a constant ground
speed; one in two changes its level on the way; who leaves is followed by another at once, so every
one of the `aircraft` reports every update_s and the number of rows is fixed.
Shapes: N reports, F flights one after the other. Units in the names.
"""

from datetime import datetime
from pathlib import Path

import numpy as np

from stages.errors import InputError
from stages.files import atomic_file
from stages.params import Gaussian
from stages.seeds import stream
from stages.units import FOOT_M
from stages.winds.sky.traffic import Area
from stages.winds.sky.wind import EARTH_M

COLUMNS = (
    "ts_s",
    "icao",
    "lat_deg",
    "lon_deg",
    "alt_ft",
    "u_m_s",
    "v_m_s",
    "u_true_m_s",
    "v_true_m_s",
)
SPEED_M_S = (190.0, 250.0)  # over ground
CLIMB_M_S = 8.0
DEGREE_DECIMALS, WIND_DECIMALS = (
    4,
    3,
)  # of what is written; altitudes are whole feet, times milliseconds


def airspace(config: Gaussian) -> Area:
    """The box that is flown through. InputError for one without height or width, or that reaches
    a pole or the date line."""
    area = Area(
        *config.south_west, config.extent_km[0] * 1e3, config.extent_km[1] * 1e3, *config.altitude_m
    )
    if not area.bottom_m < area.top_m <= 15000:
        raise InputError(
            "altitude_m is not a range below 15 km",
            where="gaussian.altitude_m",
            found=f"{area.bottom_m:g} to {area.top_m:g} m",
        )
    if min(config.extent_km) < 20:
        raise InputError(
            "the area is too small to be flown through",
            where="gaussian.extent_km",
            expected="at least 20 km each way",
            found=f"{config.extent_km[0]:g} x {config.extent_km[1]:g} km",
        )
    north, east = area.degrees(area.east_m, area.north_m)
    if north > 85 or east > 180:
        raise InputError(
            "the area is too large or too near the pole or the date line",
            where="gaussian.extent_km",
            expected="north edge up to 85 degrees, east edge up to 180",
            found=f"{north:.1f} and {east:.1f}",
        )
    return area


def chords(
    rng: np.random.Generator, area: Area, flights: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Straight ways across the area, each in a random direction through a random point of its
    middle half.

    Returns where they begin (F, 2), m east and north of the south-west corner, their unit
    directions (F, 2) and lengths (F,), m.
    """
    size = np.array([area.east_m, area.north_m])
    through = rng.uniform(0.25, 0.75, (flights, 2)) * size
    angle = rng.uniform(0, 2 * np.pi, flights)
    way = np.stack([np.cos(angle), np.sin(angle)], 1)
    ahead, behind = (
        np.where(sign * way > 0, size - through, through) / np.maximum(np.abs(way), 1e-9)
        for sign in (1, -1)
    )
    back = behind.min(1)
    return through - back[:, None] * way, way, ahead.min(1) + back


def slot(config: Gaussian, area: Area, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the aircraft report that follow each other in one place of the `aircraft`: n reports,
    update_s apart.

    Returns the times (n,), whole ms since the start; which of the slot's flights each is of (n,);
    lat, lon, alt (n, 3), degrees and m.
    """
    rng = stream(config.seed, "gaussian", "flights", number)
    n = config.reports // config.aircraft
    shortest_s = min(area.east_m, area.north_m) / 2 / SPEED_M_S[1]
    flights = int(n * config.update_s / shortest_s) + 2
    begin, way, length = chords(rng, area, flights)
    speed = rng.uniform(*SPEED_M_S, flights)
    entry = (
        np.concatenate([[0.0], np.cumsum(length / speed)[:-1]])
        - rng.random() * length[0] / speed[0]
    )  # the first is on its way
    level, other = rng.uniform(area.bottom_m, area.top_m, (2, flights))
    change = np.where(rng.random(flights) < 0.5, other - level, 0.0)
    leaves = rng.uniform(0, 0.5, flights) * length / speed
    t_ms = np.rint((np.arange(n) + rng.random()) * config.update_s * 1e3).astype(np.int64)
    of = np.searchsorted(entry, t_ms / 1e3, side="right") - 1
    since = t_ms / 1e3 - entry[of]
    climbed = np.minimum(np.abs(change)[of], CLIMB_M_S * np.maximum(since - leaves[of], 0))
    lat, lon = area.degrees(*(begin[of] + way[of] * (speed[of] * since)[:, None]).T)
    return t_ms, of, np.stack([lat, lon, level[of] + np.sign(change)[of] * climbed], 1)


def reports(config: Gaussian) -> dict[str, np.ndarray]:
    """Where and when aircraft report, as the file will have it, sorted by time and address.

    Columns (N,): t_ms since the start, address, lat_deg, lon_deg, alt_ft. InputError for an area
    that cannot be.
    """
    area = airspace(config)
    t_ms, of, place = (
        np.concatenate(parts)
        for parts in zip(*(slot(config, area, k) for k in range(config.aircraft)), strict=True)
    )
    who = of * config.aircraft + np.repeat(
        np.arange(config.aircraft), config.reports // config.aircraft
    )
    columns = {
        "t_ms": t_ms,
        "address": 0x3C0000 + np.unique(who, return_inverse=True)[1],
        "lat_deg": np.round(place[:, 0], DEGREE_DECIMALS) + 0.0,
        "lon_deg": np.round(place[:, 1], DEGREE_DECIMALS) + 0.0,
        "alt_ft": np.rint(place[:, 2] / FOOT_M),
    }
    order = np.lexsort((columns["address"], t_ms))
    return {name: column[order] for name, column in columns.items()}


def points(
    config: Gaussian,
    lat_deg: np.ndarray,
    lon_deg: np.ndarray,
    alt_ft: np.ndarray,
    t_min: np.ndarray,
) -> np.ndarray:
    """Places and times (N,) on the plane of the law, (N, 4): km east, north and up, min since
    the start."""
    area = airspace(config)
    degree_km = np.radians(EARTH_M / 1e3)
    return np.stack(
        [
            degree_km * np.cos(np.radians(area.lat0)) * (lon_deg - area.lon0),
            degree_km * (lat_deg - area.lat0),
            np.asarray(alt_ft) * (FOOT_M / 1e3),
            t_min,
        ],
        1,
    )


def correlation(config: Gaussian, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The process' correlation between points a (N, 4) and b (M, 4) of `points`: (N, M)."""
    weight = (
        0.5 / config.horizontal_km**2,
        0.5 / config.horizontal_km**2,
        0.5 / config.vertical_km**2,
        1 / config.time_min,
    )
    exponent = np.zeros((len(a), len(b)))
    for axis, w in enumerate(weight):
        gap = np.subtract.outer(a[:, axis], b[:, axis])
        exponent -= w * (np.abs(gap) if axis == 3 else gap**2)
    return np.exp(exponent, out=exponent)


def draw(config: Gaussian, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The true wind and the measured one at points x (N, 4), both (N, 2), m/s towards east and
    north: one exact draw of the law.

    InputError when points are so much alike that their covariance has no Cholesky factor in
    float64.
    """
    try:
        factor = np.linalg.cholesky(correlation(config, x, x))
    except np.linalg.LinAlgError:
        raise InputError(
            "the wind's covariance is singular in float64",
            where="gaussian",
            found=f"{len(x)} reports",
            expected="reports that differ",
            remedy="make time_min or horizontal_km shorter, or update_s longer",
        ) from None
    unit = factor @ stream(config.seed, "gaussian", "wind").standard_normal((len(x), 2))
    true = np.array(config.mean_m_s) + config.sd_m_s * unit
    return true, true + config.noise_m_s * stream(config.seed, "gaussian", "noise").standard_normal(
        (len(x), 2)
    )


def make(config: Gaussian, folder: Path) -> None:
    """Write winds.csv (COLUMNS) into `folder`. InputError where the parameters describe no such
    wind."""
    rows = reports(config)
    x = points(config, rows["lat_deg"], rows["lon_deg"], rows["alt_ft"], rows["t_ms"] / 60e3)
    true, measured = (
        np.round(wind, WIND_DECIMALS) + 0.0 for wind in draw(config, x)
    )  # + 0.0: no negative zeros
    t_ms = round(datetime.fromisoformat(config.start).timestamp() * 1000) + rows["t_ms"]
    place, wind = f"%.{DEGREE_DECIMALS}f", f"%.{WIND_DECIMALS}f"
    line = ",".join(["%d.%03d", "%06X", place, place, "%d", wind, wind, wind, wind]) + "\n"
    with atomic_file(folder / "winds.csv", "w") as text:
        text.write(",".join(COLUMNS) + "\n")
        columns = (
            t_ms // 1000,
            t_ms % 1000,
            rows["address"],
            rows["lat_deg"],
            rows["lon_deg"],
            rows["alt_ft"],
            *measured.T,
            *true.T,
        )
        text.writelines(line % row for row in zip(*columns, strict=True))
