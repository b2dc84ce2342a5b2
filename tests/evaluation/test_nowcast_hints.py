"""What a capture is refused for, with the hint that mends it: columns exchanged, a text in UTF-16,
names that are taken, a file without rows."""

import re

import polars as pl
import pytest

from stages import cli, params
from stages.errors import InputError
from stages.verbs import looks
from stages.winds.decoding import declared
from stages.winds.nowcast import anywhere, capture, listed

AT = "46.5,7.2,FL340,2026-01-17T03:02:00Z"


@pytest.fixture(scope="module")
def winds():
    return pl.read_parquet(anywhere.example() / "winds.parquet")


@pytest.fixture
def refused(monkeypatch, capsys, tmp_path):
    """What the shell says of a table that the example is asked with."""

    def ask(table):
        table.write_csv(tmp_path / "winds.csv")
        monkeypatch.chdir(tmp_path)
        words = ["tradewind", "nowcast", "--context", "winds.csv", "--at", AT]
        monkeypatch.setattr("sys.argv", words)
        assert cli.main() == 2
        return capsys.readouterr().err

    return ask


def test_latitude_and_longitude_the_other_way_round_are_told(winds, refused):
    wrong = winds.rename({"lat_deg": "lon_deg", "lon_deg": "lat_deg"})
    told = refused(wrong)
    assert "all lie outside the model's area" in told
    assert "remedy: exchange latitude and longitude: " in told and "100 % of the winds" in told
    far = refused(winds.with_columns(pl.col("lat_deg") + 20))
    assert "exchange" not in far and "give a capture of the area" in far


def test_a_file_without_rows_has_none_to_mend(winds, refused):
    told = refused(winds.clear())
    assert "found: no rows" in told and "dropped" not in told
    assert "remedy: give a capture that holds winds" in told
    told = refused(winds.with_columns(u_m_s=pl.lit(999.0)))
    assert "over_wind_max" in told and "mend what most rows were dropped for" in told


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be"])
def test_a_text_in_utf_16_is_called_that_by_whatever_reads_tables(winds, tmp_path, codec):
    mark = b"\xfe\xff" if codec == "utf-16-be" else b""
    path = tmp_path / "winds.csv"
    path.write_bytes(mark + winds.write_csv().encode(codec))
    for read in (capture.form, looks.look, listed.read_points):
        with pytest.raises(InputError, match="written in UTF-16") as error:
            read(path)
        assert str(path) in error.value.where and "save it as UTF-8" in error.value.remedy
    path.write_text(path.read_bytes().decode("utf-16"))
    assert capture.form(path) == "ours"


def test_what_is_expected_names_columns_that_are_taken(winds, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError) as error:
        capture.form(tmp_path / "a.csv")
    told = re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", error.value.expected)
    assert {"ts_ms", "flight_level", "alt_m", "speed_kn", "from_deg"} < set(told)
    assert set(told) <= set(declared.names()) and set(capture.COLUMNS) < set(told)
    other = winds.select(
        pl.col("lat_deg", "lon_deg"),
        ts_ms=pl.col("ts_s") * 1000,
        flight_level=pl.col("alt_ft") / 100,
        speed_m_s=(pl.col("u_m_s") ** 2 + pl.col("v_m_s") ** 2).sqrt(),
        from_deg=pl.arctan2(-pl.col("u_m_s"), -pl.col("v_m_s")).degrees() % 360,
    )
    other.write_csv(tmp_path / "b.csv")
    kept = capture.winds(tmp_path / "b.csv", params.inference().decode)
    assert len(kept) == len(winds.select(capture.COLUMNS).unique())
