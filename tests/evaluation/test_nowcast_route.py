"""A route: great circles by an independent geodesy, times by hand, the wind's share and its
error's."""

import json
import math
import re
import sys

import numpy as np
import pyproj
import pytest
from nowcasts import ask

from stages import cli
from stages.errors import InputError
from stages.units import EARTH_KM, KNOT_M_S
from stages.winds.nowcast import anywhere, route

SPHERE = pyproj.Geod(a=EARTH_KM * 1000, b=EARTH_KM * 1000)


@pytest.mark.parametrize(
    "ways", [(46.2, 6.1, 47.4, 8.5), (-33.9, 151.2, -37.8, 144.9), (60.0, 179.0, 61.0, -178.0)]
)
def test_the_pieces_lie_on_the_great_circle_and_lead_along_it(ways):
    found = route.read("FL340,0,450," + ",".join(map(str, ways)))
    lat1, lon1, lat2, lon2 = ways
    course, _, metres = SPHERE.inv(lon1, lat1, lon2, lat2)
    assert found.length_km.sum() == pytest.approx(metres / 1000, rel=1e-9)
    assert found.length_km.max() <= route.PIECE_KM
    there = np.cumsum(found.length_km) - found.length_km / 2
    for point, track, km in zip(found.points, found.track, there, strict=True):
        lon, lat, back = SPHERE.fwd(lon1, lat1, course, 1000 * km)
        assert (point.lat_deg, point.lon_deg) == pytest.approx((lat, lon), abs=1e-9)
        heading = math.degrees(math.atan2(*track)) % 360
        assert heading == pytest.approx((back + 180) % 360, abs=1e-6)
        assert np.hypot(*track) == pytest.approx(1)
        assert point.ts_s == pytest.approx(1000 * km / (450 * KNOT_M_S))


def test_a_head_wind_a_tail_wind_and_one_from_the_side():
    found = route.read("FL340,0,400,0,0,0,3")  # east, along the equator
    metres = 1000 * found.length_km.sum()
    speed = 400 * KNOT_M_S
    for u, v, ground in (
        (0, 0, speed),
        (-50, 0, speed - 50),
        (50, 0, speed + 50),
        (0, 80, math.sqrt(speed**2 - 80**2)),
        (30, -80, 30 + math.sqrt(speed**2 - 80**2)),
    ):
        winds = np.full((2, len(found.points)), [[u], [v]])
        assert route.seconds(found, *winds) == pytest.approx(metres / ground)
    for u, v in ((-speed, 0), (0, speed), (speed, 1.1 * speed)):
        with pytest.raises(InputError, match="stronger than the aircraft"):
            route.seconds(found, *np.full((2, len(found.points)), [[u], [v]]))


def test_two_legs_are_flown_one_after_the_other():
    found = route.read("FL340,1000,450,46,6,47,6,47,8")
    times = [point.ts_s for point in found.points]
    assert times == sorted(times) and times[0] > 1000
    legs = [route.read(f"FL340,1000,450,{leg}") for leg in ("46,6,47,6", "47,6,47,8")]
    assert found.length_km.sum() == pytest.approx(sum(leg.length_km.sum() for leg in legs))


@pytest.mark.parametrize(
    "text",
    [
        "FL340,0,450,46.2,6.1",
        "FL340,0,450,46.2,6.1,47.4",
        "FL340,0,5,46.2,6.1,47.4,8.5",
        "FL340,0,fast,46.2,6.1,47.4,8.5",
        "high,0,450,46.2,6.1,47.4,8.5",
        "FL340,0,450,96.2,6.1,47.4,8.5",
        "FL340,0,450,46.2,6.1,46.2,6.1",
        "FL340,soon,450,46.2,6.1,47.4,8.5",
    ],
)
def test_what_is_no_route_is_refused(text):
    with pytest.raises(InputError):
        route.read(text)


@pytest.mark.parametrize(
    "start, ends, remedy",
    [
        (1200, (0, 1000), "start by 1970-01-01T00:15:13Z, fly a shorter one"),
        (1200, (900, 1000), "fly a shorter one"),  # to start earlier helps nothing
        (913, (0, 1000), None),
    ],
)
def test_a_route_beyond_the_lead_is_refused_in_its_own_words(start, ends, remedy):
    """90 NM at 400 kn, a lead of ten minutes and slices of one: the middle of the last
    piece must be reached before 960 + 120 + 600 s."""
    found = route.read(f"FL340,{start},400,0,0,0,1.5")
    assert found.points[-1].ts_s - start == pytest.approx(765.5, abs=0.1)
    if remedy is None:
        route.refuse_late(found, ends, 60.0, 600.0, "c.csv")
        return
    with pytest.raises(InputError, match="the route leads beyond") as refused:
        route.refuse_late(found, ends, 60.0, 600.0, "c.csv")
    told = refused.value
    assert "takes 13.5 minutes in still air, from 1970-01-01T00:20:00Z" in told.found
    assert "ends by 1970-01-01T00:28:00Z: the model reaches 11.3 minutes" in told.expected
    assert told.remedy.startswith(remedy) and told.where == "c.csv"


def test_the_shell_tells_a_long_route_by_its_start_and_end(monkeypatch, capsys, tmp_path):
    context = (anywhere.example() / "winds.parquet").resolve()
    monkeypatch.chdir(tmp_path)
    text = "FL340,2026-01-17T03:00:00Z,300,46.3,6.6,46.6,7.4"
    words = ["tradewind", "nowcast", "--context", str(context), "--route", text]
    monkeypatch.setattr("sys.argv", words)
    assert cli.main() == 2
    told = capsys.readouterr().err
    assert "from 2026-01-17T03:00:00Z to " in told and f"where: {context}" in told
    start = re.search(r"start by (\S+),", told)[1]
    monkeypatch.setattr("sys.argv", [*words[:-1], text.replace("2026-01-17T03:00:00Z", start)])
    assert cli.main() == 0, "as late as it says"


def test_a_route_is_answered_as_its_points_and_the_error_costs_time(
    airspace, settings, runs, monkeypatch, capsys, tmp_path
):
    text = "FL250,2026-01-15T07:05:30Z,400,46.3,6.6,46.6,7.4"
    found = route.read(text)
    winds = ask(airspace, settings, route=text)
    assert [wind.point for wind in winds] == found.points
    flown = route.flown(found, winds)
    told = route.summary(flown)
    u, v = (np.array([getattr(wind, name) for wind in winds]) for name in ("u_m_s", "v_m_s"))
    assert f"with this wind {route.clock(route.seconds(found, u, v))}" in told
    assert "one standard deviation all the way costs" in told
    words = ["tradewind", "nowcast", "--context", str(airspace / "winds.parquet"), "--route", text]
    monkeypatch.setattr("sys.argv", [*words, "--model", str(runs / "msa-gaussian-5k-s0")])
    assert cli.main() == 0 and told in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*sys.argv, "--json", "--out", str(tmp_path / "a.json")])
    assert cli.main() == 0
    for text in (capsys.readouterr().out, (tmp_path / "a.json").read_text()):
        assert json.loads(text)["route"] == pytest.approx(flown)
    for form in (["--csv"], ["--out", str(tmp_path / "a.nc")], ["--plot", str(tmp_path / "a.png")]):
        monkeypatch.setattr("sys.argv", [*words, "--model", str(runs / "kernel"), *form])
        assert cli.main() == 0
        found = capsys.readouterr()
        assert found.err.startswith("route: ") and "still air" in found.err
        assert "route" not in found.out
