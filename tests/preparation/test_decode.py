"""The decode stage end to end: simulated frames against their truth, published tables, damaged
input, and what it promises."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from flown import START_S, lines

from stages import files, params, records
from stages.errors import DataError
from stages.winds.decoding import states, winds
from stages.winds.decoding import transform as decode
from stages.winds.sky.simulated import simulate

SETTINGS = params.load("params.yaml")
DECODE = SETTINGS.decode
MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data")) / "mode-s"
KNOT_M_S = 1852 / 3600


def needed(path: str) -> Path:
    if not (MIRROR / path).exists():
        pytest.skip(f"shared/data/mode-s/{path} is not here")
    return MIRROR / path


def transformed(raw: Path, out: Path, entry: str, **changes) -> dict:
    out.mkdir(parents=True, exist_ok=True)
    return decode.transform(
        raw, sorted(p.name for p in raw.iterdir()), entry, DECODE.model_copy(update=changes), out
    )


def csv(path: Path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{t:.3f},{h}\n" for t, h in rows))


def linked(source: Path, folder: Path) -> Path:
    folder.mkdir()
    (folder / source.name).symlink_to(source.resolve())
    return folder


@pytest.fixture(scope="module")
def sky(tmp_path_factory):
    """Eighteen minutes of the simulated sky in two files, decoded."""
    folder = tmp_path_factory.mktemp("sky")
    (folder / "raw").mkdir()
    simulate(
        SETTINGS.datasets["simulated"].simulate.model_copy(update={"hours": 0.3, "aircraft": 22}),
        folder / "raw",
    )
    whole = (folder / "raw/frames_00.csv").read_text().splitlines(keepends=True)
    (folder / "raw/frames_00.csv").write_text("".join(whole[: len(whole) // 2]))
    (folder / "raw/frames_01.csv").write_text("".join(whole[len(whole) // 2 :]))
    return folder, transformed(folder / "raw", folder / "out", "frames"), whole


def test_simulated_winds_are_the_true_winds(sky):
    """Errors stay at what the sensors' noise explains: 0.3 degrees and 1 kn at 230 m/s make 1.3
    m/s (vector), 0.93 a component."""
    folder, counts, _ = sky
    error = counts["metrics"]["wind_error"]
    assert error["n"] > 5000
    assert 0.8 < error["rmse_component_m_s"] < 1.15
    assert abs(error["bias_east_m_s"]) < 0.1 and abs(error["bias_north_m_s"]) < 0.1
    assert error["p95_vector_m_s"] < 3.0
    table = pl.read_parquet(folder / "out/winds.parquet")
    square = (table["u_m_s"] - table["u_true_m_s"]) ** 2 + (
        table["v_m_s"] - table["v_true_m_s"]
    ) ** 2
    assert np.sqrt(square.mean() / 2) == pytest.approx(error["rmse_component_m_s"], rel=1e-9)


def test_a_turn_that_the_roll_filter_cannot_see_gives_no_wind(sky):
    """A state of frames without a fresh roll is dropped and counted, never kept (an hour's worst
    wind falls from 14.1 to 6.6 m/s)."""
    folder, counts, _ = sky
    states_table, level = pl.read_parquet(folder / "out/states.parquet"), counts["levels"]["winds"]
    assert level["dropped"]["roll_unknown"] == states_table["roll_deg"].null_count() > 0
    assert level["read"] == level["kept"] + sum(level["dropped"].values()) == len(states_table)
    kept = pl.read_parquet(folder / "out/winds.parquet").join(
        states_table, on=["file", "record"], how="left"
    )
    assert (
        kept["roll_deg"].null_count() == 0 and kept["roll_deg"].abs().max() <= DECODE.roll_max_deg
    )


def test_published_states_need_no_roll(tmp_path):
    """A table that enters as states has no roll to ask for: all its rows give winds, and none is
    counted as unknown."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.csv").write_text(
        "ts,icao,lat,lon,alt,gs_adsb,trk_adsb,hdg,ias,mach,trk,gs,tas\n"
        "1484136000.0,4063DE,52.41248,2.91,37000,469.0,54.3,42.0,249.0,0.772,,,\n"
    )
    counts = transformed(tmp_path / "raw", tmp_path / "out", "states")
    assert counts["levels"]["winds"] == {"read": 1, "kept": 1, "dropped": {}}
    assert pl.read_parquet(tmp_path / "out/states.parquet")["roll_deg"].null_count() == 1


def test_truth_is_joined_by_aircraft_and_time(sky):
    folder, _, _ = sky
    table = pl.read_parquet(folder / "out/winds.parquet")
    truth = pl.read_parquet(folder / "raw/truth.parquet")
    exact = table.join(
        truth, on=["icao", "ts_s"], how="inner"
    )  # truth stands at each heading report
    assert len(exact) == len(table)
    assert (exact["u_true_m_s"] - exact["u_true_m_s_right"]).abs().max() < 1e-9


def test_declination_off_shows_in_the_error(sky):
    folder, counts, _ = sky
    off = transformed(folder / "raw", folder / "magnetic", "frames", declination=False)["metrics"][
        "wind_error"
    ]
    assert off["rmse_component_m_s"] > 3 * counts["metrics"]["wind_error"]["rmse_component_m_s"]


def test_false_acceptance_is_measured(sky):
    numbers = sky[1]["metrics"]["false_acceptance"]
    assert numbers["truth"]["accepted_60"] > 5000
    assert numbers["truth"]["share_50"] < 1e-3 and numbers["truth"]["share_60"] < 1e-3
    assert (
        numbers["random_payload"]["frames"] > 5000 and numbers["random_payload"]["share_60"] < 1e-3
    )
    swapped = numbers["swapped_payload"]
    # each reply of the simulated sky holds one of two registers: the denominators are about half of
    # all
    for register in ("50", "60"):
        assert 0.3 < swapped[f"payloads_{register}"] / swapped["frames"] < 0.6
        assert (
            swapped[f"share_of_payloads_{register}"]
            == swapped[f"accepted_{register}"] / swapped[f"payloads_{register}"]
        )
    assert (
        0 < swapped["share_of_payloads_50"] < 0.1
    )  # only the state can tell: two aircraft may fly alike


def test_a_false_register_is_seen_by_the_truth(sky, tmp_path):
    """Swap the truths of two aircraft: nearly all their registers are now false, and the metric
    says so."""
    folder, _, _ = sky
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/frames_00.csv").symlink_to(folder / "raw/frames_00.csv")
    truth = pl.read_parquet(folder / "raw/truth.parquet")
    names = truth["icao"].unique().sort().to_list()
    truth.with_columns(pl.col("icao").replace(names, names[1:] + names[:1])).write_parquet(
        tmp_path / "raw/truth.parquet"
    )
    numbers = transformed(tmp_path / "raw", tmp_path / "out", "frames")["metrics"][
        "false_acceptance"
    ]["truth"]
    assert numbers["share_60"] > 0.9 and numbers["share_50"] > 0.9


def test_everything_is_counted_and_placed(sky):
    folder, counts, whole = sky
    assert counts["read"] == len(whole)
    for level in counts["levels"].values():
        assert level["read"] == level["kept"] + sum(level["dropped"].values())
    assert list(counts["levels"]) == ["frames", "positions", "registers", "states", "winds"]
    table = pl.read_parquet(folder / "out/winds.parquet")
    found = pl.read_parquet(folder / "out/states.parquet")
    assert dict(table.schema) == winds.COLUMNS and dict(found.schema) == states.COLUMNS
    assert (
        len(found) == counts["levels"]["states"]["kept"]
        and len(table) == counts["levels"]["winds"]["kept"]
    )
    assert table.sort(winds.ORDER).equals(table)
    for row in table.sample(20, seed=0).iter_rows(
        named=True
    ):  # the record is the line of the heading report itself
        stamp, frame = (
            (folder / "raw" / row["file"]).read_text().splitlines()[row["record"]].split(",")
        )
        assert float(stamp) == row["ts_s"] and int(frame[:2], 16) >> 3 in (20, 21)


def test_the_cut_between_files_loses_nothing_but_what_lies_ahead(sky, tmp_path):
    folder, counts, whole = sky
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/frames.csv").write_text("".join(whole))
    uncut = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    one, two = (
        pl.read_parquet(p / "out/states.parquet").drop("file", "record") for p in (tmp_path, folder)
    )
    assert (
        abs(len(one) - len(two)) <= 3
        and len(one.join(two, on=one.columns, how="anti", nulls_equal=True)) <= 3
    )
    assert uncut["read"] == counts["read"]


def test_same_input_same_bytes(sky, tmp_path):
    folder, _, _ = sky
    for name in ("a", "b"):
        transformed(folder / "raw", tmp_path / name, "frames")
    for name in ("states.parquet", "winds.parquet"):
        assert (
            files.sha256(tmp_path / "a" / name)
            == files.sha256(tmp_path / "b" / name)
            == files.sha256(folder / "out" / name)
        )


@pytest.mark.fault("F12")
def test_bad_crc_never_reaches_the_winds(sky, tmp_path):
    """Flip a bit of every squitter: no address is confirmed by a CRC, no position is known, no
    wind appears."""
    _, _, whole = sky
    broken = [
        f"{line[:-2]}{int(line[-2], 16) ^ 1:X}\n"
        if int(line.split(",")[1][:2], 16) >> 3 == 17
        else line
        for line in whole[:20_000]
    ]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/frames.csv").write_text("".join(broken))
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    squitters = sum(int(line.split(",")[1][:2], 16) >> 3 == 17 for line in broken)
    assert counts["dropped"]["bad_crc"] >= squitters * 0.99
    assert counts["levels"]["winds"]["read"] == 0


@pytest.mark.fault("F12")
def test_mutated_lines_do_no_harm(sky, tmp_path):
    """Random bytes over real lines: nothing crashes, every line is counted, winds stay physical."""
    _, _, whole = sky
    draw = np.random.default_rng(0)
    data = np.frombuffer("".join(whole[:30_000]).encode(), np.uint8).copy()
    where = draw.choice(len(data), len(data) // 500, replace=False)
    data[where] = draw.integers(0, 256, len(where))
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/frames.csv").write_bytes(b"\xef\xbb\xbf" + data.tobytes())
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    assert counts["read"] == counts["kept"] + sum(counts["dropped"].values())
    table = pl.read_parquet(tmp_path / "out/winds.parquet")
    assert (
        len(table) > 2000 and np.hypot(table["u_m_s"], table["v_m_s"]).max() < DECODE.wind_max_m_s
    )


def test_captures_years_apart_do_not_vouch_for_each_other(tmp_path):
    """An address heard with a CRC in one capture confirms nothing in another; replies alone then
    confirm each other."""
    csv(tmp_path / "raw/a.csv", lines(10))
    csv(
        tmp_path / "raw/b.csv",
        [(t + 1e7, h) for t, h in lines(10) if int(h[:2], 16) >> 3 >= 20][:1],
    )
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    assert counts["dropped"] == {"address_unconfirmed": 1}


def test_files_that_overlap_are_one_span_and_duplicates_go(tmp_path):
    rows = lines(20)
    csv(tmp_path / "raw/a.csv", rows[0::2] + rows[-1:])
    csv(tmp_path / "raw/b.csv", rows[1::2] + rows[:3])
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    csv(tmp_path / "one/a.csv", rows)
    transformed(tmp_path / "one", tmp_path / "one_out", "frames")
    assert counts["dropped"] == {
        "duplicate": 4
    }  # of b's last three lines two are a's and one its own; a's last line is b's
    both = [
        pl.read_parquet(tmp_path / name / "states.parquet").drop("file", "record")
        for name in ("out", "one_out")
    ]
    assert both[0].equals(both[1]) and len(both[0]) == 19


def test_real_replies(tmp_path):
    """The pyModeS sample: two Comm-B files of one capture, an ADS-B file of another year. No
    positions, so no winds."""
    (tmp_path / "raw").mkdir()
    for name in ("df20", "df21"):
        path = needed(f"pyModeS/sample_data_commb_{name}.csv").resolve()
        (tmp_path / "raw" / path.name).symlink_to(path)
    (tmp_path / "raw/sample_data_adsb.csv").symlink_to(
        needed("pyModeS/sample_data_adsb.csv").resolve()
    )
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    assert counts["read"] == 12_000 and counts["dropped"]["address_unconfirmed"] < 40
    registers = counts["metrics"]["registers"]
    assert registers["accepted_60"] > 3000 and registers["accepted_50"] > 2000
    assert (
        registers["checked_60"] > 2000
        and registers["contradicted_60"] <= 0.01 * registers["checked_60"]
    )
    assert counts["levels"]["winds"]["read"] == 0
    assert counts["metrics"]["false_acceptance"]["random_payload"]["share_60"] < 1e-3
    assert (
        counts["metrics"]["false_acceptance"]["state"]["contradicted_share_50"] is None
    )  # nothing to hold them against


def test_real_hour_of_winds_and_of_states(tmp_path):
    raw = linked(needed("meteo-particle-model/wind.csv"), tmp_path / "winds")
    counts = transformed(raw, tmp_path / "out", "winds")
    table = pl.read_parquet(tmp_path / "out/winds.parquet")
    assert counts["read"] == counts["kept"] == len(table) == 39_845
    assert (np.hypot(table["u_m_s"], table["v_m_s"]) > 250).sum() == 8 and table.drop(
        "record"
    ).is_duplicated().sum() == 6
    assert table["icao"].str.contains("^[0-9A-F]{6}$").all()
    published = pl.read_csv(raw / "wind.csv", schema_overrides={"icao": pl.String})
    assert published["vwx"].gather(table["record"]).equals(table["u_m_s"].rename("vwx"))
    raw = linked(needed("meteo-particle-model/aggregated.csv"), tmp_path / "states")
    counts = transformed(raw, tmp_path / "derived", "states", declination=False)
    assert counts["levels"]["winds"] == {
        "read": 49_513,
        "kept": 39_845,
        "dropped": {"no_velocity": 9668},
    }
    derived = pl.read_parquet(tmp_path / "derived/winds.parquet").sort("record")
    assert (derived["u_m_s"] - published["vwx"]).abs().max() < 0.035
    assert counts["metrics"]["temperature"]["n"] > 27_000


HEADER = "FLIGHT_ID,LAT,LONG,TRACK_ALTITUDE,UNIX_TIME,DAY,WIND_SPEED,WIND_ORIGIN_ANGLE_DEG,TYPE\n"


def test_the_thesis_set(tmp_path):
    """Weekly files: midnight resets mended by DAY, weeks by the order of names, FL to ft, kn to
    m/s, origin to towards."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/week_a.csv").write_text(
        HEADER + "7,46.5,7.5,350,86399.5,0,100,270,A320\n7,46.6,7.6,350.5,0.5,1,50,180,A320\n"
    )
    (tmp_path / "raw/week_b.csv").write_text(
        HEADER
        + (
            "8,46.5,7.5,100,60,6,0,0,B737\n9,46.5,7.5,100,60,0,10,90,B737\n"
            "9,46.5,7.5,100,60,0,10,90,\n9,,7.5,100,60,0,10,90,A320\n9,46.5,x,100,60,0,10,90,A320\n"
            "9,46.5,7.5,100,60,7,10,90,A320\n"
            "9,46.5,7.5,100,86400,0,10,90,A320\n9,46.5,7.5,100,nan,0,10,90,A320\n"
        )
    )
    counts = transformed(tmp_path / "raw", tmp_path / "out", "winds")
    assert counts["dropped"] == {
        "day_outside_week": 1,
        "missing_value": 2,
        "time_outside_day": 1,
        "unreadable": 2,
    }
    table = pl.read_parquet(tmp_path / "out/winds.parquet")
    week = 7 * 86_400
    assert table["ts_s"].to_list() == [86_399.5, 86_400.5, week + 60, week + 6 * 86_400 + 60]
    assert table["alt_ft"].to_list() == [35_000, 35_050, 10_000, 10_000]
    assert table["icao"].to_list() == ["7", "7", "9", "8"] and table["record"].to_list() == [
        0,
        1,
        1,
        0,
    ]
    assert np.allclose(
        table["u_m_s"], np.array([100, 0, -10, 0]) * KNOT_M_S, atol=1e-9
    )  # from the west blows east
    assert np.allclose(table["v_m_s"], np.array([0, 50, 0, 0]) * KNOT_M_S, atol=1e-9)
    assert table["u_true_m_s"].null_count() == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "none of the known formats"),
        ("", "cannot be read"),
        (HEADER + "7,46.5\n1,2,3,4,5,6,7,8,9,10,11\n", "cannot be read"),
    ],
)
def test_tables_that_are_none(tmp_path, content, message):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/week.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        transformed(tmp_path / "raw", tmp_path / "out", "winds")


def test_no_table_and_no_frame(tmp_path):
    (tmp_path / "raw").mkdir()
    with pytest.raises(DataError, match="no table"):
        transformed(tmp_path / "raw", tmp_path / "out", "frames")
    (tmp_path / "raw/empty.csv").write_text("")
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    assert counts["read"] == 0 and pl.read_parquet(tmp_path / "out/winds.parquet").is_empty()


def run(folder: Path, stage: str, *arguments: str, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", f"stages.winds.{stage}", *arguments],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())} | environment,
    )


@pytest.fixture
def project(tmp_path):
    """A project folder with a raw data set of its own."""
    (tmp_path / "params.yaml").write_text(Path("params.yaml").read_text())
    (tmp_path / "stages").symlink_to(Path("stages").resolve())
    raw = tmp_path / "data/mini/raw/simulated"
    csv(raw / "frames_00.csv", lines(20))
    files.write_json(
        raw / "manifest.json",
        {
            "dataset": "simulated",
            "entry": "frames",
            "kind": "simulate",
            "files": {"frames_00.csv": {}},
        },
    )
    return tmp_path


def test_the_command_writes_winds_counts_and_record(project):
    done = run(project, "decode", "mini", "simulated")
    assert done.returncode == 0, done.stderr
    out = project / "data/mini/decoded/simulated"
    assert sorted(p.name for p in out.iterdir()) == [
        "counts.json",
        "states.parquet",
        "winds.parquet",
    ]
    record = json.loads((project / records.location("decode", "mini", "simulated")).read_text())
    assert record["outputs"]["data/mini/decoded/simulated/winds.parquet"]["sha256"] == files.sha256(
        out / "winds.parquet"
    )
    assert (
        "data/mini/raw/simulated/frames_00.csv" in record["inputs"]
        and "stages/winds/decoding/states.py" in record["code"]["files"]
    )
    before = {p.name: files.sha256(p) for p in out.iterdir()}
    assert run(project, "decode", "mini", "simulated").returncode == 0
    assert before == {p.name: files.sha256(p) for p in out.iterdir()}


@pytest.mark.fault("F1")
def test_a_kill_leaves_the_old_state(project):
    assert run(project, "decode", "mini", "simulated", FAULT="before_rename:2").returncode == -9
    assert not (project / "data/mini/decoded/simulated").exists()
    assert run(project, "decode", "mini", "simulated").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "mimi", "simulated"),
        ("decode", "mini", "simulatd"),
        ("prepare", "mini", "commb"),
        ("decode", "mini", "poisson"),
    ],
)
def test_mistakes_end_with_2_before_any_work(project, arguments):
    done = run(project, *arguments)
    assert done.returncode == 2 and not (project / "data/mini/decoded").exists()


def test_another_level_than_the_manifest_says(project):
    manifest = project / "data/mini/raw/simulated/manifest.json"
    manifest.write_text(manifest.read_text().replace('"frames"', '"winds"'))
    done = run(project, "decode", "mini", "simulated")
    assert done.returncode == 1 and "another level" in done.stderr


def test_parts_out_of_order_are_refused(tmp_path):
    (tmp_path / "out").mkdir()
    part = winds.conform(pl.DataFrame({"ts_s": [START_S]}))
    with decode.Table(tmp_path / "out/winds.parquet", winds.COLUMNS) as table:
        table.write(part)
        with pytest.raises(DataError, match="overlap in time"):
            table.write(part.with_columns(ts_s=pl.col("ts_s") - 1))
