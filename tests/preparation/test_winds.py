"""Wind derivation against published winds, winds measured on board, and the vector identity it
must satisfy."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import params
from stages.winds.decoding import atmosphere, readers, winds
from stages.winds.decoding.declination import declination_deg

MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data")) / "mode-s"
DECODE = params.load("params.yaml").decode
MAGNETIC = DECODE.model_copy(update={"declination": False})
PUBLISHED_KNOT_M_S = 0.514444  # the rounded knot behind wind.csv


def needed(path: str) -> Path:
    if not (MIRROR / path).exists():
        pytest.skip(f"shared/data/mode-s/{path} is not here")
    return MIRROR / path


def state(**values) -> pl.DataFrame:
    base = {
        "ts_s": 1.5e9,
        "icao": "3C0001",
        "lat_deg": 47.0,
        "lon_deg": 7.0,
        "alt_ft": 35000.0,
        "gs_kt": 450.0,
        "trk_deg": 80.0,
        "hdg_mag_deg": 75.0,
        "ias_kt": 260.0,
        "mach": 0.77,
        "tas_kt": None,
        "roll_deg": 0.0,
        "file": "a",
        "record": 3,
    }
    names = list(base)
    rows = [base | row for row in values.pop("rows", [{}])]
    return pl.DataFrame(
        {n: [row[n] for row in rows] for n in names},
        schema_overrides={"tas_kt": pl.Float64, "roll_deg": pl.Float64},
    )


@settings(deadline=None, database=None)
@given(st.floats(0, 120), st.floats(0, 360), st.floats(200, 500), st.floats(0, 360))
def test_ground_vector_is_air_vector_plus_wind(speed, origin, tas_kt, heading):
    """Fly through a wind given as the weather report gives it (from): deriving returns its
    vector, blowing towards."""
    wind = (
        pl.select(pl.lit(speed).alias("s"), pl.lit(origin).alias("o"))
        .select(
            *(
                e.alias(n)
                for e, n in zip(winds.towards(pl.col("s"), pl.col("o")), "uv", strict=True)
            )
        )
        .row(0)
    )
    knots = 3600 / 1852
    east = tas_kt * np.sin(np.radians(heading)) + wind[0] * knots
    north = tas_kt * np.cos(np.radians(heading)) + wind[1] * knots
    u, v = winds.wind_m_s(
        np.hypot(east, north), np.degrees(np.arctan2(east, north)), tas_kt, heading
    )
    assert np.allclose((u, v), wind, atol=1e-9)


def test_a_west_wind_blows_east():
    east, north = pl.select(
        *(e.alias(n) for e, n in zip(winds.towards(pl.lit(30.0), pl.lit(270.0)), "uv", strict=True))
    ).row(0)
    assert (east, north) == pytest.approx((30.0, 0.0), abs=1e-12)


def test_every_published_wind_follows_from_the_published_states():
    """Oracle (data README, W2): 39,845 rows within the 0.005 m/s to which they are rounded, with
    the constants they used (their knot enters by scaling the speeds); within 0.035 m/s in the
    exact ICAO atmosphere with the exact knot."""
    published = pl.read_csv(
        needed("meteo-particle-model/wind.csv"), schema_overrides={"icao": pl.String}
    )
    states = (
        readers.read_states(needed("meteo-particle-model/aggregated.csv"), 0).collect().drop("drop")
    )
    rounded = states.with_columns(
        pl.col("gs_kt", "ias_kt") * (PUBLISHED_KNOT_M_S / atmosphere.KNOT_M_S)
    )
    for rows, air, limit in (
        (rounded, atmosphere.METEO_PARTICLE, 0.005 + 1e-9),
        (states, atmosphere.ICAO, 0.035),
    ):
        derived, counts = winds.derive(rows, MAGNETIC, roll_needed=False, air=air)
        assert counts["dropped"] == {"no_velocity": 9668} and counts["kept"] == 39_845
        assert derived["icao"].equals(published["icao"]) and derived["ts_s"].equals(published["ts"])
        for ours, theirs in (("u_m_s", "vwx"), ("v_m_s", "vwy")):
            assert (derived[ours] - published[theirs]).abs().max() <= limit


@pytest.mark.parametrize("name", ["phlab_20170320_08.csv", "phlab_20170320_12.csv"])
def test_wind_measured_on_board(name):
    """The laboratory aircraft's own wind (given as FROM, kn) against ours from its speeds and true
    heading, wings level.

    Median 0.6 m/s a component, root mean square 1.1 m/s; with the convention the wrong way round it
    would be tens.
    """
    rows = pl.read_csv(needed(f"openap/{name}"), infer_schema_length=None)
    rows = rows.select(
        pl.col("gs", "trk", "hdg", "cas", "alt", "wspd", "wagl", "roll").cast(pl.Float64)
    ).drop_nulls()
    rows = rows.filter((pl.col("gs") > 80) & (pl.col("roll").abs() <= DECODE.roll_max_deg))
    u, v = winds.towards(pl.col("wspd") * atmosphere.KNOT_M_S, pl.col("wagl"))
    rows = rows.with_columns(u=u, v=v)
    tas = atmosphere.tas_from_cas(rows["cas"].to_numpy(), rows["alt"].to_numpy())
    ours = winds.wind_m_s(
        rows["gs"].to_numpy(), rows["trk"].to_numpy(), tas, rows["hdg"].to_numpy()
    )
    assert len(rows) > 3000
    for component, measured in zip(ours, "uv", strict=True):
        gap = component - rows[measured].to_numpy()
        assert np.median(np.abs(gap)) < 0.65 and np.sqrt(np.mean(gap**2)) < 1.2


def test_winds_of_a_published_flight():
    """A B737 climb, winds published with another correction of the heading: ours lie within 4.1
    m/s (median) without declination."""
    rows = pl.read_csv(needed("acsmc/b737_example_1.csv")).drop_nulls(
        ["gs", "trk", "ias", "hdg", "vwx", "vwy"]
    )
    tas = atmosphere.tas_from_cas(rows["ias"].to_numpy(), rows["alt"].to_numpy())
    u, v = winds.wind_m_s(
        rows["gs"].to_numpy(), rows["trk"].to_numpy(), tas, rows["hdg"].to_numpy()
    )
    assert np.median(np.abs(u - rows["vwx"].to_numpy())) < 4.1
    assert np.median(np.abs(v - rows["vwy"].to_numpy())) < 1.7


def test_declination_turns_the_air_vector_clockwise_where_it_is_east():
    states = state(rows=[{"lat_deg": -36.9, "lon_deg": 174.8}])
    turn = declination_deg(states["ts_s"], states["lat_deg"], states["lon_deg"])[0]
    assert turn > 15
    by_hand = state(rows=[{"lat_deg": -36.9, "lon_deg": 174.8, "hdg_mag_deg": 75.0 + turn}])
    with_it = winds.derive(states, DECODE, True)[0]
    without = winds.derive(by_hand, MAGNETIC, True)[0]
    assert with_it["u_m_s"][0] == pytest.approx(without["u_m_s"][0], abs=1e-9)


@pytest.mark.parametrize(("needed", "unknown"), [(True, {"roll_unknown": 1}), (False, {})])
def test_drops_by_reason(needed, unknown):
    rows = [
        {},
        {"roll_deg": 5.0},
        {"roll_deg": -5.1},
        {"roll_deg": None},
        {"gs_kt": None},
        {"lat_deg": None},
        {"alt_ft": 70_000.0},
        {"ias_kt": None},
        {"ias_kt": None, "mach": None},
        {"alt_ft": None},
        {"ts_s": 1.9e9 * 2},
        {"hdg_mag_deg": None},
    ]
    derived, counts = winds.derive(state(rows=rows), DECODE, needed)
    assert counts == {
        "read": 12,
        "kept": 3 if needed else 4,
        "dropped": unknown
        | {
            "banked": 1,
            "no_air_vector": 3,
            "no_altitude": 1,
            "no_position": 1,
            "no_velocity": 1,
            "time_outside_model": 1,
        },
    }
    assert list(derived.columns) == list(winds.COLUMNS) and dict(derived.schema) == winds.COLUMNS
    assert derived["u_m_s"].is_finite().all()


def test_an_impossible_wind_is_left_for_the_gate():
    derived, counts = winds.derive(state(rows=[{"gs_kt": 1000.0, "trk_deg": 255.0}]), DECODE, True)
    assert (
        counts["kept"] == 1
        and np.hypot(derived["u_m_s"][0], derived["v_m_s"][0]) > DECODE.wind_max_m_s
    )
