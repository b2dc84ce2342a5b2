"""The decode stage end to end: simulated frames against their truth, published tables, damaged
input, and what it promises."""

import numpy as np
import polars as pl
import pytest
from decoded_here import DECODE, SETTINGS, csv, transformed
from flown import lines

from stages import files
from stages.winds.decoding import states, winds
from stages.winds.sky.simulated import simulate


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
