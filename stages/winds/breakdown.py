"""Where a forecast errs: altitude bands, distance to the nearest context point, tracks.

Distance is three-dimensional: the great circle on a sphere of 6,371.0088 km and the difference of
altitude, both in km, as the legs of a right angle. It is always taken to the slice context at the
profile's lead, whatever context a model reads, so that a bin holds the same points for all models.
Shapes: N points, C context points.
"""

import itertools

import numpy as np

from stages.units import EARTH_KM, FOOT_KM

BAND_FT = 5000
DISTANCES_KM = (0, 5, 10, 20, 40, 80, 160)  # lower edges; the last bin is open
HULL_TOLERANCE_M_S = 1e-3  # float32 arithmetic may put an average this far outside
TRACK_LEAST_KM = 1.0  # a shorter way within the slice does not give a direction


def altitude_bands(alt_ft: np.ndarray) -> np.ndarray:
    """Bands of 5,000 ft by flight level, (N,) str that sort by height: 'FL300-350' is 30,000 ft
    and more, below 35,000 ft."""
    low = np.floor(np.asarray(alt_ft, np.float64) / BAND_FT).astype(int) * (BAND_FT // 100)
    labels = {
        level: "below FL000" if level < 0 else f"FL{level:03d}-{level + BAND_FT // 100:03d}"
        for level in np.unique(low)
    }
    return np.array([labels[level] for level in low])


def distance_bins(km: np.ndarray) -> np.ndarray:
    """Bins of distance, (N,) str that sort by distance: '020-040 km' is 20 km and more, below 40
    km."""
    names = [f"{low:03d}-{high:03d} km" for low, high in itertools.pairwise(DISTANCES_KM)]
    return np.array([*names, f"{DISTANCES_KM[-1]:03d} km and more"])[
        np.digitize(km, DISTANCES_KM[1:])
    ]


def great_circle_km(
    lat1: np.ndarray, lon1: np.ndarray, lat2: np.ndarray, lon2: np.ndarray
) -> np.ndarray:
    """Haversine distance between positions in degrees; arguments broadcast."""
    lat1, lon1, lat2, lon2 = (
        np.radians(np.asarray(x, np.float64)) for x in (lat1, lon1, lat2, lon2)
    )
    half = (
        np.sin((lat2 - lat1) / 2) ** 2
        + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0)))


def nearest_km(points: np.ndarray, context: np.ndarray, block: int = 1_000_000) -> np.ndarray:
    """Distance (N,) from points (N, 3) to the nearest of context (C, 3); columns are degrees
    north, degrees east, feet."""
    step = max(1, block // len(context))
    parts = []
    for first in range(0, len(points), step):
        lat, lon, alt = points[first : first + step, :, None].transpose(1, 0, 2)
        across = great_circle_km(lat, lon, context[None, :, 0], context[None, :, 1])
        parts.append(
            np.hypot(across, (alt - context[None, :, 2].astype(np.float64)) * FOOT_KM).min(1)
        )
    return np.concatenate(parts) if parts else np.empty(0)


def tracks(
    slices: np.ndarray,
    flight: np.ndarray,
    t_s: np.ndarray,
    lat_deg: np.ndarray,
    lon_deg: np.ndarray,
) -> np.ndarray:
    """Unit vectors (N, 2) east, north of each row's motion: its flight's way from first to last row
    within the slice.

    NaN where the flight has moved less than TRACK_LEAST_KM in the slice (one row, or a stale
    position).
    """
    order = np.lexsort((t_s, flight, slices))
    s, f = slices[order], flight[order]
    first = (
        np.flatnonzero(np.r_[True, (s[1:] != s[:-1]) | (f[1:] != f[:-1])])
        if len(s)
        else np.empty(0, int)
    )
    last = np.r_[first[1:], len(s)] - 1 if len(s) else first
    lat, lon = lat_deg[order].astype(np.float64), lon_deg[order].astype(np.float64)
    east = np.radians((lon[last] - lon[first] + 180) % 360 - 180) * np.cos(
        np.radians((lat[first] + lat[last]) / 2)
    )
    way = np.stack([east, np.radians(lat[last] - lat[first])], 1) * EARTH_KM
    length = np.hypot(*way.T)
    unit = np.full_like(way, np.nan)
    moved = length >= TRACK_LEAST_KM
    unit[moved] = way[moved] / length[moved, None]
    result = np.empty((len(s), 2))
    result[order] = np.repeat(unit, last - first + 1, axis=0)
    return result
