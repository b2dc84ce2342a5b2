"""A context in other units: declared in a column's name it is converted; hidden behind another
unit's name it is doubted by its distribution. Real winds and low ones are not."""

import gzip
import json
import re
import warnings

import numpy as np
import polars as pl
import pytest

from stages import api, cli, params
from stages.errors import InputError, TradewindError
from stages.verbs import looks
from stages.winds.decoding import declared, readers
from stages.winds.nowcast import anywhere, capture, doubtful, handed, points

KNOT = 1852 / 3600
PUBLISHED = {"ts_s": "ts", "lat_deg": "lat", "lon_deg": "lon", "alt_ft": "alt"}
PUBLISHED |= {"u_m_s": "vwx", "v_m_s": "vwy"}


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


def test_columns_that_disagree_are_told(winds, tmp_path):
    """Two columns may tell the same, to roundings: feet and levels, a time and its text."""
    both = winds.with_columns(
        flight_level=(pl.col("alt_ft") / 100).round(),
        time=pl.from_epoch(pl.col("ts_s"), "s").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    ours = read(both, tmp_path / "same.csv")
    level = pl.col("flight_level") + pl.when(pl.int_range(pl.len()) < 3).then(50).otherwise(0)
    path = tmp_path / "other.csv"
    path.write_text(both.with_columns(flight_level=level).write_csv())
    said = f"alt_ft and flight_level disagree in 3 of {len(winds):,} rows"
    with pytest.warns(UserWarning, match=said):
        rows = capture.read(path, params.inference().decode)[0]
    assert rows.equals(ours), "the first is read"


@pytest.mark.parametrize(
    "wrong, told",
    [
        (pl.col("alt_ft") * 0.3048, "alt_ft holds metres, not feet?"),
        (pl.col("alt_ft") / 100, "alt_ft holds flight levels"),
        (pl.col("u_m_s", "v_m_s") * (60 / 35) / KNOT, "u_m_s and v_m_s hold knots"),
        (pl.col("ts_s") * 1e3, "ts_s holds Unix milliseconds"),
        (pl.col("ts_s") * 1e6, "ts_s holds Unix microseconds"),
        (pl.col("ts_s") % 86400, "ts_s holds no Unix seconds"),
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


@pytest.mark.parametrize(
    "factor, doubted", [(1 / KNOT, True), (1.0, False), (0.1 / KNOT, False), (0.1, False)]
)
def test_knots_below_every_jet_stream_are_doubted_by_the_model_s_own_winds(
    winds, tmp_path, monkeypatch, capsys, factor, doubted
):
    """The example's winds as knots, as they are, and those of a calm day."""
    file = tmp_path / "winds.csv"
    told = winds.with_columns(pl.col("u_m_s", "v_m_s") * factor)
    told.write_csv(file)
    assert doubtful.doubts(told) == [], "without a model nothing tells"
    monkeypatch.chdir(tmp_path)
    at = "46.5,7.2,FL340,2026-01-17T03:02:00Z"
    monkeypatch.setattr("sys.argv", ["tradewind", "nowcast", "--context", str(file), "--at", at])
    assert cli.main() == 0
    out, err = capsys.readouterr()
    assert (f"warning: {file}: u_m_s and v_m_s hold knots" in err) == doubted and " kn " in out
    asked = pl.DataFrame(dict(lat_deg=[46.5], lon_deg=[7.2], alt_ft=[34e3], time=[at[-20:]]))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        api.load().predict(asked, context=told)
        api.load().predict(asked, context=file)
    assert [("29 m/s that the model was trained on" in str(one.message)) for one in said].count(
        True
    ) == 2 * doubted


def test_a_few_wild_rows_are_no_knots(winds):
    wild = winds.with_columns(u_m_s=pl.when(pl.int_range(pl.len()) < 20).then(9999.0).otherwise(1))
    assert doubtful.doubts(wild, 29.0) == []


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


MOMENT = pl.from_epoch((pl.col("ts_s") * 1e6).cast(pl.Int64), "us")


@pytest.mark.parametrize(
    "time",
    [
        pl.col("ts_s"),
        MOMENT.dt.strftime("%Y-%m-%d %H:%M:%S%.6f+00:00"),
        (MOMENT + pl.duration(hours=1)).dt.strftime("%Y-%m-%dT%H:%M:%S%.6f+01:00"),
        (MOMENT - pl.duration(hours=5)).dt.strftime("%Y-%m-%d %H:%M:%S%.6f -0500"),
        MOMENT.dt.strftime("%d.%m.%Y %H:%M:%S%.6f UTC"),
    ],
    ids=["Unix seconds", "as pandas has UTC", "an offset", "west", "dots"],
)
def test_times_of_every_spelling_are_one(winds, tmp_path, time):
    ours = read(winds, tmp_path / "ours.csv")
    table = winds.select(pl.all().exclude("ts_s"), time=time)
    told = read(table, tmp_path / "told.csv")
    assert len(told) == len(ours)
    np.testing.assert_allclose(told["ts_s"].to_numpy(), ours["ts_s"].to_numpy(), atol=2e-6)
    seen = looks.look(tmp_path / "told.csv")
    assert seen.kind == "winds" and seen.span_s == pytest.approx(
        (ours["ts_s"].min(), ours["ts_s"].max())
    )
    if table["time"].dtype != pl.String:
        table.write_parquet(tmp_path / "told")
        parquet = capture.winds(tmp_path / "told", params.inference().decode)
        assert parquet["ts_s"].equals(ours["ts_s"])


@pytest.mark.parametrize("name", ["time", "ts_s"])
@pytest.mark.parametrize("factor", [1e3, 1e6, 1e9])
def test_times_in_milliseconds_are_those_of_seconds(winds, tmp_path, name, factor):
    ours = read(winds, tmp_path / "ours.csv")
    table = winds.select(
        pl.all().exclude("ts_s"), (pl.col("ts_s") * factor).round().cast(pl.Int64).alias(name)
    )
    told = read(table, tmp_path / "told.csv")
    assert told["ts_s"].to_list() == pytest.approx(ours["ts_s"].to_list(), abs=1e-3)
    of_python = handed.seconds(table[name], "the context")
    assert of_python.sort().to_list() == pytest.approx(ours["ts_s"].to_list(), abs=1e-3)
    assert points.parse_time(str(table[name][0])) == pytest.approx(winds["ts_s"][0], abs=1e-3)


@pytest.mark.parametrize("form", ["json", "jsonl", "json.gz", "csv.gz", "parquet"])
@pytest.mark.parametrize("names", [{}, PUBLISHED], ids=["ours", "published"])
def test_winds_are_read_alike_from_every_form(winds, tmp_path, form, names):
    table = winds.rename(names).with_columns(icao=pl.lit("4b1a00"))
    path = tmp_path / f"told.{form}"
    content = {"json": json.dumps(table.to_dicts()), "jsonl": table.write_ndjson()}
    content = content.get(form.removesuffix(".gz"), table.write_csv()).encode()
    if form == "parquet":
        table.write_parquet(path)
    else:
        path.write_bytes(gzip.compress(content) if form.endswith(".gz") else content)
    ours = read(winds, tmp_path / "ours.csv")
    assert capture.form(path) == ("winds" if names else "ours")
    np.testing.assert_allclose(
        capture.winds(path, params.inference().decode).to_numpy(), ours.to_numpy(), rtol=1e-12
    )
    decoded = readers.read_winds(path, 0).collect()  # as the stage reads them
    assert decoded["drop"].is_null().all() and set(decoded["icao"]) == {"4B1A00"}
    assert decoded["u_m_s"].to_list() == pytest.approx(winds["u_m_s"].to_list())


@pytest.mark.parametrize(
    "header, row",
    [
        ("ts;icao;lat;lon;alt;vwx;vwy", "{};2;3;4;5;6,5;7"),
        (" TS,icao,lat,lon,Alt,vwx, VWY", "{},2,3,4,5,6.5,7"),
    ],
)
def test_a_published_table_is_read_whatever_its_separators_and_capitals(tmp_path, header, row):
    path = tmp_path / "told.csv"
    path.write_text("\n".join([header, *(row.format(1_500_000_000 + i) for i in range(3))]))
    told = capture.winds(path, params.inference().decode)
    assert told["ts_s"].to_list() == [1.5e9, 1.5e9 + 1, 1.5e9 + 2]
    assert told.row(0)[1:] == (3.0, 4.0, 5.0, 6.5, 7.0)


@pytest.mark.parametrize("text", ['[{"ts_s": 1, "lat_deg": ', '{"ts_s": 1}\n{"ts_s": '])
def test_damaged_json_is_refused_by_its_name(tmp_path, text):
    keys = dict.fromkeys(capture.COLUMNS, 1.0)
    whole = json.dumps(keys)
    path = tmp_path / "a.jsonl"
    path.write_text(f"{whole}\n{text}" if text.startswith("{") else f"[{whole}, {text[1:]}")
    with pytest.raises(InputError, match="the JSON is damaged"):
        capture.winds(path, params.inference().decode)


def test_times_without_seconds_or_clock_are_read():
    spelt = ["2026-01-17T04:25Z", "2026/01/17 04:25", "2026-01-17 05:25+01", " 2026-01-17 "]
    table = pl.DataFrame({"time": [*spelt, "01/02/2026 04:25:00", "soon", "", None]})
    bad = declared.unread(table.schema)["ts_s"].alias("bad")
    told = table.select(declared.ours(table.schema)["ts_s"], bad)
    assert told["ts_s"].to_list() == [1768623900.0] * 3 + [1768608000.0] + [None] * 4
    assert told["bad"].to_list() == [False] * 4 + [True] * 2 + [False] * 2


def test_cells_that_are_no_numbers_are_counted_and_named(winds, tmp_path):
    ours = read(winds, tmp_path / "ours.csv")
    lines = (tmp_path / "ours.csv").read_text().splitlines()
    assert all(".0," in line for line in lines[1:300])
    whole = [line.replace(".0,", ",") for line in lines[:300]]
    half = [*whole, *lines[300:-1], lines[-1].replace(".0,", ".5,")]
    (tmp_path / "half.csv").write_text("\n".join(half))
    decode = params.inference().decode
    assert len(capture.winds(tmp_path / "half.csv", decode)) == len(ours)
    for word in ("NA", "FL340"):
        told = winds.with_columns(alt_ft=pl.concat_str(pl.col("alt_ft")))
        some = pl.when(pl.int_range(pl.len()) < 7).then(pl.lit(word)).otherwise("alt_ft")
        told.with_columns(alt_ft=some).write_csv(tmp_path / "some.csv")
        kept, dropped = capture.read(tmp_path / "some.csv", decode)
        assert len(kept) == len(ours) - 7 and dropped == {"unreadable": 7}
    told.with_columns(alt_ft=pl.lit("FL340")).write_csv(tmp_path / "all.csv")
    with pytest.raises(InputError, match="no row of the capture can be read") as error:
        capture.read(tmp_path / "all.csv", decode)
    assert error.value.found == "alt_ft 'FL340'"


@pytest.mark.parametrize(
    "rewritten",
    [
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", ";").replace(".", ","),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace(",", ", ").upper(),
        lambda text: re.sub("[a-z_]+", r'"\g<0>"', text),
    ],
    ids=["semicolons", "decimal commas", "tabs", "blanks and capitals", "quotes"],
)
def test_tables_of_every_hand_are_read_by_both_verbs(winds, tmp_path, rewritten):
    ours = read(winds, tmp_path / "ours.csv")
    (tmp_path / "told.csv").write_text(rewritten((tmp_path / "ours.csv").read_text()))
    assert capture.winds(tmp_path / "told.csv", params.inference().decode).equals(ours)
    seen = looks.look(tmp_path / "told.csv")
    assert seen.kind == "winds" and seen.rows == len(winds)
    assert not seen.doubts and seen.span_s == (ours["ts_s"].min(), ours["ts_s"].max())


@pytest.mark.parametrize(
    "content, says",
    [
        (
            "ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s,lat_deg\n1,2,3,4,5,6,7\n",
            "lat_deg as columns 2 and 7",
        ),
        (
            "ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s,LAT_DEG \n1,2,3,4,5,6,7\n",
            "lat_deg as columns 2",
        ),
        ("ts,icao,lat,lon,alt,vwx,vwy,ts\n1,2,3,4,5,6,7,8\n", "ts as columns 1 and 8"),
        ("ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s\n1,2,3,4,5,6,7\n", "more cells than the header"),
    ],
)
def test_headers_that_mislead_are_refused_by_both_verbs(tmp_path, content, says):
    (tmp_path / "told.csv").write_text(content)
    with pytest.raises(TradewindError, match=says):
        capture.read(tmp_path / "told.csv", params.inference().decode)
    with pytest.raises(TradewindError, match=says):
        looks.look(tmp_path / "told.csv")


def test_a_table_that_lacks_a_column_is_told_which(tmp_path):
    (tmp_path / "told.csv").write_text("ts_s;lat;lon;alt_ft;u_m_s\n1;2;3;4;5\n")
    with pytest.raises(InputError, match="a table parted by semicolons with no v_m_s"):
        capture.form(tmp_path / "told.csv")
    seen = looks.look(tmp_path / "told.csv")
    assert seen.kind == "table" and len(seen.columns) == 5


@pytest.mark.parametrize("times", [1, 40])
def test_a_compressed_table_that_is_cut_off_is_called_that_by_both_verbs(winds, tmp_path, times):
    table = pl.concat([winds.with_columns(pl.col("ts_s") + i) for i in range(times)])
    packed = gzip.compress(table.select(capture.COLUMNS).write_csv().encode())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) * 3 // 4])
    with pytest.raises(TradewindError, match="cut off") as error:
        capture.read(tmp_path / "cut.csv.gz", params.inference().decode)
    assert "existing" not in error.value.remedy
    with pytest.raises(TradewindError, match="cut off"):
        looks.look(tmp_path / "cut.csv.gz")
    (tmp_path / "cut.csv.gz").write_bytes(packed[:30] + bytes(400))
    with pytest.raises(InputError, match="the compressed file is damaged"):
        capture.form(tmp_path / "cut.csv.gz")
