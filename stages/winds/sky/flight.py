"""Flying a block of flights along their routes through the wind.

All F flights go side by side, each in its own time since entry, so one step of NumPy moves all of
them; who has left the area is taken out. Guidance: fly the track to the next waypoint, turn early
enough to roll out on the next leg; roll follows the track error, heading changes at g tan(roll) /
TAS, and the ground vector is air vector plus wind (Adams- Bashforth, second order). Altitude closes
in on its target at the type's rates; airspeed follows CAS, then Mach.
Units: degrees, m, m/s, s. Shapes: F flights, A of them still in the air.
"""

import numpy as np

from stages.units import FOOT_M, KNOT_M_S
from stages.winds.sky import air
from stages.winds.sky.traffic import TYPES, Area, Flights, Routes, Tracks, wrap
from stages.winds.sky.wind import EARTH_M, Wind

ROLL_MAX_DEG, ROLL_RATE_DEG_S, ROLL_GAIN = 25.0, 4.0, 1.3
ACCELERATION_M_S2 = 0.4
DESCENT_FT_MIN, ALTITUDE_LAG_S, RATE_LAG_S = 2800.0, 25.0, 6.0
FT_MIN = FOOT_M / 60
LOGGED = ("lat", "lon", "alt", "target", "vs", "tas", "heading", "roll", "u", "v", "east", "north")


def degrees_of(
    east: np.ndarray, north: np.ndarray, lat: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A displacement or speed in m east and north, as degrees of latitude and longitude."""
    return np.degrees(north / EARTH_M), np.degrees(east / (EARTH_M * np.cos(np.radians(lat))))


def to_point(lat: np.ndarray, lon: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Metres east and north of the rhumb line to `point` (A, 2)."""
    middle = np.radians((lat + point[:, 0]) / 2)
    return EARTH_M * np.cos(middle) * np.radians(point[:, 1] - lon), EARTH_M * np.radians(
        point[:, 0] - lat
    )


def airspeed(s: dict[str, np.ndarray], descends: np.ndarray) -> np.ndarray:
    """True airspeed of the schedule, m/s: the type's climb or descent CAS, until the cruise Mach
    number is slower."""
    types = TYPES[s["kind"]]
    cas = np.where(descends, types["descent_cas"], types["climb_cas"]) * KNOT_M_S * s["factor"]
    return np.minimum(
        air.tas_of_cas(cas, s["alt"]), types["mach"] * s["factor"] * air.sound_speed(s["alt"])
    )


def guide(s: dict[str, np.ndarray], routes: Routes) -> tuple[np.ndarray, np.ndarray]:
    """(track to fly in degrees, metres of route left); moves `s["next"]` on where a turn has to
    begin or a point is passed."""
    path = routes.points[s["route"]]
    rows = np.arange(len(path))
    last = path.shape[1] - 1
    east, north = to_point(s["lat"], s["lon"], path[rows, s["next"]])
    distance = np.hypot(east, north)
    after = np.minimum(s["next"] + 1, last)
    here = path[rows, s["next"]]
    onward = np.degrees(np.arctan2(*to_point(here[:, 0], here[:, 1], path[rows, after])))
    # a turn by angle c at radius r has to begin r tan(c / 2) before the corner
    radius = s["tas"] ** 2 / (air.G_M_S2 * np.tan(np.radians(0.8 * ROLL_MAX_DEG)))
    corner = np.radians(np.abs(wrap(onward - np.degrees(np.arctan2(east, north)))))
    early = radius * np.tan(np.minimum(corner, np.radians(120)) / 2) + 4 * s["tas"]
    turn = (
        (distance < early)
        & (routes.legs[s["route"], np.minimum(s["next"], last - 1)] > 0)
        & (s["next"] < last)
    )
    s["next"] = s["next"] + turn
    remaining = np.hypot(*to_point(s["lat"], s["lon"], path[rows, s["next"]])) + (
        routes.legs[s["route"]] * (np.arange(last) >= s["next"][:, None])
    ).sum(1)
    east, north = to_point(s["lat"], s["lon"], path[rows, s["next"]])
    return np.degrees(np.arctan2(east, north)), remaining


def step(s: dict[str, np.ndarray], routes: Routes, area: Area, wind: Wind, step_s: float) -> None:
    """Move all flights in the air on by `step_s`; `s` holds their state and is changed in place."""
    track, remaining = guide(s, routes)
    s["target"] = target = np.where(remaining < s["switch"], s["then"], s["level"])
    # vertical: towards the target at no more than the type climbs at this height
    climb = TYPES["climb_rate"][s["kind"]] * (1 - 0.6 * s["alt"] / 12500) * FT_MIN
    wanted = np.clip((target - s["alt"]) / ALTITUDE_LAG_S, -DESCENT_FT_MIN * FT_MIN, climb)
    rate = s["vs"] + (wanted - s["vs"]) * (1 - np.exp(-step_s / RATE_LAG_S))
    s["alt"] = np.minimum(s["alt"] + (s["vs"] + rate) / 2 * step_s, area.top_m)
    s["vs"] = rate
    change = airspeed(s, target < s["alt"] - 200) - s["tas"]
    s["tas"] = s["tas"] + np.clip(change, -ACCELERATION_M_S2 * step_s, ACCELERATION_M_S2 * step_s)
    # lateral: roll against the track error, turn with the bank
    error = wrap(track - np.degrees(np.arctan2(s["east"], s["north"])))
    bank = np.clip(ROLL_GAIN * error, -ROLL_MAX_DEG, ROLL_MAX_DEG)
    rolled = s["roll"] + np.clip(
        bank - s["roll"], -ROLL_RATE_DEG_S * step_s, ROLL_RATE_DEG_S * step_s
    )
    turn = np.degrees(air.G_M_S2 * np.tan(np.radians((s["roll"] + rolled) / 2)) / s["tas"])
    s["roll"], s["heading"] = rolled, (s["heading"] + turn * step_s) % 360
    # position from this step's and the last step's ground vector
    d_lat, d_lon = degrees_of(
        1.5 * s["east"] - 0.5 * s["east_before"],
        1.5 * s["north"] - 0.5 * s["north_before"],
        s["lat"],
    )
    s["lat"], s["lon"] = s["lat"] + d_lat * step_s, s["lon"] + d_lon * step_s
    s["since"] = s["since"] + step_s
    s["east_before"], s["north_before"] = s["east"], s["north"]
    blow(s, wind)


def blow(s: dict[str, np.ndarray], wind: Wind) -> None:
    """Set wind and ground vector for the state's place and time."""
    s["u"], s["v"] = wind(s["lat"], s["lon"], s["alt"], s["entry"] + s["since"])
    s["east"] = s["tas"] * np.sin(np.radians(s["heading"])) + s["u"]
    s["north"] = s["tas"] * np.cos(np.radians(s["heading"])) + s["v"]


def begin(flights: Flights, routes: Routes, wind: Wind) -> dict[str, np.ndarray]:
    """The state of F flights at entry: wings level, on speed, on the track to their first
    waypoint."""
    n = len(flights.route)
    s = {
        "flight": np.arange(n),
        "route": flights.route,
        "kind": flights.kind,
        "factor": flights.factor,
        "entry": flights.entry_s,
        "level": flights.level_m,
        "then": flights.then_m,
        "switch": flights.switch_m,
        "next": np.ones(n, np.int64),
        "lat": routes.points[flights.route, 0, 0],
        "lon": routes.points[flights.route, 0, 1],
        "alt": flights.start_m,
        "target": flights.level_m,
        "roll": np.zeros(n),
        "since": np.zeros(n),
    }
    s["vs"] = np.where(s["alt"] < s["level"], TYPES["climb_rate"][s["kind"]] * 0.5 * FT_MIN, 0.0)
    s["tas"] = airspeed(s, np.zeros(n, bool))
    track = np.arctan2(*to_point(s["lat"], s["lon"], routes.points[s["route"], 1]))
    u, v = wind(s["lat"], s["lon"], s["alt"], s["entry"])
    across = u * np.cos(track) - v * np.sin(track)  # the wind's part to the right of the track
    s["heading"] = np.degrees(track - np.arcsin(across / s["tas"])) % 360
    blow(s, wind)
    s["east_before"], s["north_before"] = s["east"], s["north"]
    return s


def fly(flights: Flights, routes: Routes, area: Area, wind: Wind, step_s: float) -> Tracks:
    """Fly F flights until each has left the area. A flight that never would is ended after its
    route's length at 60 m/s."""
    s = begin(flights, routes, wind)
    limit = routes.length[flights.route] / 60
    rows = []
    while len(s["flight"]):
        rows.append([s["flight"].copy()] + [s[name].copy() for name in LOGGED])
        step(s, routes, area, wind, step_s)
        stays = (
            area.holds(s["lat"], s["lon"])
            & (s["alt"] >= area.bottom_m)
            & (s["since"] < limit[s["flight"]])
        )
        if not stays.all():
            s = {name: value[stays] for name, value in s.items()}
    nothing = [np.empty(0, np.int64)] + [np.empty(0)] * len(LOGGED)  # no flight entered
    flight, *columns = (np.concatenate(c) for c in zip(nothing, *rows, strict=True))
    order = np.argsort(flight, kind="stable")  # steps of one flight are in time order already
    first = np.concatenate([[0], np.cumsum(np.bincount(flight, minlength=len(flights.route)))])
    return Tracks(
        first,
        flights.entry_s,
        step_s,
        {name: c[order] for name, c in zip(LOGGED, columns, strict=True)},
    )
