"""Airborne position from ADS-B's compact position reporting (DO-260B appendix A 1.7; ICAO Doc 9871
C.2.6).

A frame holds 17 bits of latitude and of longitude within a zone. An even and an odd frame together
fix the zones (global decoding); a known position within half a zone does it for a single frame
(local decoding). `positions` pairs the frames of each aircraft in time and keeps a position only if
the aircraft's neighbouring ones bear it out. Degrees, seconds, arrays [N].
"""

from typing import Any

import numpy as np
import polars as pl

STEPS = float(1 << 17)
NEIGHBOUR_MAX_S = 60.0  # older neighbours say nothing about continuity
SPEED_MAX_DEG_S = 700.0 / 60.0 / 3600.0  # 700 kn on a great circle
SLACK_DEG = 0.02  # 1.2 NM: stamps may be whole seconds
REASONS = ("no_pair", "zone_mismatch", "position_jump")


def _zone_edges() -> np.ndarray:
    """[58] latitudes (deg), rising, at which the number of longitude zones falls from 59 to
    58, ..., from 2 to 1."""
    zones = np.arange(59, 1, -1)
    return np.degrees(
        np.arccos(np.sqrt((1 - np.cos(np.pi / 30)) / (1 - np.cos(2 * np.pi / zones))))
    )


_EDGES = _zone_edges()


def longitude_zones(lat_deg: np.ndarray) -> np.ndarray:
    """NL [N] int: number of longitude zones at a latitude, 59 at the equator and 1 beyond 87
    degrees."""
    return 59 - np.searchsorted(_EDGES, np.abs(lat_deg), side="left")


def _half_turn(degrees: np.ndarray) -> np.ndarray:
    """Angles folded into [-180, 180)."""
    return (degrees + 180.0) % 360.0 - 180.0


def global_position(
    even_lat: np.ndarray,
    even_lon: np.ndarray,
    odd_lat: np.ndarray,
    odd_lon: np.ndarray,
    latest_odd: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude (deg) of the later frame of even/odd pairs of 17-bit values.

    NaN where the two frames lie in different longitude zones (the aircraft crossed an edge between
    them) or off the globe.
    """
    even_lat, even_lon, odd_lat, odd_lon = (
        np.asarray(x, float) / STEPS for x in (even_lat, even_lon, odd_lat, odd_lon)
    )
    zone = np.floor(59 * even_lat - 60 * odd_lat + 0.5)
    lat_even = _half_turn(360.0 / 60 * (zone % 60 + even_lat))
    lat_odd = _half_turn(360.0 / 59 * (zone % 59 + odd_lat))
    lat = np.where(latest_odd, lat_odd, lat_even)
    zones = longitude_zones(lat)
    good = (longitude_zones(lat_even) == longitude_zones(lat_odd)) & (np.abs(lat) <= 90)
    count = np.maximum(zones - latest_odd, 1)
    zone = np.floor(even_lon * (zones - 1) - odd_lon * zones + 0.5)
    lon = _half_turn(360.0 / count * (zone % count + np.where(latest_odd, odd_lon, even_lon)))
    return np.where(good, lat, np.nan), np.where(good, lon, np.nan)


def local_position(
    odd: np.ndarray,
    cpr_lat: np.ndarray,
    cpr_lon: np.ndarray,
    near_lat_deg: np.ndarray,
    near_lon_deg: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude (deg) of single frames, nearest to a known position at most half a
    zone (180 NM) away."""
    cpr_lat, cpr_lon = np.asarray(cpr_lat, float) / STEPS, np.asarray(cpr_lon, float) / STEPS
    height = np.where(odd, 360.0 / 59, 360.0 / 60)
    lat = height * (np.round(near_lat_deg / height - cpr_lat) + cpr_lat)
    width = 360.0 / np.maximum(longitude_zones(lat) - odd, 1)
    lon = width * (np.round(near_lon_deg / width - cpr_lon) + cpr_lon)
    return lat, _half_turn(lon)


def distance_deg(
    lat_a: np.ndarray, lon_a: np.ndarray, lat_b: np.ndarray, lon_b: np.ndarray
) -> np.ndarray:
    """Great-circle distance in degrees of arc (60 NM each); haversine, exact enough at every
    distance."""
    lat_a, lon_a, lat_b, lon_b = (np.radians(x) for x in (lat_a, lon_a, lat_b, lon_b))
    part = (
        np.sin((lat_b - lat_a) / 2) ** 2
        + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    )
    return 2 * np.degrees(np.arcsin(np.sqrt(np.minimum(part, 1.0))))


def _latest(chosen: np.ndarray, aircraft: np.ndarray) -> np.ndarray:
    """For rows sorted by aircraft and time: index [N] of the last chosen row up to here of the
    same aircraft, -1 where none."""
    index = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))
    return np.where((index >= 0) & (aircraft[index] == aircraft), index, -1)


def _reachable(ts_s, lat, lon, other) -> np.ndarray:
    """Mask [N]: the position of row `other` [N] can be flown to or from within the time between
    the two."""
    limit = SPEED_MAX_DEG_S * np.abs(ts_s - ts_s[other]) + SLACK_DEG
    return distance_deg(lat, lon, lat[other], lon[other]) <= limit


def _outvoted(ts_s, aircraft, lat, lon) -> np.ndarray:
    """Mask [N] of positions that more of the (up to four) nearest in time contradict than
    confirm. Rows sorted, no NaN."""
    count = len(ts_s)
    votes = np.zeros(count, np.int8)
    for shift in (-2, -1, 1, 2):
        other = np.arange(count) + shift
        inside = (other >= 0) & (other < count)
        other = np.clip(other, 0, max(count - 1, 0))
        counts = (
            inside & (aircraft[other] == aircraft) & (np.abs(ts_s[other] - ts_s) <= NEIGHBOUR_MAX_S)
        )
        votes += np.where(counts, np.where(_reachable(ts_s, lat, lon, other), 1, -1), 0).astype(
            np.int8
        )
    return votes < 0


def _global(
    ts_s, aircraft, odd, cpr_lat, cpr_lon, pair_max_s
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Global decoding of sorted rows with the latest earlier frame of the other kind: lat, lon
    [N] (NaN), has a partner [N]."""
    partner = np.where(odd, _latest(~odd, aircraft), _latest(odd, aircraft))
    paired = (partner >= 0) & (ts_s - ts_s[partner] <= pair_max_s)
    lat, lon = np.full(len(ts_s), np.nan), np.full(len(ts_s), np.nan)
    row, other = np.flatnonzero(paired), partner[paired]
    even_row, odd_row = np.where(odd[row], other, row), np.where(odd[row], row, other)
    lat[row], lon[row] = global_position(
        cpr_lat[even_row], cpr_lon[even_row], cpr_lat[odd_row], cpr_lon[odd_row], odd[row]
    )
    return lat, lon, paired


def positions(
    ts_s: np.ndarray,
    aircraft: np.ndarray,
    odd: np.ndarray,
    cpr_lat: np.ndarray,
    cpr_lon: np.ndarray,
    pair_max_s: float,
) -> pl.DataFrame:
    """Positions of frames in any order: lat_deg, lon_deg (null where none) and drop (why there is
    none, one of REASONS).

    ts_s [N] s; aircraft [N], any sortable array (addresses); odd [N]; cpr_lat, cpr_lon [N] 17-bit
    values without NaN;
    pair_max_s: greatest age of the partner. A frame without a usable partner is decoded next to the
    aircraft's last kept position, at most NEIGHBOUR_MAX_S old. Positions that their neighbours
    contradict are dropped.
    """
    _, aircraft = np.unique(np.asarray(aircraft), return_inverse=True)
    order = np.lexsort((np.asarray(ts_s), aircraft))
    ts_s = np.asarray(ts_s, float)[order]
    aircraft = aircraft[order]
    odd = np.asarray(odd, bool)[order]
    cpr_lat, cpr_lon = np.asarray(cpr_lat, float)[order], np.asarray(cpr_lon, float)[order]
    lon: Any
    lat: Any
    lat, lon, paired = _global(ts_s, aircraft, odd, cpr_lat, cpr_lon, pair_max_s)
    reason = np.where(np.isfinite(lat), -1, np.where(paired, 1, 0))
    row = np.flatnonzero(reason < 0)
    jump = row[_outvoted(ts_s[row], aircraft[row], lat[row], lon[row])]
    reason[jump], lat[jump], lon[jump] = 2, np.nan, np.nan
    near = _latest(reason < 0, aircraft)
    alone = np.flatnonzero((reason >= 0) & (near >= 0) & (ts_s - ts_s[near] <= NEIGHBOUR_MAX_S))
    near = near[alone]
    lat[alone], lon[alone] = local_position(
        odd[alone], cpr_lat[alone], cpr_lon[alone], lat[near], lon[near]
    )
    far = (
        distance_deg(lat[alone], lon[alone], lat[near], lon[near])
        > SPEED_MAX_DEG_S * (ts_s[alone] - ts_s[near]) + SLACK_DEG
    )
    reason[alone] = np.where(far, 2, -1)
    lat[alone[far]], lon[alone[far]] = np.nan, np.nan
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    names = pl.Series("drop", [*REASONS, None], dtype=pl.String).gather(
        np.where(reason < 0, len(REASONS), reason)[back]
    )
    lat, lon = (pl.Series(degrees[back], nan_to_null=True) for degrees in (lat, lon))
    return pl.DataFrame({"lat_deg": lat, "lon_deg": lon, "drop": names})
