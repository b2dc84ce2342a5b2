"""Compact position reporting.

Oracles: a published pair, an encoder by the standard's formula, rs1090 on a real flight; and what
must be dropped.
"""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import rs1090
from hypothesis import given
from hypothesis import strategies as st

from stages.winds.modes import frames, messages, position

STEPS = 1 << 17
MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data"))


def encode(lat, lon, odd):
    """17-bit values of a position: fractions of its zone, rounded (DO-260B A.1.7.3); the zone
    count by the closed formula."""
    height = 360 / 59 if odd else 360 / 60
    y = np.floor(STEPS * (lat % height) / height + 0.5)
    seen = height * (y / STEPS + np.floor(lat / height))
    width = 360 / max(zones(seen) - odd, 1)
    return y % STEPS, np.floor(STEPS * (lon % width) / width + 0.5) % STEPS


def zones(lat):
    if lat == 0:
        return 59
    if abs(lat) >= 87:
        return 2 if abs(lat) == 87 else 1
    return int(
        np.floor(
            2
            * np.pi
            / np.arccos(1 - (1 - np.cos(np.pi / 30)) / np.cos(np.pi / 180 * abs(lat)) ** 2)
        )
    )


def fly(seconds, lat=48.0, lon=8.0, speed_kt=450.0, every_s=0.5):
    """A flight to the north-east as alternating frames: ts, odd, cpr_lat, cpr_lon, true lat,
    true lon."""
    ts = np.arange(0, seconds, every_s)
    north = lat + speed_kt / 3600 / 60 * 0.6 * ts
    east = lon + speed_kt / 3600 / 60 * 0.8 * ts / np.cos(np.radians(lat))
    odd = np.arange(len(ts)) % 2 == 1
    code = np.array([encode(*values) for values in zip(north, east, odd, strict=True)])
    return ts, odd, code[:, 0], code[:, 1], north, east


def test_published_pair():
    table = messages.decode(
        np.array(["8D40621D58C382D690C8AC2863A7", "8D40621D58C386435CC412692AD6"])
    )
    assert table["altitude_ft"].to_list() == [38000, 38000] and table["cpr_odd"].to_list() == [
        False,
        True,
    ]
    even, odd = table.rows(named=True)
    lat, lon = position.global_position(
        [even["cpr_lat"]], [even["cpr_lon"]], [odd["cpr_lat"]], [odd["cpr_lon"]], np.array([False])
    )
    assert lat[0] == pytest.approx(52.2572021484375, abs=1e-9) and lon[0] == pytest.approx(
        3.91937255859375, abs=1e-9
    )
    near = position.local_position(
        np.array([False]),
        [even["cpr_lat"]],
        [even["cpr_lon"]],
        np.array([52.258]),
        np.array([3.918]),
    )
    assert (near[0][0], near[1][0]) == pytest.approx((lat[0], lon[0]), abs=1e-9)


def test_number_of_zones():
    lat = np.linspace(-90, 90, 36_001)
    np.testing.assert_array_equal(position.longitude_zones(lat), [zones(value) for value in lat])
    edges = [
        (10.47047130, 59),
        (14.82817437, 58),
        (86.53536998, 3),
        (87.0, 2),
    ]  # table in DO-260B A.1.7.2 d
    for edge, count in edges:
        assert position.longitude_zones(np.array([edge - 1e-7, edge + 1e-7])).tolist() == [
            count,
            count - 1,
        ]


@given(st.floats(-89.9, 89.9), st.floats(-180, 179.999), st.booleans())
def test_both_decodings_give_the_position_back(lat, lon, latest_odd):
    even, odd = encode(lat, lon, False), encode(lat, lon, True)
    found, east = position.global_position(
        [even[0]], [even[1]], [odd[0]], [odd[1]], np.array([latest_odd])
    )
    code = odd if latest_odd else even
    near, near_east = position.local_position(
        np.array([latest_odd]), [code[0]], [code[1]], np.array([lat + 0.5]), np.array([lon])
    )
    assert near[0] == pytest.approx(lat, abs=5e-5)
    width = 360 / max(zones(near[0]) - latest_odd, 1)
    assert abs((near_east[0] - lon + 180) % 360 - 180) <= width / STEPS
    if np.isfinite(found[0]):
        assert (
            found[0] == pytest.approx(near[0], abs=1e-9)
            and abs((east[0] - near_east[0] + 180) % 360 - 180) < 1e-9
        )
    else:  # only within a rounding step of an edge between zones
        assert zones(lat - 1e-4) != zones(lat + 1e-4)


def test_a_flight_in_any_order_with_two_aircraft():
    ts, odd, lat17, lon17, north, east = fly(120)
    ts2, odd2, lat17b, lon17b, north2, east2 = fly(120, lat=-33.0, lon=179.9)
    order = np.random.default_rng(0).permutation(2 * len(ts))

    def join(a, b):
        return np.concatenate([a, b])[order]

    found = position.positions(
        join(ts, ts2),
        join(np.full(len(ts), "4B1234"), np.full(len(ts), "7C0001")),
        join(odd, odd2),
        join(lat17, lat17b),
        join(lon17, lon17b),
        10.0,
    )
    truth_lat, truth_lon = join(north, north2), (join(east, east2) + 180) % 360 - 180
    known = found["drop"].is_null().to_numpy()
    assert (~known).sum() == 2  # the first frame of each
    assert np.nanmax(np.abs(found["lat_deg"].to_numpy() - truth_lat)[known]) < 1e-4
    assert (
        np.nanmax(np.abs((found["lon_deg"].to_numpy() - truth_lon + 180) % 360 - 180)[known]) < 1e-4
    )


def test_single_frames_use_the_last_position_and_old_pairs_do_not_count():
    ts, odd, lat17, lon17, north, _ = fly(40)
    keep = (ts < 2) | ((ts > 20) & ~odd)  # later only even frames
    found = position.positions(
        ts[keep], np.zeros(keep.sum()), odd[keep], lat17[keep], lon17[keep], 10.0
    )
    assert found["drop"].null_count() == keep.sum() - 1
    assert np.nanmax(np.abs(found["lat_deg"].to_numpy() - north[keep])) < 1e-4
    late = np.where(ts < 2, ts, ts + 100)
    found = position.positions(
        late[keep], np.zeros(keep.sum()), odd[keep], lat17[keep], lon17[keep], 10.0
    )
    assert set(found.filter(pl.Series(late[keep] > 100))["drop"]) == {"no_pair"}


def test_a_foreign_position_in_a_flight_is_dropped_and_the_flight_stays():
    ts, odd, lat17, lon17, north, _ = fly(60)
    for place in (50, 51, 80):
        lat17[place], lon17[place] = encode(north[place] + 1.5, 11.0, odd[place])
    found = position.positions(ts, np.zeros(len(ts)), odd, lat17, lon17, 10.0)
    right = np.abs(found["lat_deg"].to_numpy() - north) < 1e-3
    assert found["lat_deg"].is_not_null().to_numpy()[~right].sum() == 0
    assert right.sum() >= len(ts) - 12 and "position_jump" in found["drop"].to_list()


def test_nothing_gives_nothing():
    assert position.positions([], [], [], [], [], 10.0).shape == (0, 3)


def test_real_flight_as_rs1090():
    path = MIRROR / "mode-s/pyModeS/sample_data_adsb.csv"
    if not path.exists():
        pytest.skip("sample_data_adsb.csv is not in the mirror")
    table = frames.read(path).frames
    decoded = messages.decode(table["hex"]).with_columns(table["ts_s"])
    airborne = decoded.filter(pl.col("cpr_odd").is_not_null())
    ours = position.positions(
        airborne["ts_s"],
        airborne["icao"],
        airborne["cpr_odd"],
        airborne["cpr_lat"],
        airborne["cpr_lon"],
        10.0,
    )
    theirs = [
        m
        for m in rs1090.decode(table["hex"].to_list(), table["ts_s"].to_list())
        if m.get("bds") == "05"
    ]
    first = int(np.argmax(airborne["cpr_odd"].to_numpy() != airborne["cpr_odd"][0]))
    assert len(theirs) == len(airborne) and ours["drop"].to_list() == ["no_pair"] * first + [
        None
    ] * (len(ours) - first)
    lat = np.array([m.get("latitude") if m.get("latitude") is not None else np.nan for m in theirs])
    lon = np.array(
        [m.get("longitude") if m.get("longitude") is not None else np.nan for m in theirs]
    )
    both = np.isfinite(lat) & ours["drop"].is_null().to_numpy()
    assert both.sum() > 700  # they withhold some that come twice in a second
    np.testing.assert_allclose(ours["lat_deg"].to_numpy()[both], lat[both], atol=1e-9)
    np.testing.assert_allclose(ours["lon_deg"].to_numpy()[both], lon[both], atol=1e-9)
