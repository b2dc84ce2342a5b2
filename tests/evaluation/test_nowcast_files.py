"""Contexts that a nowcast is asked to read: forms, columns, unusable rows, damage; and the
command."""

import json

import polars as pl
import pytest
from nowcasts import ASKED, ask

from stages import cli
from stages.errors import InputError
from stages.winds.nowcast import answers, capture, nowcast

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
        (b"ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s\n", "ours"),
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
    with pytest.raises(InputError, match="cannot be read"):
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


def test_rows_where_no_aircraft_can_be_are_left_out(airspace, settings, tmp_path):
    rows = pl.read_parquet(airspace / "winds.parquet")
    place = {"lat_deg": 500.0, "lon_deg": -181.0, "alt_ft": 9e9, "ts_s": -1.0}
    wrong = [rows[:3].with_columns(pl.lit(value).alias(name)) for name, value in place.items()]
    pl.concat([rows, *wrong]).write_parquet(tmp_path / "capture.parquet")
    kept, dropped = capture.read(tmp_path / "capture.parquet", settings.decode)
    assert kept.equals(capture.winds(airspace / "winds.parquet", settings.decode))
    assert dropped["outside_range"] == 12


def test_a_context_wholly_outside_the_models_area_is_refused(airspace, settings, tmp_path):
    rows = pl.read_parquet(airspace / "winds.parquet")
    far = rows.with_columns(pl.col("lat_deg") + 20)
    far.write_parquet(tmp_path / "far.parquet")
    with pytest.raises(InputError, match="all lie outside the model's area"):
        ask(airspace, settings, ASKED, context=tmp_path / "far.parquet")
    pl.concat([far, rows]).sort("ts_s").write_parquet(tmp_path / "both.parquet")
    assert ask(airspace, settings, ASKED, context=tmp_path / "both.parquet")


def test_a_capture_without_a_usable_wind_says_why(airspace, settings, tmp_path):
    rows = pl.read_parquet(airspace / "winds.parquet")
    bad = pl.concat(
        [rows[:7].with_columns(u_m_s=400.0), rows[7:9].with_columns(alt_ft=9e9, v_m_s=0.0)]
    )
    bad.write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="no usable wind") as told:
        ask(airspace, settings, ASKED, context=tmp_path / "bad.parquet")
    assert told.value.found == "rows dropped: 2 outside_range, 7 over_wind_max"


def test_reasons_that_no_row_was_dropped_for_are_not_told(airspace, settings, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"when": 1, "frame": "8D40621D58C382D690C8AC2863A7"}\n' * 3)
    with pytest.raises(InputError, match="no usable wind") as told:
        ask(airspace, settings, ASKED, context=tmp_path / "a.jsonl")
    assert told.value.found == "rows dropped: 3 no_time"


def test_points_with_a_huge_cell_are_refused(airspace, settings, tmp_path):
    (tmp_path / "p.csv").write_text("lat_deg,lon_deg,alt_ft,time\n" + "4" * 200_000 + ",7,1,0\n")
    with pytest.raises(InputError, match="the file cannot be read"):
        ask(airspace, settings, points=tmp_path / "p.csv")


def test_winds_of_windows_that_overlap_are_counted_once():
    known = pl.DataFrame({"ts_s": [0.0, 10.0, 20.0, 30.0, 40.0]})
    assert nowcast.together(known, [(0.0, 25.0), (10.0, 35.0), (40.0, 50.0), (0.0, 5.0)]) == 5
    assert nowcast.together(known, [(0.0, 15.0), (30.0, 35.0)]) == 3


def test_what_was_dropped_is_told_beside_the_answer(airspace, settings, tmp_path):
    rows = pl.read_parquet(airspace / "winds.parquet")
    null = rows[:3].with_columns(alt_ft=pl.lit(None, pl.Float64))
    bad = [null, rows[:2].with_columns(u_m_s=400.0), rows[:1]]
    pl.concat([rows, *bad]).write_parquet(tmp_path / "capture.parquet")
    winds = ask(airspace, settings, ASKED, context=tmp_path / "capture.parquet")
    whole = ask(airspace, settings, ASKED)
    told, nothing = answers.render(winds).splitlines(), answers.render(whole).splitlines()
    assert told[1] == "dropped: 1 duplicate, 3 null, 2 over_wind_max"
    assert [told[0], *told[2:]] == nothing
    counts = {"duplicate": 1, "null": 3, "over_wind_max": 2}
    assert json.loads(answers.as_json(winds))["dropped"] == counts
    assert json.loads(answers.as_json(whole))["dropped"] == {}
