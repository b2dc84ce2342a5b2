"""A context in other units: declared in a column's name it is converted; hidden behind another
unit's name it is doubted by its distribution. Real winds and low ones are not."""

import gzip
import warnings

import numpy as np
import polars as pl
import pytest

from stages import api, cli, params
from stages.winds.nowcast import anywhere, capture, doubtful

KNOT = 1852 / 3600


@pytest.fixture(scope="module")
def winds():
    return pl.read_parquet(anywhere.example() / "winds.parquet")


def read(table, path):
    path.write_text(table.write_csv())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return capture.read(path, params.inference().decode)[0]


@pytest.mark.parametrize(
    "ways",
    [
        dict(
            alt_m=pl.col("alt_ft") * 0.3048,
            u_kn=pl.col("u_m_s") / KNOT,
            v_kt=pl.col("v_m_s") / KNOT,
        ),
        dict(
            flight_level=pl.col("alt_ft") / 100,
            speed_kn=(pl.col("u_m_s") ** 2 + pl.col("v_m_s") ** 2).sqrt() / KNOT,
            from_deg=pl.arctan2(-pl.col("u_m_s"), -pl.col("v_m_s")).degrees() % 360,
        ),
        dict(ts_ms=pl.col("ts_s") * 1000, latitude=pl.col("lat_deg"), lon=pl.col("lon_deg")),
        dict(time=pl.from_epoch(pl.col("ts_s") * 1e6, "us").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")),
    ],
    ids=["metres and knots", "levels and directions", "milliseconds", "texts"],
)
def test_units_in_the_names_are_converted(winds, tmp_path, ways):
    gone = {"alt_m": "alt_ft", "flight_level": "alt_ft", "u_kn": "u_m_s", "v_kt": "v_m_s"}
    gone |= {"speed_kn": "u_m_s", "from_deg": "v_m_s", "ts_ms": "ts_s", "time": "ts_s"}
    gone |= {"latitude": "lat_deg", "lon": "lon_deg"}
    ours = read(winds, tmp_path / "ours.csv")
    told = read(winds.select(pl.all().exclude(*map(gone.get, ways)), **ways), tmp_path / "told.csv")
    assert len(told) == len(ours)
    np.testing.assert_allclose(told.to_numpy(), ours.to_numpy(), rtol=1e-9, atol=2e-6)


@pytest.mark.parametrize(
    "wrong, told",
    [
        (pl.col("alt_ft") * 0.3048, "alt_ft holds metres, not feet?"),
        (pl.col("alt_ft") / 100, "alt_ft holds flight levels"),
        (pl.col("u_m_s", "v_m_s") * (60 / 35) / KNOT, "u_m_s and v_m_s hold knots"),
        (pl.col("ts_s") * 1e3, "ts_s holds Unix milliseconds"),
        (pl.col("ts_s") * 1e6, "ts_s holds Unix microseconds"),
    ],
)
def test_units_behind_other_names_are_doubted(winds, wrong, told):
    (doubt,) = doubtful.doubts(winds.with_columns(wrong))
    assert told in doubt


@pytest.mark.parametrize(
    "right",
    [
        pl.all(),
        pl.col("alt_ft") * 0.2,  # arrivals: nobody cruises
        pl.col("u_m_s", "v_m_s") * 1.5,  # a strong jet
        pl.lit(None, pl.Float64).alias("alt_ft"),
    ],
)
def test_what_can_be_is_not_doubted(winds, right):
    assert doubtful.doubts(winds.with_columns(right)) == []
    assert doubtful.doubts(winds.head(20).with_columns(pl.col("ts_s") * 1e3)) == []


def test_a_doubt_is_told_by_the_shell_and_by_python(winds, tmp_path, monkeypatch, capsys):
    file = tmp_path / "winds.csv.gz"
    fast = winds.with_columns(pl.col("u_m_s", "v_m_s") * 3)
    file.write_bytes(gzip.compress(fast.write_csv().encode()))
    monkeypatch.chdir(tmp_path)
    at = "46.5,7.2,FL340,2026-01-17T03:02:00Z"
    monkeypatch.setattr("sys.argv", ["tradewind", "nowcast", "--context", str(file), "--at", at])
    assert cli.main() == 0
    out, err = capsys.readouterr()
    assert err.startswith(f"warning: {file}: u_m_s and v_m_s hold knots") and "kn" in out
    asked = pl.DataFrame(dict(lat_deg=[46.5], lon_deg=[7.2], alt_ft=[34e3], time=[at[-20:]]))
    with pytest.warns(UserWarning, match="hold knots"):
        api.load().predict(asked, context=fast)
