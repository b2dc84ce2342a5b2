"""The forms in which a nowcast is asked and taken away: altitudes and grids as people write them;
JSON, CSV, parquet, NetCDF and a picture that say the same."""

import gzip
import io
import json
import os
import shutil
import subprocess
import tempfile
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import xarray
from nowcasts import ASKED, ask
from PIL import Image

from stages import cli
from stages.errors import InputError
from stages.units import KNOT_M_S
from stages.winds.nowcast import answers, nowcast, picture
from stages.winds.nowcast.points import MOST, level, parse, parse_altitude

GRID = "FL250,2026-01-15T07:08:00Z,0.5"


@pytest.mark.parametrize(
    ("text", "feet"),
    [
        ("34000", 34000),
        ("FL340", 34000),
        ("fl85", 8500),
        ("34000 ft", 34000),
        ("10363.2m", 34000),
        ("-50", -50),
    ],
)
def test_altitudes(text, feet):
    assert parse_altitude(text) == pytest.approx(feet)
    assert parse(f"-33.9,151.2,{text},0").alt_ft == pytest.approx(feet)


@pytest.mark.parametrize("text", ["FL", "FL34000", "340FL", "34 km", "", "m"])
def test_what_is_no_altitude(text):
    with pytest.raises(InputError, match="not a number"):
        parse(f"46,7,{text},0")


def test_a_grid_covers_the_area_by_multiples_of_its_step():
    area = {"lat_deg": (44.9, 46.1), "lon_deg": (-1.2, 0.3), "alt_ft": (0, 40000)}
    points = level("FL340,1000,0.5", area)
    assert [(p.lat_deg, p.lon_deg) for p in points] == [
        (lat, lon) for lat in (45.0, 45.5, 46.0) for lon in (-1.0, -0.5, 0.0)
    ]
    assert {(p.alt_ft, p.ts_s) for p in points} == {(34000.0, 1000.0)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("FL340,1000", "not a grid"),
        ("FL340,1000,0", "not a grid"),
        ("FL340,1000,-1", "not a grid"),
        ("high,1000,1", "not a grid"),
        ("FL340,soon,1", "not a time"),
        ("FL340,1000,90", "no point or too many"),
        ("FL340,1000,0.0001", f"1 to {MOST:,}"),
        ("FL340,1000,1e-9", "1,320,000,00[0-9],[0-9,]+ points"),
        ("FL340,1000,1e-100", f"1 to {MOST:,}"),
        ("FL340,1000,1e-320", "more points than can be counted"),
        ("FL340,1000,inf", "not a grid"),
        ("FL340,1000,nan", "not a grid"),
    ],
)
def test_what_is_no_grid(text, says):
    """None is made before it is refused, however many points it would have."""
    with warnings.catch_warnings(), pytest.raises(InputError, match=says):
        warnings.simplefilter("error")
        level(text, {"lat_deg": (44.9, 46.1), "lon_deg": (1.2, 2.3)})


def test_a_grid_is_answered_as_its_points(airspace, settings):
    winds = ask(airspace, settings, grid=GRID)
    assert len(winds) > 20
    one = winds[7]
    text = f"{one.point.lat_deg},{one.point.lon_deg},FL250,2026-01-15T07:08:00Z"
    (alone,) = ask(airspace, settings, text)
    assert (alone.u_m_s, alone.v_m_s) == pytest.approx((one.u_m_s, one.v_m_s), abs=1e-4)


def test_every_form_says_the_same(airspace, settings, tmp_path):
    winds = ask(airspace, settings, ASKED, "46.2,7.4,FL300,2026-01-15T07:09:00Z")
    for suffix in answers.SUFFIXES:
        answers.write(winds, tmp_path / f"a{suffix}")
    rows = {
        ".csv": pl.read_csv(tmp_path / "a.csv"),
        ".parquet": pl.read_parquet(tmp_path / "a.parquet"),
        ".json": pl.DataFrame(json.loads((tmp_path / "a.json").read_text())["winds"]),
    }
    expected = answers.table(winds).select(pl.col(pl.Float64))
    for found in rows.values():
        assert found.select(expected.columns).to_numpy() == pytest.approx(expected.to_numpy())
        assert found["time"].to_list() == ["2026-01-15T07:08:00Z", "2026-01-15T07:09:00Z"]
    wind, row = winds[0], rows[".csv"].row(0, named=True)
    assert row["speed_kn"] == pytest.approx(wind.speed_m_s / KNOT_M_S)
    assert row["u_spread_m_s"] == pytest.approx(wind.spread_m_s[0])
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["model"] == wind.model and told["spread"] == wind.spread_from


def test_netcdf_follows_the_conventions(airspace, settings, tmp_path):
    winds = ask(airspace, settings, ASKED, "46.2,7.4,FL300,2026-01-15T07:09:00Z")
    answers.write(winds, tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc", engine="scipy") as found:
        assert found.attrs["Conventions"] == "CF-1.11" and found.attrs["featureType"] == "point"
        assert found["u"].attrs["standard_name"] == "eastward_wind"
        assert found["u"].attrs["units"] == "m s-1" and set(found["u"].dims) == {"obs"}
        assert found["u"].values == pytest.approx([one.u_m_s for one in winds])
        assert found["alt"].values.tolist() == [25000, 30000]
        assert found["time"].values.astype("datetime64[s]").astype(str).tolist() == [
            "2026-01-15T07:08:00",
            "2026-01-15T07:09:00",
        ]


def test_a_level_is_a_grid_in_netcdf(airspace, runs, tmp_path, monkeypatch, capsys):
    words = ["tradewind", "nowcast", "--context", str(airspace / "winds.parquet")]
    words += ["--model", str(runs / "kernel"), "--grid", "FL300,2026-01-15T07:09:00Z,0.5"]
    words += ["--out", str(tmp_path / "a.nc"), "--csv"]
    monkeypatch.setattr("sys.argv", words)
    assert cli.main() == 0
    rows = pl.read_csv(capsys.readouterr().out.encode())
    with xarray.open_dataset(tmp_path / "a.nc", engine="scipy") as found:
        assert found["u"].dims == ("altitude", "lat", "lon") and "obs" not in found.dims
        assert found.attrs["Conventions"] == "CF-1.11" and "featureType" not in found.attrs
        assert [found[axis].attrs["axis"] for axis in found["u"].dims] == ["Z", "Y", "X"]
        assert found["altitude"].attrs["positive"] == "up"
        assert found["lat"].attrs["standard_name"] == "latitude"
        assert str(found["time"].values.astype("datetime64[s]")) == "2026-01-15T07:09:00"
        assert found["u"].size == len(rows) > found.sizes["lat"] > 1
        for row in rows.iter_rows(named=True):
            place = dict(altitude=row["alt_ft"], lat=row["lat_deg"], lon=row["lon_deg"])
            assert found["v"].sel(place).item() == pytest.approx(row["v_m_s"])


def test_a_spread_that_is_not_known_is_null_in_every_form(airspace, settings, runs, tmp_path):
    cell = tmp_path / "reports/x/mini/runs/toy/knn"  # where nothing was evaluated
    shutil.copytree(runs / "knn", cell)
    winds = ask(airspace, settings, ASKED, model=cell)
    assert winds[0].spread_m_s is None
    for suffix in answers.SUFFIXES:
        answers.write(winds, tmp_path / f"a{suffix}")
    assert json.loads((tmp_path / "a.json").read_text())["winds"][0]["u_spread_m_s"] is None
    with xarray.open_dataset(tmp_path / "a.nc", engine="scipy") as found:
        assert np.isnan(found["u_spread"].values).all()


def test_a_form_that_there_is_not_and_a_folder_that_there_is_not(
    airspace, runs, tmp_path, monkeypatch, capsys
):
    words = ["tradewind", "nowcast", "--context", str(airspace / "winds.parquet")]
    words += ["--model", str(runs / "kernel"), "--at", ASKED]
    for option, name, says in (
        ("--out", "a.txt", "not known by that name"),
        ("--out", "none/a.csv", "no such folder"),
        ("--plot", "none/a.png", "no such folder"),
    ):
        monkeypatch.setattr("sys.argv", [*words, option, str(tmp_path / name)])
        assert cli.main() == 2
        assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_the_form_that_is_asked_for(airspace, runs, monkeypatch, capsys):
    words = ["tradewind", "nowcast", "--context", str(airspace / "winds.parquet")]
    words += ["--model", str(runs / "kernel"), "--at", ASKED]
    monkeypatch.setattr("sys.argv", [*words, "--json"])
    assert cli.main() == 0
    assert json.loads(capsys.readouterr().out)["winds"][0]["lat_deg"] == 46.5
    monkeypatch.setattr("sys.argv", [*words, "--csv"])
    assert cli.main() == 0
    assert pl.read_csv(io.StringIO(capsys.readouterr().out))["lat_deg"].to_list() == [46.5]


def test_what_was_dropped_is_told_beside_an_answer_for_programs(
    airspace, runs, monkeypatch, capsys, tmp_path
):
    rows = pl.read_parquet(airspace / "winds.parquet")
    pl.concat([rows, rows[:2]]).write_parquet(tmp_path / "more.parquet")
    words = ["tradewind", "nowcast", "--model", str(runs / "kernel"), "--at", ASKED]
    words += ["--context", str(tmp_path / "more.parquet")]
    for form in (["--csv"], ["--json"], ["--out", str(tmp_path / "answer.csv")]):
        monkeypatch.setattr("sys.argv", [*words, *form])
        assert cli.main() == 0
        told = capsys.readouterr()
        assert told.err == "dropped: 2 duplicate\n" and "dropped: 2" not in told.out


def test_a_damaged_capture_is_the_askers_to_mend(airspace, runs, monkeypatch, capsys, tmp_path):
    (tmp_path / "cut.parquet").write_bytes((airspace / "winds.parquet").read_bytes()[:3000])
    words = ["tradewind", "nowcast", "--model", str(runs / "kernel"), "--at", ASKED]
    monkeypatch.setattr("sys.argv", [*words, "--context", str(tmp_path / "cut.parquet")])
    assert cli.main() == 2
    assert "remedy: copy or write the whole file again" in capsys.readouterr().err


def test_a_capture_may_come_on_standard_input(airspace, runs, monkeypatch, capsys):
    words = ["tradewind", "nowcast", "--model", str(runs / "kernel"), "--at", ASKED, "--csv"]
    monkeypatch.setattr("sys.argv", [*words, "--context", str(airspace / "winds.parquet")])
    assert cli.main() == 0
    by_name = capsys.readouterr().out
    stream = io.BytesIO((airspace / "winds.parquet").read_bytes())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
    monkeypatch.setattr("sys.argv", [*words, "--context", "-"])
    assert cli.main() == 0 and capsys.readouterr().out == by_name


def test_a_capture_may_come_through_a_pipe(airspace, runs, monkeypatch, capsys, tmp_path):
    words = ["tradewind", "nowcast", "--model", str(runs / "kernel"), "--at", ASKED, "--csv"]
    table, pipe = tmp_path / "winds.csv", tmp_path / "pipe"
    pl.read_parquet(airspace / "winds.parquet").write_csv(table)
    monkeypatch.setattr("sys.argv", [*words, "--context", str(table)])
    assert cli.main() == 0
    by_name = capsys.readouterr().out
    os.mkfifo(pipe)
    monkeypatch.setattr("sys.argv", [*words, "--context", str(pipe)])
    with subprocess.Popen(["sh", "-c", 'cat "$0" > "$1"', str(table), str(pipe)]) as writer:
        try:
            assert cli.main() == 0 and capsys.readouterr().out == by_name
        finally:
            writer.kill()
    monkeypatch.setattr("sys.argv", ["tradewind", "init", str(pipe)])
    assert cli.main() == 2 and "found: a pipe or a device" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1495353600250,8D40621D58C382D690C8AC2863A7\n",
        b'{"when": 1, "frame": "8D40621D58C382D690C8AC2863A7"}\n',
        gzip.compress(b"1495353600.25,8D40621D58C382D690C8AC2863A7\n" * 9999)[:-9],
        b"ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s\n1,2,3,4,5,6,7\n",
        b"ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s\n" + b"1,2,3,4,5,6\n" * 99,
    ],
    ids=["empty", "milliseconds", "no time", "cut off", "ragged", "no Unix seconds"],
)
def test_what_is_amiss_on_standard_input_is_said_of_it(runs, monkeypatch, capsys, content):
    words = ["tradewind", "nowcast", "--model", str(runs / "kernel"), "--at", ASKED]
    monkeypatch.setattr("sys.argv", [*words, "--context", "-"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert cli.main() in (1, 2)
    told = capsys.readouterr().err
    assert "where: standard input" in told and tempfile.gettempdir() not in told


@pytest.mark.parametrize("asked", [{"at": [ASKED]}, {"grid": GRID}])
def test_a_picture_is_drawn_of_points_and_of_a_level(airspace, settings, runs, tmp_path, asked):
    winds = nowcast.nowcast(
        airspace / "winds.parquet", settings=settings, model=runs / "kernel", **asked
    )
    picture.draw(winds, tmp_path / "a.png")
    drawn = Image.open(tmp_path / "a.png").convert("RGB")
    assert min(drawn.size) > 400 and len(drawn.getcolors(1 << 24)) > 30


@pytest.mark.parametrize("name", ["alt_ft", "ts_s", "lat_deg"])
def test_points_that_are_no_one_level_are_not_joined_by_a_shade(airspace, settings, runs, name):
    winds = nowcast.nowcast(
        airspace / "winds.parquet", settings=settings, model=runs / "kernel", grid=GRID
    )
    assert picture.is_level(answers.table(winds))
    other = replace(winds[0].point, **{name: getattr(winds[0].point, name) + 1})
    if name == "lat_deg":  # a place twice, another not at all
        other = replace(winds[1].point)
    winds[0] = replace(winds[0], point=other)
    assert not picture.is_level(answers.table(winds))


def test_a_fraction_of_a_second_is_written_where_one_was_asked_for(airspace, settings, tmp_path):
    winds = ask(airspace, settings, ASKED.replace("00Z", "00.25Z"), ASKED)
    for suffix in answers.SUFFIXES:
        answers.write(winds, tmp_path / f"a{suffix}")
    told = ["2026-01-15T07:08:00.25Z", "2026-01-15T07:08:00Z"]
    assert pl.read_csv(tmp_path / "a.csv")["time"].to_list() == told
    assert pl.read_parquet(tmp_path / "a.parquet")["time"].to_list() == told
    assert [row["time"] for row in json.loads((tmp_path / "a.json").read_text())["winds"]] == told
    with xarray.open_dataset(tmp_path / "a.nc", engine="scipy", decode_times=False) as found:
        assert found["time"].values.tolist() == [wind.point.ts_s for wind in winds]
        assert "last slice" in found["nearest"].attrs["long_name"]
