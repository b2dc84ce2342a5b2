"""Biases of aircraft's own instruments, found from the winds of others near them."""

import sys

import numpy as np
import polars as pl
import pytest
from decoded_here import SETTINGS, transformed

from stages import cli, seeds
from stages.errors import InputError
from stages.units import FOOT_M, KNOT_M_S
from stages.winds.decoding import biases
from stages.winds.sky.simulated import simulate

HEADING_DEG, AIRSPEED_KT, NOISE_M_S = 2.0, 3.0, 1.1
PRIOR = HEADING_DEG / 3**0.5, AIRSPEED_KT * KNOT_M_S / 3**0.5  # of a uniform law


def wind(east_km, north_km, up_km, hours):
    """A jet that turns and moves, 20 to 50 m/s."""
    bend = 0.4 * np.sin(2 * np.pi * (east_km / 700 - hours / 12))
    speed = 25 + 3.0 * (up_km - 9) + 12 * np.cos(2 * np.pi * (north_km / 900 + bend / 3))
    return np.stack([speed * np.cos(bend), speed * np.sin(bend)], 1)


def flown(aircraft=110, hours=2.0, heading=HEADING_DEG, airspeed=AIRSPEED_KT):
    """Rows as they are measured, the true winds (N, 2) and the biases (A, 2): straight flights of
    45 minutes over 500 km x 600 km, some 40 in the air at once."""
    rng = seeds.stream(0, "biases")
    parts, truth = [], []
    own = rng.uniform(-1, 1, (aircraft, 2)) * (heading, airspeed * KNOT_M_S)
    for number in range(aircraft):
        t = rng.uniform(0, hours * 3600) + np.arange(0, 2700, 10.0)
        course, speed = rng.uniform(0, 2 * np.pi), rng.uniform(200, 250)
        way = speed * (t - t.mean()) / 1e3
        east = rng.uniform(100, 400) + way * np.sin(course)
        north = rng.uniform(100, 500) + way * np.cos(course)
        up = np.full_like(t, rng.choice(np.arange(8.5, 11.6, 0.3)))
        real = wind(east, north, up, t / 3600)
        ground = speed * np.array([np.sin(course), np.cos(course)])
        air = ground - real - rng.normal(0, NOISE_M_S, real.shape)
        heading_deg = np.degrees(np.arctan2(air[:, 0], air[:, 1])) + own[number, 0]
        truth.append(real)
        parts.append(
            {
                "ts_s": t,
                "icao": [f"{number:06X}"] * len(t),
                "lat_deg": 44 + north / 111.19508,
                "lon_deg": 4 + east / (111.19508 * np.cos(np.radians(46.7))),
                "alt_ft": up * 1e3 / FOOT_M,
                "gs_kt": np.full_like(t, speed / KNOT_M_S),
                "trk_deg": np.full_like(t, np.degrees(course)),
                "tas_kt": (np.hypot(*air.T) + own[number, 1]) / KNOT_M_S,
                "hdg_deg": heading_deg,
            }
        )
    rows = pl.concat([pl.DataFrame(part) for part in parts])
    order = np.argsort(rows["ts_s"].to_numpy(), kind="stable")
    return rows[order], np.concatenate(truth)[order], own


@pytest.fixture(scope="module")
def world():
    rows, truth, own = flown()
    return rows, truth, own, biases.estimate(rows, *PRIOR)


def rms(rows, truth):
    return float(np.sqrt(np.mean((rows.select("u_m_s", "v_m_s").to_numpy() - truth) ** 2)))


def test_less_than_1_4_m_s_of_biases_of_2_degrees_and_3_knots_is_left(world):
    """Of a component; the sensors' own noise comes on top."""
    rows, truth, own, found = world
    wrong, turn = biases.winds_and_sensitivities(rows)
    of = rows["icao"].rank("dense").to_numpy().astype(int) - 1
    before, left = (
        float(np.sqrt(np.mean(np.einsum("nij,nj->ni", turn, lean[of]) ** 2)))
        for lean in (own, own - found.mean)
    )
    assert before > 3.0 and left < 1.4
    told = rms(found.corrected(rows), truth)
    assert told == pytest.approx(np.hypot(left, NOISE_M_S), rel=0.1)
    assert told < 0.6 * float(np.sqrt(np.mean((wrong - truth) ** 2)))


def test_the_biases_are_those_and_their_covariances_say_how_well_they_are_known(world):
    _, _, own, found = world
    assert found.icao == [f"{number:06X}" for number in range(len(own))]
    apart = found.mean - own
    assert np.corrcoef(found.mean[:, 0], own[:, 0])[0, 1] > 0.95
    scale = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
    assert 0.7 < np.sqrt(np.mean((apart / scale) ** 2)) < 1.5


def test_the_error_bars_hold_what_they_say(world):
    rows, truth, _, found = world
    told = found.corrected(rows)
    error = told.select("u_m_s", "v_m_s").to_numpy() - truth
    assert found.noise_m_s == pytest.approx(NOISE_M_S, rel=0.25)
    inside = np.abs(error) < 1.645 * told["error_m_s"].to_numpy()[:, None]
    assert 0.8 < inside.mean() < 0.98


def test_turning_a_heading_and_an_airspeed_does_what_is_said(world):
    rows, _, _, _ = world
    some = rows[:50]
    wind_before, turn = biases.winds_and_sensitivities(some)
    moved = some.with_columns(
        hdg_deg=pl.col("hdg_deg") + 0.01, tas_kt=pl.col("tas_kt") + 0.02 / KNOT_M_S
    )
    after, _ = biases.winds_and_sensitivities(moved)
    np.testing.assert_allclose(after - wind_before, turn @ (0.01, 0.02), atol=2e-5)


def test_an_aircraft_alone_keeps_its_wind_and_its_prior(world):
    rows, _, _, found = world
    alone = rows.filter(pl.col("icao") == "000000")
    single = biases.estimate(alone, *PRIOR)
    np.testing.assert_allclose(single.mean, 0, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diagonal(single.covariance[0])), PRIOR)
    other = found.corrected(alone.with_columns(icao=pl.lit("FFFFFF")))
    np.testing.assert_allclose(
        other.select("u_m_s", "v_m_s").to_numpy(), biases.winds_and_sensitivities(alone)[0]
    )
    assert other["error_m_s"].null_count() == len(other)


def test_an_encounter_counts_once_however_often_it_is_reported(world):
    rows, *_ = world
    left, right, _, weight = biases.pairs(rows[:4000])
    assert len({*zip(left.tolist(), right.tolist(), strict=True)}) == len(left)
    names, seconds = rows["icao"], rows["ts_s"].to_numpy()
    sums: dict = {}
    for a, b, w in zip(left, right, weight, strict=True):
        key = (*sorted((names[int(a)], names[int(b)])), seconds[a] // biases.ENCOUNTER_S)
        sums[key] = sums.get(key, 0.0) + w
    np.testing.assert_allclose(list(sums.values()), 1.0)


def test_more_aircraft_than_fit_are_the_users_mistake(world, monkeypatch):
    monkeypatch.setattr(biases, "MOST", 100)
    with pytest.raises(InputError, match="too many aircraft"):
        biases.estimate(world[0], *PRIOR)


def test_the_simulated_sky_with_biases_decoded_comes_near_the_one_without(
    tmp_path, monkeypatch, capsys
):
    """44 aircraft, as the document's sky has at a time, heard for half an hour."""
    plan = SETTINGS.datasets["sky_44"].simulate.model_copy(update={"hours": 0.5})
    assert (plan.aircraft, plan.heading_bias_deg, plan.airspeed_bias_kt) == (44, 2.0, 3.0)
    (tmp_path / "raw").mkdir()
    simulate(plan, tmp_path / "raw")
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    rows = biases.decoded(tmp_path / "out")
    wind, _ = biases.winds_and_sensitivities(rows)
    np.testing.assert_allclose(wind, rows.select("u_m_s", "v_m_s").to_numpy(), atol=1e-6)
    before = counts["metrics"]["wind_error"]["rmse_component_m_s"]
    told = biases.estimate(rows, *PRIOR).corrected(rows)
    after = rms(told, rows.select("u_true_m_s", "v_true_m_s").to_numpy())
    noise = 0.93  # of the sensors, a component, as test_decode.py has it
    assert before > 2.5 and np.sqrt(after**2 - noise**2) < 1.4
    assert told["error_m_s"].is_between(noise / 2, 6).all()

    out = tmp_path / "corrected.parquet"
    monkeypatch.setattr(
        sys, "argv", ["tradewind", "biases", str(tmp_path / "out"), "--out", str(out)]
    )
    assert cli.main() == 0
    said = capsys.readouterr().out
    assert f"Of {len(rows):,} winds" in said and "aircraft more: --all" in said
    written = pl.read_parquet(out)
    left = rms(written, written.select("u_true_m_s", "v_true_m_s").to_numpy())
    assert left == pytest.approx(after, rel=0.05)  # by the expected spreads, not the known ones
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--heading-deg", "0"])
    assert cli.main() == 2 and "--heading-deg" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", sys.argv[:-2])
    whole = pl.read_parquet(tmp_path / "out/winds.parquet")
    whole.clear().write_parquet(tmp_path / "out/winds.parquet")
    assert cli.main() == 2 and "no wind with its states" in capsys.readouterr().err
    (tmp_path / "out/states.parquet").unlink()
    assert cli.main() == 2 and "no states.parquet" in capsys.readouterr().err
