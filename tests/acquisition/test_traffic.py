"""The simulated traffic obeys the atmosphere, the rules of the air and the mechanics of a turn."""

import numpy as np
import pytest

from stages.errors import InputError
from stages.units import FOOT_M, KNOT_M_S
from stages.winds.sky import air, flight, traffic, wind

AREA = traffic.Area(44.0, 4.0, 500e3, 600e3, 4000.0, 12000.0)
STEP = 2.0


@pytest.fixture(scope="module")
def flown():
    blowing = wind.make(3, AREA.lat0, AREA.lon0, AREA.north_m, AREA.bottom_m, AREA.top_m)
    routes = traffic.network(3, AREA)
    flights = traffic.arrivals(
        3, 0, routes, AREA, 0.0, 2 * 3600.0, 20 / traffic.mean_duration(routes)
    )
    return blowing, routes, flights, flight.fly(flights, routes, AREA, blowing, STEP)


def inner(tracks, column):
    """Differences of a column from each step to the next of the same flight."""
    same = np.ones(len(tracks.columns["lat"]) - 1, bool)
    same[tracks.first[1:-1] - 1] = False
    return np.diff(tracks.columns[column])[same], same


def test_standard_atmosphere_at_tabulated_heights():
    # ICAO Doc 7488: 5, 11 and 15 km
    assert air.pressure(np.array([0.0, 5000.0, 11000.0, 15000.0])) == pytest.approx(
        [101325, 54019.9, 22632.1, 12044.6], rel=2e-5
    )
    assert air.temperature(np.array([5000.0, 15000.0])) == pytest.approx([255.65, 216.65])
    assert air.sound_speed(0.0) == pytest.approx(340.294, abs=1e-3)


def test_airspeeds():
    alt = np.linspace(0, 12500, 50)
    tas = air.tas_of_cas(130.0, alt)
    assert tas[0] == pytest.approx(130.0) and np.all(np.diff(tas) > 0)
    assert air.cas_of_tas(tas, alt) == pytest.approx(np.full(50, 130.0))
    # 300 kt and Mach 0.78 are the same speed at 29,314 ft, the airliners' crossover
    crossover = 29314 * FOOT_M
    assert air.tas_of_cas(300 * KNOT_M_S, crossover) / air.sound_speed(crossover) == pytest.approx(
        0.78, abs=1e-3
    )


def test_ground_vector_is_air_vector_plus_wind_and_moves_the_aircraft(flown):
    blowing, _, flights, tracks = flown
    c = tracks.columns
    flight_of = np.repeat(np.arange(len(flights.route)), np.diff(tracks.first))
    t = flights.entry_s[flight_of] + (np.arange(len(flight_of)) - tracks.first[flight_of]) * STEP
    u, v = blowing(c["lat"], c["lon"], c["alt"], t)
    heading = np.radians(c["heading"])
    assert np.abs(c["tas"] * np.sin(heading) + u - c["east"]).max() < 1e-6
    assert np.abs(c["tas"] * np.cos(heading) + v - c["north"]).max() < 1e-6
    lat = np.radians((c["lat"][1:] + c["lat"][:-1]) / 2)
    for name, column, metric in (("north", "lat", 1.0), ("east", "lon", np.cos(lat))):
        moved, same = inner(tracks, column)
        speed = (c[name][1:] + c[name][:-1])[same] / 2
        error = (
            np.radians(moved) * wind.EARTH_M * np.broadcast_to(metric, len(same))[same] / STEP
            - speed
        )
        assert (
            np.abs(error).max() < 2.0 and np.percentile(np.abs(error), 99) < 0.5
        )  # Euler's rule errs by 4.6 and 3.2 in turns
        assert abs(error.mean()) < 0.01


def test_turns_are_banked(flown):
    tracks = flown[3]
    turned, same = inner(tracks, "heading")
    rolled, _ = inner(tracks, "roll")
    roll = (tracks.columns["roll"][1:] + tracks.columns["roll"][:-1])[same] / 2
    rate = np.degrees(air.G_M_S2 * np.tan(np.radians(roll)) / tracks.columns["tas"][1:][same])
    assert np.abs(traffic.wrap(turned) / STEP - rate).max() < 1e-9
    assert np.abs(tracks.columns["roll"]).max() <= 25.0
    assert np.abs(rolled).max() <= 4.0 * STEP + 1e-9
    share = (np.abs(tracks.columns["roll"]) > 5).mean()
    assert 0.005 < share < 0.15  # most of a flight is straight, and there are turns


def test_flights_climb_cruise_descend_and_stay_inside(flown):
    _, routes, flights, tracks = flown
    c = tracks.columns
    assert AREA.holds(c["lat"], c["lon"])[
        np.setdiff1d(np.arange(len(c["lat"])), tracks.first)
    ].all()
    assert c["alt"].min() >= AREA.bottom_m and c["alt"].max() <= AREA.top_m
    kind = routes.kind[flights.route]
    start, end = c["alt"][tracks.first[:-1]], c["alt"][tracks.first[1:] - 1]
    assert (start[kind == traffic.FROM] == AREA.bottom_m).all() and (
        end[kind == traffic.FROM] > 6000
    ).mean() > 0.9
    assert (end[kind == traffic.TO] < AREA.bottom_m + 100).mean() > 0.9
    assert (np.abs(c["vs"]) < 1).mean() > 0.6
    assert set(kind) == {traffic.OVER, traffic.FROM, traffic.TO}


def test_semicircular_rule_and_cruise_speed(flown):
    _, routes, flights, tracks = flown
    hundreds = np.rint(flights.level_m / FOOT_M / 100).astype(int)
    eastbound = routes.points[flights.route, -1, 1] >= routes.points[flights.route, 0, 1]
    assert np.array_equal(hundreds // 10 % 2 == 1, eastbound)
    assert (hundreds % 10 == 0).all()
    c = tracks.columns
    flight_of = np.repeat(np.arange(len(flights.route)), np.diff(tracks.first))
    high = (c["alt"] > 10500) & (np.abs(c["vs"]) < 0.5)
    mach = c["tas"][high] / air.sound_speed(c["alt"][high])
    expected = (traffic.TYPES["mach"][flights.kind] * flights.factor)[flight_of[high]]
    assert np.percentile(np.abs(mach - expected), 90) < 0.005


def test_arrivals_are_poisson_and_fill_the_sky(flown):
    routes = flown[1]
    rate = 20 / traffic.mean_duration(routes)
    counts = np.array(
        [
            len(traffic.arrivals(1, block, routes, AREA, 0.0, 3600.0, rate).route)
            for block in range(400)
        ]
    )
    assert counts.mean() == pytest.approx(rate * 3600, rel=0.05)
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.25)
    assert flown[3].duration_s.mean() == pytest.approx(traffic.mean_duration(routes), rel=0.2)


def test_states_between_steps(flown):
    tracks = flown[3]
    of = np.arange(len(tracks.first) - 1)
    at_step = tracks.at(of, np.full(len(of), 7 * STEP))
    rows = tracks.first[:-1] + 7
    for name, column in tracks.columns.items():
        assert np.allclose(at_step[name], column[rows])
    fake = traffic.Tracks(
        np.array([0, 2]),
        np.zeros(1),
        2.0,
        {n: np.array([0.0, 10.0]) for n in ("lat", "target")} | {"heading": np.array([359.0, 3.0])},
    )
    middle = fake.at(np.array([0]), np.array([1.0]))
    assert (middle["lat"][0], middle["heading"][0], middle["target"][0]) == (5.0, 1.0, 0.0)


def test_no_levels_in_a_thin_airspace():
    thin = traffic.Area(44.0, 4.0, 500e3, 600e3, 4000.0, 4100.0)
    routes = traffic.network(0, thin)
    with pytest.raises(InputError, match="altitude_m"):
        traffic.arrivals(0, 0, routes, thin, 0.0, 3600.0, 0.01)
