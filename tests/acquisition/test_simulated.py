"""The simulated set: same bytes every time, true to its own wind, heard as a receiver would hear
it."""

import hashlib
import re

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from stages import params
from stages.errors import InputError
from stages.units import FOOT_M, KNOT_M_S
from stages.winds.sky import air, airspace, simulated

BASE = dict(
    seed=5,
    start="2026-01-15T06:00:00Z",
    hours=0.25,
    aircraft=12,
    update_s=4.0,
    south_west=(45.0, 6.0),
    extent_km=(200.0, 240.0),
    altitude_m=(4000.0, 12000.0),
    dropout=0.08,
    bit_error=0.004,
    airspeed_noise_kt=1.0,
    heading_noise_deg=0.3,
)
START = 1768456800.0


def make(folder, **changes):
    folder.mkdir(exist_ok=True)
    return simulated.simulate(params.Simulate(**BASE | changes), folder)


def read(path):
    rows = [line.split(",") for line in path.read_text().splitlines()]
    return np.array([float(t) for t, _ in rows]), [frame for _, frame in rows]


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usual")
    return folder, make(folder)


@pytest.fixture(scope="module")
def clear(tmp_path_factory):
    """Nothing lost or damaged."""
    folder = tmp_path_factory.mktemp("clear")
    return folder, make(folder, dropout=0.0, bit_error=0.0)


@pytest.fixture(scope="module")
def faded(tmp_path_factory):
    """Three frames in ten lost, none damaged."""
    folder = tmp_path_factory.mktemp("faded")
    return folder, make(folder, dropout=0.3, bit_error=0.0)


def test_same_bytes_again_and_others_for_another_seed(usual, tmp_path):
    folder, info = usual
    assert make(tmp_path / "again") == info
    assert (
        make(tmp_path / "other", seed=6)["frames_00.csv"]["sha256"]
        != info["frames_00.csv"]["sha256"]
    )
    assert (
        sorted(info)
        == sorted(p.name for p in folder.iterdir())
        == ["frames_00.csv", "truth.parquet"]
    )
    for name, told in info.items():
        content = (folder / name).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (
            told["sha256"],
            told["bytes"],
        )


def test_the_bytes_are_these_on_every_machine(usual):
    """Golden: print(simulated.simulate(params.Simulate(**BASE),
    folder)["frames_00.csv"]["sha256"])"""
    assert (
        usual[1]["frames_00.csv"]["sha256"]
        == "9f692b71235c4f105072336ec88b2a090981a31cad7c14e8adeef272ce84e820"
    )


def test_lines(usual):
    folder, info = usual
    lines = (folder / "frames_00.csv").read_text().splitlines()
    assert len(lines) == info["frames_00.csv"]["rows"] > 10_000
    form = re.compile(r"\d{10}\.\d{3},([0-9A-F]{14}|[0-9A-F]{28})")
    assert all(form.fullmatch(line) for line in lines)
    t = np.array([float(line.split(",")[0]) for line in lines])
    assert (np.diff(t) >= 0).all() and t[0] >= START and t[-1] < START + 900


def test_truth_table(usual):
    folder, info = usual
    truth = pl.read_parquet(folder / "truth.parquet")
    assert truth.schema == {"ts_s": pl.Float64, "icao": pl.String} | dict.fromkeys(
        simulated.DECIMALS, pl.Float64
    )
    assert (
        truth.height == info["truth.parquet"]["rows"]
        and truth.null_count().sum_horizontal().item() == 0
    )
    assert (
        truth.equals(truth.sort("ts_s", "icao"))
        and truth["icao"].str.contains("^[0-9A-F]{6}$").all()
    )
    assert params.Simulate.model_validate_json(
        pq.read_schema(folder / "truth.parquet").metadata[b"simulate"]
    ) == params.Simulate(**BASE)
    # the number in the air, give or take what a small number of arrivals gives
    assert truth.height * 4 / 900 == pytest.approx(12, rel=0.5)


def test_truth_is_the_wind_itself(usual):
    truth = pl.read_parquet(usual[0] / "truth.parquet")
    world = airspace.sky(params.Simulate(**BASE))
    u, v = world.wind(
        truth["lat_deg"], truth["lon_deg"], truth["alt_ft"] * FOOT_M, truth["ts_s"] - START
    )
    assert (
        np.abs(u - truth["u_true_m_s"].to_numpy()).max() < 2e-3
        and np.abs(v - truth["v_true_m_s"].to_numpy()).max() < 2e-3
    )
    knot = KNOT_M_S
    track = np.radians(truth["trk_deg"].to_numpy())
    heading = np.radians(truth["hdg_true_deg"].to_numpy())
    gs, tas = truth["gs_kt"].to_numpy() * knot, truth["tas_kt"].to_numpy() * knot
    assert np.abs(gs * np.sin(track) - tas * np.sin(heading) - u).max() < 3e-3
    assert np.abs(gs * np.cos(track) - tas * np.cos(heading) - v).max() < 3e-3


def test_every_update_sends_six_frames_and_what_was_asked_is_lost(clear, usual, faded):
    # an update at the set's start or end may have a frame outside it
    updates = clear[1]["truth.parquet"]["rows"]
    assert clear[1]["frames_00.csv"]["rows"] == pytest.approx(6 * updates, rel=0.005)
    assert usual[1]["truth.parquet"]["rows"] == updates
    assert faded[1]["frames_00.csv"]["rows"] / clear[1]["frames_00.csv"]["rows"] == pytest.approx(
        0.7, abs=0.05
    )
    before, after = (
        set((folder / "frames_00.csv").read_text().splitlines()) for folder in (clear[0], faded[0])
    )
    assert after < before  # a lost frame leaves the others as they were


def test_losses_come_in_bursts(clear, faded):
    rs1090 = pytest.importorskip("rs1090")
    after = set((faded[0] / "frames_00.csv").read_text().splitlines())
    lines = (clear[0] / "frames_00.csv").read_text().splitlines()
    lost = np.array([line not in after for line in lines])
    who = np.array([rs1090.decode(line.split(",")[1])["icao24"] for line in lines])
    order = np.argsort(who, kind="stable")
    same = who[order][1:] == who[order][:-1]
    first, second = lost[order][:-1][same], lost[order][1:][same]
    assert (
        second[first].mean() > 0.75 > 2 * lost.mean()
    )  # after a lost frame the next is mostly lost too


def test_damaged_frames_fail_their_parity(usual, clear):
    from stages.winds.sky import encode

    clean = set((clear[0] / "frames_00.csv").read_text().splitlines())
    lines = (usual[0] / "frames_00.csv").read_text().splitlines()
    damaged = [line.split(",")[1] for line in lines if line not in clean]
    assert len(damaged) / len(lines) == pytest.approx(0.004, abs=0.002)
    known = {int(a, 16) for a in pl.read_parquet(usual[0] / "truth.parquet")["icao"]}
    for frame in damaged:
        octets = np.frombuffer(bytes.fromhex(frame), np.uint8)[None]
        assert encode.parity(octets)[0] not in known | {
            0
        }  # neither a plain parity nor any aircraft's address


def test_sensors_err_as_configured_and_without_bias(clear):
    rs1090, ppigrf = pytest.importorskip("rs1090"), pytest.importorskip("ppigrf")
    from datetime import datetime

    truth = pl.read_parquet(clear[0] / "truth.parquet")
    t, frames = read(clear[0] / "frames_00.csv")
    replies = [
        (
            round(ts, 3),
            m["icao24"].upper(),
            m["bds60"]["heading"],
            m["bds60"]["Mach"],
            m["bds60"]["IAS"],
        )
        for ts, m in zip(t, map(rs1090.decode, frames), strict=True)
        if "bds60" in m and "bds50" not in m
    ]  # not the doubtful
    heard = pl.DataFrame(
        replies, schema=["ts_s", "icao", "heading", "mach", "ias"], orient="row"
    ).join(truth, on=["ts_s", "icao"])
    assert heard.height == pytest.approx(
        truth.height, rel=0.02
    )  # the truth's moments are those of the heading reports
    lon, lat, alt = (heard[name].to_numpy() for name in ("lon_deg", "lat_deg", "alt_ft"))
    east, north, _ = ppigrf.igrf(lon, lat, alt * FOOT_M / 1000, datetime(2026, 1, 15))
    declination = np.degrees(np.arctan2(east, north)).ravel()
    n = heard.height
    error = (
        heard["heading"].to_numpy() + declination - heard["hdg_true_deg"].to_numpy() + 180
    ) % 360 - 180
    spread = np.hypot(0.3, 90 / 512 / np.sqrt(12))
    assert error.std() == pytest.approx(spread, rel=0.06) and abs(
        error.mean()
    ) < 4 * spread / np.sqrt(n)
    tas = heard["mach"].to_numpy() * air.sound_speed(alt * FOOT_M) / KNOT_M_S
    error = tas - heard["tas_kt"].to_numpy()
    spread = np.hypot(1.0, 0.004 * 580 / np.sqrt(12))  # Mach steps of 0.004 are about 2.3 kt
    assert error.std() == pytest.approx(spread, rel=0.06) and abs(
        error.mean()
    ) < 4 * spread / np.sqrt(n)
    tas = air.tas_of_cas(heard["ias"].to_numpy() * KNOT_M_S, alt * FOOT_M) / KNOT_M_S
    assert abs((tas - heard["tas_kt"].to_numpy()).mean()) < 0.15


def test_hours_and_blocks_join_without_seams(tmp_path, monkeypatch):
    monkeypatch.setattr(simulated, "BLOCK_S", 1000)
    info = make(tmp_path / "long", hours=1.2, aircraft=5)
    assert sorted(info) == ["frames_00.csv", "frames_01.csv", "truth.parquet"]
    first, second = (read(tmp_path / "long" / f"frames_0{i}.csv")[0] for i in (0, 1))
    assert first[0] >= START and first[-1] < START + 3600 <= second[0] and second[-1] < START + 4320
    truth = pl.read_parquet(tmp_path / "long" / "truth.parquet")
    assert truth.equals(truth.sort("ts_s", "icao"))
    gaps = (
        truth.sort("icao", "ts_s").select(pl.col("ts_s").diff().over("icao")).drop_nulls()["ts_s"]
    )
    assert (
        gaps.min() > 3.9 and gaps.max() < 4.1
    )  # each aircraft is there once every update until it leaves


def test_an_empty_sky_is_an_empty_file(tmp_path):
    info = make(tmp_path / "empty", hours=0.0001, aircraft=1)  # 0.36 s
    assert info["frames_00.csv"] == {
        "sha256": hashlib.sha256(b"").hexdigest(),
        "bytes": 0,
        "rows": 0,
    }
    assert info["truth.parquet"]["rows"] == 0


@pytest.mark.parametrize(
    "changes, where",
    [
        ({"start": "2026-13-15T06:00:00Z"}, "simulate.start"),
        ({"start": "1999-01-15T06:00:00Z"}, "simulate.start"),
        ({"south_west": (79.0, 4.0), "extent_km": (200.0, 1000.0)}, "simulate.extent_km"),
        ({"altitude_m": (9000.0, 5000.0)}, "simulate.altitude_m"),
    ],
)
def test_impossible_settings_are_refused_before_any_work(tmp_path, changes, where):
    with pytest.raises(InputError, match=where) as caught:
        make(tmp_path / "refused", **changes)
    assert caught.value.exit_code == 2
    assert not list((tmp_path / "refused").iterdir())
