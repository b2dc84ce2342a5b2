"""Contexts that a nowcast is asked to read: forms, columns, unusable rows, damage; and the
command."""

import polars as pl
import pytest
from nowcasts import ASKED, ask

from stages import cli
from stages.errors import DataError, InputError
from stages.winds.nowcast import capture

# Captures.


def test_csv_gives_what_parquet_gives(airspace, settings, tmp_path):
    rows = pl.read_parquet(airspace / "winds.parquet")
    rows.sample(fraction=1, shuffle=True, seed=0).write_csv(tmp_path / "capture.csv")
    rows.drop("icao", "file", "u_true_m_s").write_parquet(tmp_path / "oddly named")
    for name in ("capture.csv", "oddly named"):
        (one,) = ask(airspace, settings, ASKED, context=tmp_path / name)
        (two,) = ask(airspace, settings, ASKED)
        assert (one.u_m_s, one.v_m_s) == pytest.approx(
            (two.u_m_s, two.v_m_s), abs=1e-5
        ) and one.context == two.context


def test_a_published_winds_table(airspace, settings, tmp_path):
    rows = pl.read_parquet(airspace / "winds.parquet")
    rows.select(
        ts="ts_s",
        icao="icao",
        lat="lat_deg",
        lon="lon_deg",
        alt="alt_ft",
        vw=pl.lit(0.0),
        dw=pl.lit(0.0),
        vwx="u_m_s",
        vwy="v_m_s",
    ).write_csv(tmp_path / "wind.csv")
    assert capture.form(tmp_path / "wind.csv") == "winds"
    one = ask(airspace, settings, ASKED, context=tmp_path / "wind.csv")[0]
    two = ask(airspace, settings, ASKED)[0]
    assert (one.u_m_s, one.v_m_s) == pytest.approx((two.u_m_s, two.v_m_s), abs=1e-5)


def test_unusable_rows_are_left_out(airspace, settings, tmp_path):
    rows = pl.read_parquet(airspace / "winds.parquet")
    bad = rows[:50].with_columns(u_m_s=pl.lit(400.0))
    nulls = rows[50:60].with_columns(alt_ft=pl.lit(None, pl.Float64))
    pl.concat([rows, rows[:100], bad, nulls]).write_parquet(tmp_path / "capture.parquet")
    assert capture.winds(tmp_path / "capture.parquet", settings.decode).equals(
        capture.winds(airspace / "winds.parquet", settings.decode)
    )


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"1484136000.1,8D40621D58C382D690C8AC2863A7\n", "frames"),
        (b"\xef\xbb\xbf1484136000.1,4840d6,A0001838201584F23468207CDFA5\n", "frames"),
        (b'1484136000.1,"5D40621D58C382","40621D",A320\n', "frames"),
        (b"ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s\n", "csv"),
        (b"ts,icao,lat,lon,alt,gs_adsb,trk_adsb,hdg,ias,mach,trk,gs,tas\n", "states"),
    ],
)
def test_forms_are_told_by_their_content(tmp_path, content, kind):
    (tmp_path / "capture").write_bytes(content)
    assert capture.form(tmp_path / "capture") == kind


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "an empty file"),
        (b"a,b\n1,2\n", "none of the known forms"),
        (b"\x00\xff\x89PNG", "none of the known forms"),
    ],
)
def test_other_files_are_refused(tmp_path, settings, content, says):
    (tmp_path / "capture").write_bytes(content)
    with pytest.raises(InputError, match=says):
        capture.winds(tmp_path / "capture", settings.decode)


def test_damaged_and_absent_files(airspace, tmp_path, settings):
    (tmp_path / "cut.parquet").write_bytes((airspace / "winds.parquet").read_bytes()[:3000])
    with pytest.raises(DataError, match="cannot be read"):
        capture.winds(tmp_path / "cut.parquet", settings.decode)
    with pytest.raises(InputError, match="cannot be read"):
        capture.winds(tmp_path / "none.parquet", settings.decode)
    pl.read_parquet(airspace / "winds.parquet").drop("alt_ft").write_parquet(
        tmp_path / "less.parquet"
    )
    with pytest.raises(InputError, match="no alt_ft"):
        capture.winds(tmp_path / "less.parquet", settings.decode)
    pl.read_parquet(airspace / "winds.parquet")[:0].write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="no usable wind"):
        ask(airspace, settings, ASKED, context=tmp_path / "empty.parquet")


def test_the_command(airspace, runs, capsys, monkeypatch):
    words = [
        "tradewind",
        "nowcast",
        "--context",
        str(airspace / "winds.parquet"),
        "--model",
        str(runs / "msa-gaussian-5k-s0"),
    ]
    monkeypatch.setattr("sys.argv", [*words, "--at", ASKED])
    assert cli.main() == 0
    assert "2026-01-15T07:08:00Z" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*words, "--at", "0,0,0,0"])
    assert cli.main() == 2
    assert capsys.readouterr().err.startswith("error: the model knows nothing of that place")
