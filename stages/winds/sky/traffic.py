"""Traffic through an airspace: a seeded network of routes, Poisson arrivals, and flight along them
through the wind.

Flights cross the area between gates on its border, or join a climb or leave in a descent at
airports inside it; levels follow the semicircular rule (odd thousands of feet eastbound, even
westbound); speeds follow each type's CAS/Mach schedule; turns are banked, so heading changes at g
tan(roll) / TAS; the ground track is air vector plus wind. Aircraft do not see each other (no
separation). Legs are rhumb lines. Flights do not meet, so all of a block fly side by side, each in
its own time since entry: one step moves all of them.
Units: degrees, m, m/s, s since the simulation's start. Shapes: F flights, S steps of a block's
flights laid end to end.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.errors import InputError
from stages.seeds import stream
from stages.units import FOOT_M
from stages.winds.sky import air
from stages.winds.sky.wind import EARTH_M

# share, cruise Mach, climb CAS kt, descent CAS kt, climb ft/min at sea level, usual flight level
# and its spread
TYPES = np.array(
    [
        (0.26, 0.78, 300, 290, 2600, 360, 20),
        (0.24, 0.785, 290, 280, 2500, 360, 20),
        (0.12, 0.79, 300, 290, 2400, 340, 20),
        (0.12, 0.78, 290, 280, 2300, 360, 20),
        (0.07, 0.82, 300, 300, 1800, 380, 20),
        (0.05, 0.84, 310, 300, 1700, 350, 25),
        (0.08, 0.80, 290, 280, 2800, 380, 20),
        (0.06, 0.48, 180, 240, 1500, 220, 20),
    ],
    dtype=[
        (n, float)
        for n in ("share", "mach", "climb_cas", "descent_cas", "climb_rate", "level", "spread")
    ],
)
GATES, WAYPOINTS, AIRPORTS, ROUTES = 18, 14, 4, 40
OVER, FROM, TO = 0, 1, 2  # a route's kind: crossing, from an airport inside, to an airport inside
SHARES = (0.64, 0.18, 0.18)
OVERRUN_M = 60e3  # routes that leave aim this far beyond the border
LONGEST = 5  # points of a route at most, ends included


@dataclass(frozen=True)
class Area:
    """The airspace: a box of latitude and longitude, `east_m` wide at its middle latitude,
    between two altitudes."""

    south: float
    west: float
    east_m: float
    north_m: float
    bottom_m: float
    top_m: float

    @property
    def lat0(self) -> float:
        """Middle latitude, degrees."""
        return self.south + np.degrees(self.north_m / EARTH_M) / 2

    @property
    def lon0(self) -> float:
        """Middle longitude, degrees."""
        return self.west + np.degrees(self.east_m / EARTH_M / np.cos(np.radians(self.lat0))) / 2

    def degrees(self, x_m: float | np.ndarray, y_m: float | np.ndarray) -> tuple[Any, Any]:
        """Latitude and longitude of points given in m east and north of the south-west corner."""
        return (
            self.south + np.degrees(y_m / EARTH_M),
            self.west + np.degrees(x_m / EARTH_M / np.cos(np.radians(self.lat0))),
        )

    def holds(self, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
        """Whether points lie inside the box."""
        north, east = self.degrees(self.east_m, self.north_m)
        return (lat >= self.south) & (lat <= north) & (lon >= self.west) & (lon <= east)


@dataclass(frozen=True)
class Routes:
    """R routes of at most P points: points (R, P, 2) lat and lon in degrees (the last repeated),
    legs (R, P - 1) in m."""

    points: np.ndarray
    legs: np.ndarray
    kind: np.ndarray

    @property
    def length(self) -> np.ndarray:
        """Metres from the first point to the last, (R,)."""
        return self.legs.sum(1)


@dataclass(frozen=True)
class Flights:
    """F flights: route and type numbers, entry time s, speed factor, altitudes m, and where the
    target altitude changes."""

    route: np.ndarray
    kind: np.ndarray
    entry_s: np.ndarray
    factor: np.ndarray
    start_m: np.ndarray
    level_m: np.ndarray
    then_m: np.ndarray  # the target altitude once less than `switch_m` of the route is left
    switch_m: np.ndarray


@dataclass(frozen=True)
class Tracks:
    """What F flights flew. Flight f's steps are rows first[f] to first[f + 1] of every column,
    `step_s` apart from entry_s[f]."""

    first: np.ndarray
    entry_s: np.ndarray
    step_s: float
    columns: dict[
        str, np.ndarray
    ]  # lat, lon, heading, roll deg; alt, target m; vs, tas, u, v, east, north m/s

    @property
    def duration_s(self) -> np.ndarray:
        """Seconds from each flight's entry to its last step, (F,)."""
        return (np.diff(self.first) - 1) * self.step_s

    def at(self, flight: np.ndarray, since_s: np.ndarray) -> dict[str, np.ndarray]:
        """State of `flight` (N,) at `since_s` (N,) after entry: linear between steps, headings
        the shorter way, targets held."""
        place = since_s / self.step_s
        low = np.minimum(place.astype(np.int64), np.diff(self.first)[flight] - 2)
        row, part = self.first[flight] + low, place - low
        state = {name: c[row] + part * (c[row + 1] - c[row]) for name, c in self.columns.items()}
        state["target"] = self.columns["target"][row]
        heading = self.columns["heading"]
        state["heading"] = (heading[row] + part * wrap(heading[row + 1] - heading[row])) % 360
        return state


def wrap(degrees: float | np.ndarray) -> Any:
    """An angle in [-180, 180)."""
    return (degrees + 180) % 360 - 180


def ends(seed: int, area: Area) -> tuple[list[tuple[np.ndarray, np.ndarray, int]], np.ndarray]:
    """Start, end (m from the south-west corner) and kind of each route, and the waypoints (W, 2)
    it may bend over."""
    rng = stream(seed, "simulate", "routes", "ends")
    size = np.array([area.east_m, area.north_m])
    around = (np.arange(GATES) + rng.uniform(0.2, 0.8, GATES)) / GATES * 4  # each side counts one
    side, share = around.astype(int), (around % 1)[:, None]
    corner = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    edge = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])
    gates = (corner[side] + share * edge[side]) * size
    airports = rng.uniform(0.25, 0.75, (AIRPORTS, 2)) * size
    places = np.vstack([gates, airports])
    side = np.concatenate([side, np.full(AIRPORTS, -1)])
    apart = np.linalg.norm(places[:, None] - places, axis=2) / size.min()
    kind = np.where(side[:, None] < 0, FROM, np.where(side < 0, TO, OVER))
    fit = (side[:, None] != side) & (apart > np.where(kind == OVER, 0.7, 0.3))
    chosen = []
    for k, number in enumerate(np.rint(np.array(SHARES) * ROUTES).astype(int)):
        start, end = np.nonzero(fit & (kind == k))
        chosen += [
            (places[start[i]], places[end[i]], k)
            for i in rng.choice(len(start), number, replace=len(start) < number)
        ]
    return chosen, rng.uniform(0.1, 0.9, (WAYPOINTS, 2)) * size


def network(seed: int, area: Area) -> Routes:
    """Routes between gates on the border and airports inside, each over up to three waypoints
    near its chord."""
    rng = stream(seed, "simulate", "routes", "bends")
    chosen, waypoints = ends(seed, area)
    points, legs = [], []
    for start, end, kind in chosen:
        chord = end - start
        along = (waypoints - start) @ chord / (chord @ chord)
        aside = np.abs((waypoints - start) @ np.array([-chord[1], chord[0]])) / (chord @ chord)
        near = np.flatnonzero((along > 0.1) & (along < 0.9) & (aside < 0.2))
        near = rng.permutation(near)[: rng.integers(1, LONGEST - 1)]
        near = near[np.argsort(along[near])]
        near = near[np.diff(along[near], prepend=0) > 0.1]  # airways bend, they do not zigzag
        path = np.vstack([start, waypoints[near], end])
        if kind != TO:  # so that the flight leaves without a last turn
            last = path[-1] - path[-2]
            path[-1] += last / np.linalg.norm(last) * OVERRUN_M
        path = np.vstack([path, np.repeat(path[-1:], LONGEST - len(path), axis=0)])
        points.append(np.stack(area.degrees(path[:, 0], path[:, 1]), axis=1))
        legs.append(np.linalg.norm(np.diff(path, axis=0), axis=1))
    return Routes(np.array(points), np.array(legs), np.array([kind for _, _, kind in chosen]))


def levels(area: Area, eastbound: np.ndarray, wanted: np.ndarray, lowest: np.ndarray) -> np.ndarray:
    """The flight levels (hundreds of feet) nearest to `wanted` by the semicircular rule, inside
    the area and above `lowest`."""
    every = np.arange(10, 420, 10)
    every = every[(every * 100 * FOOT_M >= area.bottom_m) & (every * 100 * FOOT_M <= area.top_m)]
    odd = every // 10 % 2 == 1
    if not odd.any() or odd.all():
        raise InputError(
            "the simulated airspace has no flight level for each direction",
            where="simulate.altitude_m",
            expected="at least 2000 ft of height below 41,000 ft",
            found=f"{area.bottom_m:g} to {area.top_m:g} m",
        )
    distance = (
        np.abs(every - wanted[:, None])
        + 1e3 * (odd != eastbound[:, None])
        + 1e2 * (every < lowest[:, None])
    )
    return every[distance.argmin(1)]


def mean_duration(routes: Routes) -> float:
    """Seconds a flight stays, on average: by Little's law the number in the air is the arrival
    rate times this."""
    slowness = (TYPES["share"] / TYPES["mach"]).sum() / air.sound_speed(10e3)
    return float((routes.length - np.where(routes.kind != TO, OVERRUN_M, 0)).mean() * slowness)


def arrivals(
    seed: int, block: int, routes: Routes, area: Area, start_s: float, end_s: float, rate_s: float
) -> Flights:
    """Draw the flights that enter in [start_s, end_s): a Poisson number at `rate_s` a second."""
    rng = stream(seed, "simulate", "arrivals", block)
    n = int(rng.poisson(rate_s * (end_s - start_s)))
    entry = np.round(np.sort(rng.uniform(start_s, end_s, n)), 3)
    route = rng.integers(len(routes.kind), size=n)
    kind = rng.choice(len(TYPES), n, p=TYPES["share"])
    role, length = routes.kind[route], routes.length[route]
    there = routes.points[route, -1, 1] - routes.points[route, 0, 1]
    level = (
        levels(
            area, there >= 0, rng.normal(TYPES["level"][kind], TYPES["spread"][kind]), np.zeros(n)
        )
        * 100
        * FOOT_M
    )
    start, then, switch = level.copy(), level.copy(), np.full(n, -1.0)
    joins = role == FROM
    start[joins] = area.bottom_m
    # one crossing in eight enters 2000 to 8000 ft below its level, still climbing; one in six
    # changes level on its way
    late = (role == OVER) & (rng.random(n) < 1 / 8)
    start[late] -= rng.uniform(2000, 8000, n)[late] * FOOT_M
    steps = (role == OVER) & ~late & (rng.random(n) < 1 / 6)
    other = level + rng.choice([-2000, 2000], n) * FOOT_M
    steps &= (other >= area.bottom_m) & (other <= area.top_m)
    then[steps] = other[steps]
    switch[steps] = (rng.uniform(0.3, 0.8, n) * length)[steps]
    # arrivals leave at the bottom; the angle of their path gives the top of descent
    lands = role == TO
    then[lands] = area.bottom_m - 600
    switch[lands] = ((level - area.bottom_m) / np.tan(np.radians(rng.uniform(2.0, 2.8, n))))[lands]
    return Flights(
        route,
        kind,
        entry,
        rng.normal(1, 0.012, n),
        np.maximum(start, area.bottom_m),
        level,
        then,
        switch,
    )
