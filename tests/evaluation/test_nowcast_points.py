"""Files of points: whatever a context may look like, and what is told of a file that is none."""

import datetime as dt
import gzip
import json

import polars as pl
import pytest
from nowcasts import ask

from stages import cli
from stages.errors import InputError
from stages.winds.decoding import declared
from stages.winds.nowcast import capture
from stages.winds.nowcast.listed import read_points
from stages.winds.nowcast.points import Point, parse_time

TIME_S = 1_768_460_880.0  # 2026-01-15T07:08:00Z
WANTED = [Point(46.5, 7.0, 25000.0, TIME_S), Point(46.25, 7.5, 30000.0, TIME_S + 60)]
TABLE = {
    "lat_deg": [46.5, 46.25],
    "lon_deg": [7.0, 7.5],
    "alt_ft": [25000.0, 30000.0],
    "ts_s": [TIME_S, TIME_S + 60],
}
PLAIN = "lat_deg,lon_deg,alt_ft,time\n46.5,7,25000,2026-01-15T07:08:00Z\n46.25,7.5,FL300,{}\n"
PLAIN = PLAIN.format("2026-01-15T07:09:00Z")
MOMENTS = [dt.datetime(2026, 1, 15, 7, 8), dt.datetime(2026, 1, 15, 7, 9)]
TEXTS = {
    "plain": PLAIN,
    "capitals and blanks": PLAIN.replace("lat_deg,lon_deg", "LAT_DEG, Lon_deg ").replace(",", ", "),
    "semicolons": PLAIN.replace(",", ";").replace("46.5", "46,5"),
    "tabs": PLAIN.replace(",", "\t"),
    "ts_s": PLAIN.replace("time", "ts_s").replace("2026-01-15T07:08:00Z", f"{TIME_S:.0f}"),
    "other names": PLAIN.replace("lat_deg,lon_deg", "latitude,lon"),
    "metres": "lat,lon,alt_m,time\n46.5,7,7620,1768460880\n46.25,7.5,9144,1768460940\n",
    "a line between": PLAIN.replace("Z\n46", "Z\n\n46"),
    "line ends": PLAIN.replace("\n", "\r\n"),
}


def near(found):
    return [pytest.approx(vars(point)) for point in found]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", list(TEXTS))
def test_texts_of_every_hand_are_read(tmp_path, name, packed):
    content = TEXTS[name].encode()
    (tmp_path / "p").write_bytes(gzip.compress(content) if packed else content)
    assert [vars(point) for point in read_points(tmp_path / "p")] == near(WANTED)


@pytest.mark.parametrize("time", [TABLE["ts_s"], MOMENTS])
@pytest.mark.parametrize("name", ["ts_s", "Time"])
def test_parquet_is_read(airspace, settings, tmp_path, name, time):
    table = pl.DataFrame({**TABLE, "ts_s": time}).rename({"ts_s": name, "lat_deg": "Lat"})
    table.write_parquet(tmp_path / "points")
    assert [vars(point) for point in read_points(tmp_path / "points")] == near(WANTED)
    found = ask(airspace, settings, points=tmp_path / "points")
    assert [wind.point for wind in found] == read_points(tmp_path / "points")


@pytest.mark.parametrize(
    ("content", "says", "where"),
    [
        (PLAIN.replace("lon_deg", "lat_deg"), "the same name", ""),
        (PLAIN.replace("FL300", "FL300,9"), "more cells than the header", ", line 3"),
        (PLAIN.replace("FL300", "high"), "not a number", ", line 3"),
        (PLAIN.replace(",FL300", ""), "not a number", ", line 3"),
        (PLAIN.replace("time", "when"), "the points lack columns", ""),
        ("", "the points lack columns", ""),
    ],
)
def test_what_is_amiss_is_told_with_its_line(tmp_path, content, says, where):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(InputError, match=says) as told:
        read_points(tmp_path / "p.csv")
    assert told.value.where == f"{tmp_path / 'p.csv'}{where}"


def test_what_is_amiss_with_parquet_is_told_with_its_row(tmp_path):
    path = tmp_path / "p.parquet"
    table = pl.DataFrame(TABLE)
    for wrong, says, found in (
        (table.with_columns(pl.col("ts_s").cast(pl.Float32)), "a minute", "ts_s: Float32"),
        (table.with_columns(lat_deg=pl.Series([46.5, None])), "no place", "lat_deg null of row 2"),
        (table.drop("alt_ft"), "lack columns", "no alt_ft"),
    ):
        wrong.write_parquet(path)
        with pytest.raises(InputError, match=says) as told:
            read_points(path)
        assert told.value.found == found and told.value.where == str(path)
    path.write_bytes(path.read_bytes()[:-9])
    for gone in (path, tmp_path / "none.csv"):
        with pytest.raises(InputError, match="the file cannot be read"):
            read_points(gone)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(PLAIN.encode())[:-9])
    with pytest.raises(InputError, match="the compressed file is cut off"):
        read_points(tmp_path / "cut.gz")


def test_every_asks_for_a_stream(airspace, runs, tmp_path, monkeypatch, capsys):
    (tmp_path / "p.csv").write_text(PLAIN)
    words = ["tradewind", "nowcast", "--context", str(airspace / "winds.parquet"), "--model"]
    words += [str(runs / "kernel"), "--points", str(tmp_path / "p.csv"), "--json"]
    monkeypatch.setattr("sys.argv", words)
    assert cli.main() == 0 and len(json.loads(capsys.readouterr().out)["winds"]) == 2
    monkeypatch.setattr("sys.argv", [*words, "--every", "5"])
    assert cli.main() == 2 and "--every 5 with --context" in capsys.readouterr().err


@pytest.mark.parametrize(
    "time",
    ["20260115T070800Z", "2026-01-15T0708Z", "2026-01-15t07:08:00z", "15.01.2026 07:08:00",
     "2026/1/15 7:8:0", "2026-01-15 07:08:00 UTC", "2026-01-15T07:08:00,0Z", "2026-01-15T08:08+01"],
)  # fmt: skip
def test_a_time_is_read_as_in_a_context(time):
    schema = pl.Schema({"time": pl.String})
    context = pl.DataFrame({"time": [time]}).select(declared.ours(schema)["ts_s"])
    assert parse_time(time) == context["ts_s"][0] == TIME_S


@pytest.mark.parametrize("text", ["20260115", " 20260115 ", "2026-01-15"])
def test_eight_digits_of_a_text_are_a_date_in_a_context_too(text):
    schema = pl.Schema({"ts_s": pl.String})
    context = pl.DataFrame({"ts_s": [text]}).select(declared.ours(schema)["ts_s"])
    assert parse_time(text) == context["ts_s"][0] == TIME_S - TIME_S % 86_400


def test_a_year_of_two_digits_is_no_time():
    schema = pl.Schema({"time": pl.String})
    table = pl.DataFrame({"time": ["26-01-15 07:08"]})
    assert table.select(declared.ours(schema)["ts_s"])["ts_s"].to_list() == [None]
    with pytest.raises(InputError):
        parse_time("26-01-15 07:08")


def test_levels_and_milliseconds_are_read_as_pandas_writes_them(tmp_path):
    text = f"lat,lon,flight_level,ts_ms\n46.5,7,250.0,{TIME_S * 1e3:.0f}\n"
    (tmp_path / "p").write_text(text)
    assert [vars(point) for point in read_points(tmp_path / "p")] == near(WANTED[:1])


def test_altitudes_of_a_parquet_file_may_be_written_as_levels(tmp_path):
    table = pl.DataFrame({**TABLE, "alt_ft": ["FL250", "9144m"]})
    table.write_parquet(tmp_path / "p")
    assert [vars(point) for point in read_points(tmp_path / "p")] == near(WANTED)
    table.with_columns(lat_deg=pl.Series(["abc", "46.25"])).write_parquet(tmp_path / "q")
    with pytest.raises(InputError) as error:
        read_points(tmp_path / "q")
    assert "'abc'" in error.value.found and "row 1" in error.value.where


def test_a_header_without_rows_is_named(tmp_path):
    (tmp_path / "p").write_text(PLAIN.partition("\n")[0] + "\n")
    with pytest.raises(InputError, match="no point stands there") as error:
        read_points(tmp_path / "p")
    assert error.value.where == str(tmp_path / "p")


def test_lines_that_end_in_cr_alone_are_told(tmp_path):
    (tmp_path / "p").write_text(PLAIN.replace("\n", "\r"), newline="")
    with pytest.raises(InputError, match="CR alone") as error:
        read_points(tmp_path / "p")
    assert error.value.where == str(tmp_path / "p")


@pytest.mark.parametrize("content", [b"\x1a3\x00\rabc" * 20, b"\x00\x01\xfe\rabc"])
def test_bytes_that_are_no_text_have_no_lines(tmp_path, content):
    (tmp_path / "p").write_bytes(content)
    with pytest.raises(InputError, match="none of the known forms"):
        capture.form(tmp_path / "p")


@pytest.mark.parametrize("form", ["json", "jsonl", "json.gz"])
def test_points_in_json_are_those_of_csv(tmp_path, form):
    table = pl.DataFrame({"lat": [46.5, 47], "lon": [7.2, 8], "alt_ft": ["FL340", "33000"]})
    table = table.with_columns(time=pl.Series(["2026-01-17T05:00:00Z"] * 2))
    table.write_csv(tmp_path / "points.csv")
    text = table.write_ndjson() if form == "jsonl" else json.dumps(table.to_dicts())
    path = tmp_path / f"points.{form}"
    path.write_bytes(gzip.compress(text.encode()) if form.endswith("gz") else text.encode())
    assert read_points(path) == read_points(tmp_path / "points.csv")
