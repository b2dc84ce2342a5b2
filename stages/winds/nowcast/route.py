"""A route through the nowcast: the wind along it, the time that it takes, and what the wind's
error may cost.

Legs are great circles on the sphere, cut into equal pieces of at most PIECE_KM; each piece is asked
for at its middle, at the time at which still air would bring the aircraft there. With an airspeed
V, a wind w along the track and x across it, the ground speed is w + sqrt(V² - x²). The time's
standard deviation is that of winds that err alike all the way, the worst case: errors that change
along the way cost less. Units: degrees, knots, seconds, km.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.errors import InputError
from stages.units import EARTH_KM, KNOT_M_S
from stages.winds.nowcast.answers import Wind
from stages.winds.nowcast.points import Point, parse, parse_altitude, parse_time
from stages.winds.nowcast.refusals import iso

PIECE_KM = 20.0
NAUTICAL_MILE_KM = 1.852
EXPECTED = "ALT,TIME,AIRSPEED_KN,LAT,LON,LAT,LON,... with two waypoints or more"


@dataclass(frozen=True)
class Route:
    """The middles (N) of the pieces, where they lead (N, 2; east and north, unit vectors), their
    lengths (N,), km, the airspeed, kn, and the start, Unix seconds."""

    points: list[Point]
    track: np.ndarray
    length_km: np.ndarray
    airspeed_kn: float
    start_s: float

    @property
    def end_s(self) -> float:
        """Unix seconds of the end in still air."""
        speed_m_s = self.airspeed_kn * KNOT_M_S
        return self.start_s + 1000 * float(self.length_km.sum()) / speed_m_s


def read(text: str) -> Route:
    """'ALT,TIME,AIRSPEED_KN,LAT,LON,LAT,LON,...'; InputError says what is wrong with it."""
    parts = text.split(",")
    if len(parts) < 7 or len(parts) % 2 == 0:
        raise InputError("that is not a route", found=text, expected=EXPECTED)
    try:
        alt_ft, airspeed = parse_altitude(parts[0]), float(parts[2])
    except ValueError:
        airspeed = 0.0
    if not 30 <= airspeed <= 1000:
        raise InputError("that is not a route", found=text, expected=f"{EXPECTED}; 30 to 1000 kn")
    start_s = parse_time(parts[1])
    ways = [
        parse(f"{lat},{lon},{alt_ft},{start_s}")
        for lat, lon in zip(parts[3::2], parts[4::2], strict=True)
    ]
    middles, tracks, lengths = [], [], []
    for one, other in itertools.pairwise(ways):
        found = pieces(vector(one), vector(other))
        for middle, track, length in found:
            middles.append(middle)
            tracks.append(track)
            lengths.append(length)
    if not lengths:
        raise InputError("the route leads nowhere", found=text, expected=EXPECTED)
    length_km = np.array(lengths)
    there_km = np.cumsum(length_km) - length_km / 2
    times = start_s + 1000 * there_km / (airspeed * KNOT_M_S)
    points = [
        Point(lat, lon, alt_ft, float(ts_s))
        for (lat, lon), ts_s in zip(middles, times, strict=True)
    ]
    return Route(points, np.array(tracks), length_km, airspeed, start_s)


def refuse_late(
    route: Route, times_s: tuple[float, float], slice_s: float, lead_s: float, where: str
) -> None:
    """InputError, in the words of a route, for one that outlasts what a model reaches from winds of
    these times (first and last): its points' times were written by nobody."""
    first_s, newest_s = times_s
    first, last = (math.floor(value / slice_s) * slice_s for value in times_s)
    reach_s = last + 2 * slice_s + lead_s
    over_s = route.points[-1].ts_s - reach_s
    if over_s < 0:
        return
    by_s = route.start_s - over_s - 1  # the end of what is reached is excluded
    start = f"start by {iso(by_s)}, " if by_s >= first + slice_s + lead_s else ""
    raise InputError(
        "the route leads beyond what the model reaches",
        where=where,
        found=f"a route that takes {(route.end_s - route.start_s) / 60:.1f} minutes in still air, "
        f"from {iso(route.start_s)} to {iso(route.end_s)}; winds from {iso(first_s)} to "
        f"{iso(newest_s)}",
        expected=f"a route that ends by {iso(reach_s)}: the model reaches "
        f"{(reach_s - newest_s) / 60:.1f} minutes after the newest wind",
        remedy=f"{start}fly a shorter one, or give a capture with newer winds",
    )


def vector(point: Point) -> np.ndarray:
    """The unit vector (3,) from the Earth's centre to a place."""
    lat, lon = math.radians(point.lat_deg), math.radians(point.lon_deg)
    return np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])


def pieces(
    start: np.ndarray, end: np.ndarray
) -> list[tuple[tuple[float, float], tuple[float, float], float]]:
    """The pieces of a leg: (latitude, longitude) of the middle, the direction there (east, north),
    the length in km; none of a leg without length."""
    angle = math.atan2(float(np.linalg.norm(np.cross(start, end))), float(start @ end))
    if angle * EARTH_KM < 1e-3:
        return []
    count = math.ceil(angle * EARTH_KM / PIECE_KM)
    normal = np.cross(np.cross(start, end), start)
    across = normal / np.linalg.norm(normal)
    found = []
    for i in range(count):
        turn = angle * (i + 0.5) / count
        here = math.cos(turn) * start + math.sin(turn) * across
        ahead = math.cos(turn) * across - math.sin(turn) * start
        lat, lon = math.asin(here[2]), math.atan2(here[1], here[0])
        east = float(-math.sin(lon) * ahead[0] + math.cos(lon) * ahead[1])
        north = float(ahead[2] / math.cos(lat))
        place = (math.degrees(lat), math.degrees(lon))
        found.append((place, (east, north), angle * EARTH_KM / count))
    return found


def seconds(route: Route, u_m_s: np.ndarray, v_m_s: np.ndarray) -> float:
    """The time that the route takes in winds (N,), m/s. InputError where one carries the aircraft
    away from it."""
    airspeed = route.airspeed_kn * KNOT_M_S
    along = route.track[:, 0] * u_m_s + route.track[:, 1] * v_m_s
    beside = np.abs(route.track[:, 0] * v_m_s - route.track[:, 1] * u_m_s)
    ground = along + np.sqrt(np.maximum(airspeed**2 - beside**2, 0.0))
    if (ground <= 0).any() or (beside >= airspeed).any():
        raise InputError(
            "the wind is stronger than the aircraft",
            where="the route",
            found=f"an airspeed of {route.airspeed_kn:g} kn",
            remedy="fly faster, or elsewhere",
        )
    return float((1000 * route.length_km / ground).sum())


def flown(route: Route, rows: list[Wind]) -> dict[str, float | None]:
    """The route's length, its time in still air and in the nowcast's wind, and what an error of
    one standard deviation all the way costs (`slower_s`) or saves (`faster_s`, negative; both None
    where a spread is not known)."""
    u, v = (np.array([getattr(row, name) for row in rows]) for name in ("u_m_s", "v_m_s"))
    time_s = seconds(route, u, v)
    told: dict[str, float | None] = {
        "length_km": float(route.length_km.sum()),
        "airspeed_kn": route.airspeed_kn,
        "still_air_s": seconds(route, 0 * u, 0 * v),
        "time_s": time_s,
        "slower_s": None,
        "faster_s": None,
    }
    if all(row.spread_m_s for row in rows):
        spread = np.array([row.spread_m_s for row in rows])
        off = np.sqrt((route.track**2 * spread**2).sum(1))
        for name, sign in (("slower_s", -1), ("faster_s", 1)):
            winds = (part + sign * off * route.track[:, i] for i, part in enumerate((u, v)))
            told[name] = seconds(route, *winds) - time_s
    return told


def summary(told: dict[str, Any]) -> str:
    """What `flown` found, for a person."""
    still, time_s = told["still_air_s"], told["time_s"]
    lines = [
        f"route: {told['length_km'] / NAUTICAL_MILE_KM:.0f} NM at {told['airspeed_kn']:g} kn",
        f"still air {clock(still)}, with this wind {clock(time_s)} ({time_s - still:+.0f} s)",
    ]
    if told["slower_s"] is not None:
        lines.append(
            f"an error of one standard deviation all the way costs {told['slower_s']:.0f} s "
            f"({told['faster_s']:+.0f} s the other way)"
        )
    return "\n".join(lines)


def clock(seconds: float) -> str:
    """Minutes and seconds, as 12:34."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
