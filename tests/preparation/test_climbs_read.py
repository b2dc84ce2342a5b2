"""Flights to sequences: planted files whose every token is known, splits by aircraft, planted
faults that are counted, and the real files."""

import csv
import itertools
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages import seeds
from stages.errors import DataError
from stages.params.sequences import Climb, ClimbReading
from stages.sequences.data.climb import make as simulator
from stages.sequences.data.climb import read as climb
from stages.sequences.tokens import check

MIRROR = os.environ.get("TRADEWIND_MIRROR", "")
REAL = Path(MIRROR or "absent") / "mode-s"
real = pytest.mark.skipif(
    not (MIRROR and REAL.is_dir()), reason="TRADEWIND_MIRROR is not set: the real climbs are absent"
)


def config(**changed):
    return ClimbReading(
        **({"steps": 5, "step_s": 4, "bin_ft": 100, "least_change_ft": 0} | changed)
    )


def documents(folder, flights, name="flights.csv"):
    """`flights`: (id, type, level, altitudes, aircraft or None), levels and altitudes in flight
    levels."""
    rows = [
        {"FLIGHT_ID": i, "AIRCRAFT_TYPE": kind, "CFL": level, "TRACK_ALTITUDE": a}
        | ({"AIRCRAFT": craft} if craft else {})
        for i, kind, level, line, craft in flights
        for a in line
    ]
    pl.DataFrame(rows, infer_schema_length=None).write_csv(folder / name)


def reports(folder, flights, name="reports.csv", clock="ts"):
    """`flights`: (icao, times in s, altitudes in ft)."""
    rows = [
        {clock: t, "icao": icao, "alt": a}
        for icao, times, line in flights
        for t, a in zip(times, line, strict=True)
    ]
    pl.DataFrame(rows, infer_schema_length=None).write_csv(folder / name)


def three(line=(10.0, 11.25, 12.5, 13.75, 15.0)):
    return [(k, ("B738", "A320", "A320")[k], 200, line, None) for k in range(3)]


def test_a_sequence_is_the_type_the_cleared_levels_and_the_altitudes_to_the_nearest_bin(tmp_path):
    documents(tmp_path, three())
    made = climb.read(tmp_path, 0, config())
    check(made, "planted")
    assert made.tokens.tolist() == [
        [kind, *[200] * 5, 10, 11, 13, 14, 15] for kind in (451, 450, 450)
    ]
    assert (
        made.vocabulary == 453
        and made.prompt == 7
        and made.law["types"] == ["A320", "B738"]
        and made.law["clearance"] == {"flights.csv": "given"}
    )
    assert made.record.tolist() == [0, 5, 10]
    coarse = climb.read(tmp_path, 0, config(bin_ft=500))
    assert (
        coarse.tokens[0].tolist() == [91, *[40] * 5, 2, 2, 3, 3, 3] and coarse.vocabulary == 90 + 3
    )


def test_types_have_the_same_numbers_in_whatever_order_they_come(tmp_path):
    for name, kinds in (("one", ("B738", "A320", "AT76")), ("two", ("AT76", "B738", "A320"))):
        (tmp_path / name).mkdir()
        documents(
            tmp_path / name, [(k, kind, 200, three()[0][3], None) for k, kind in enumerate(kinds)]
        )
    one, two = (climb.read(tmp_path / name, 0, config()) for name in ("one", "two"))
    assert one.law["types"] == two.law["types"] == ["A320", "AT76", "B738"]
    assert one.tokens[:, 0].tolist() == [452, 450, 451] and two.tokens[:, 0].tolist() == [
        451,
        452,
        450,
    ]


def test_a_plateau_with_a_flickering_last_digit_is_one_token(tmp_path):
    documents(tmp_path, three((349.75, 350.25, 350.0, 349.75, 350.25)))
    assert (climb.read(tmp_path, 0, config()).tokens[:, 6:] == 350).all()


def test_every_sixth_row_is_taken_where_a_step_is_24_s(tmp_path):
    documents(tmp_path, three(tuple(100 + 0.5 * np.arange(30))))
    assert climb.read(tmp_path, 0, config(step_s=24)).tokens[0, 6:].tolist() == [
        100,
        103,
        106,
        109,
        112,
    ]


def test_a_flight_that_ends_early_is_filled_up_one_that_is_too_short_or_too_level_is_counted(
    tmp_path,
):
    short = [
        (k, "A320", 200, line, None)
        for k, line in enumerate([(10.0, 20.0, 30.0)] * 3 + [(10.0, 20.0)] * 2 + [(10.0,) * 5])
    ]
    documents(tmp_path, short)
    made = climb.read(tmp_path, 0, config(least_change_ft=500))
    assert made.tokens.tolist() == [[450, 200, 200, 200, 451, 451, 10, 20, 30, 451, 451]] * 3
    assert made.dropped == {"sequences too level": 1, "sequences too short": 2} and made.law[
        "filled"
    ] == pytest.approx(4 / 11, abs=1e-6)


def test_a_flight_gives_a_sequence_every_stride_steps(tmp_path):
    documents(tmp_path, three(tuple(100.0 + np.arange(9))))
    made = climb.read(tmp_path, 0, config(stride=2))
    assert made.tokens[:3, 6:].tolist() == [
        [100, 101, 102, 103, 104],
        [102, 103, 104, 105, 106],
        [104, 105, 106, 107, 108],
    ]
    assert made.tokens[3, 6:].tolist() == [106, 107, 108, 451 + 1, 451 + 1] and made.dropped == {
        "sequences too short": 3
    }


def test_bad_rows_are_counted_by_reason_and_break_the_flight_in_two(tmp_path):
    line = [100.0, 101, 102, 103, 104, None, 105, 106, 107, 108, 109, 110]
    documents(
        tmp_path,
        [(k, "A320", 200, line if k == 0 else (10.0, 11, 12, 13, 500.0), None) for k in range(3)],
    )
    made = climb.read(tmp_path, 0, config())
    assert made.tokens[:2, 6:].tolist() == [
        [100, 101, 102, 103, 104],
        [105, 106, 107, 108, 109],
    ] and made.record[:2].tolist() == [0, 6]
    assert made.dropped == {"rows without altitude": 1, "rows out of range": 2}
    assert made.group[0] == made.group[1] and made.split[0] == made.split[1]


def test_all_flights_of_an_aircraft_stand_in_one_split_and_splits_have_their_shares(tmp_path):
    simulated = Climb(
        seed=1, train=800, val=100, test=100, steps=8, step_s=24, bin_ft=500, flights_each=4
    )
    simulator.make(simulated, tmp_path)
    made = climb.read(tmp_path, 5, simulated)
    check(made, "simulated")
    assert (
        np.bincount(made.split).tolist() == [800, 100, 100]
        and not made.dropped
        and not (made.tokens == made.law["nothing"]).any()
    )
    assert np.unique(made.group).size == 250 and made.law["aircraft"] == {
        "train": 200,
        "val": 25,
        "test": 25,
    }
    other = climb.read(tmp_path, 6, simulated)
    assert (climb.read(tmp_path, 5, simulated).split == made.split).all() and (
        other.split != made.split
    ).any()


def test_one_aircraft_in_two_files_stays_together_whatever_the_case_of_its_address(tmp_path):
    up = (np.arange(0, 20, 4.0), 1000.0 + 100 * np.arange(5))
    reports(tmp_path, [(f"40000{k}", *up) for k in "abcd"], "a320_one.csv")
    reports(tmp_path, [(f"40000{k}", *up) for k in "ABEF"], "two.csv", clock="t")
    made = climb.read(tmp_path, 0, config())
    check(made, "planted")
    assert made.law["types"] == ["A320", "unknown"] and made.group.tolist() == [
        0,
        1,
        2,
        3,
        0,
        1,
        4,
        5,
    ]
    assert made.source.tolist() == [0] * 4 + [1] * 4


def test_reports_are_put_on_equal_steps_and_the_level_reached_last_is_the_cleared_level(tmp_path):
    times = np.array([0.0, 1, 3, 5, 9, 12, 16])
    reports(tmp_path, [(f"40000{k}", times, 1000 + 50 * times) for k in range(3)])
    made = climb.read(tmp_path, 0, config())
    assert made.tokens[0].tolist() == [450, *[18] * 5, 10, 12, 14, 16, 18] and made.law[
        "clearance"
    ] == {"reports.csv": "the level reached last"}


def test_a_silence_ends_a_flight_an_impossible_row_is_dropped_and_a_repeated_time_counted(tmp_path):
    times = np.concatenate([np.arange(0, 20, 4.0), np.arange(200, 220, 4.0)])
    line = np.concatenate([1000 + 25.0 * np.arange(5), 9000 - 100.0 * np.arange(5)])
    wild = line.copy()
    wild[2] = 30_000
    reports(
        tmp_path,
        [
            ("400000", times, wild),
            ("400001", np.append(times, 8.0), np.append(line, 77.0)),
            ("400002", times, line),
        ],
    )
    made = climb.read(tmp_path, 0, config())
    assert (
        made.dropped == {"rows of a time told before": 1, "rows that no aircraft flew": 1}
        and len(made.tokens) == 6
    )
    assert (
        made.tokens[0].tolist()
        == made.tokens[2].tolist()
        == made.tokens[4].tolist()
        == [450, *[11] * 5, 10, 10, 11, 11, 11]
    )
    assert made.tokens[1, 1] == 86 and made.record.tolist() == [0, 5, 10, 15, 21, 26]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("FLIGHT_ID,AIRCRAFT_TYPE,CFL,TRACK_ALTITUDE\n1,A320,200,high\n", "row 1, TRACK_ALTITUDE"),
        ("a,b\n1,2\n", "other columns"),
        ("t,icao,alt\n", "no rows"),
        ("t,icao,alt\n0,400000,99999\n", "usable altitude"),
        ("", "cannot be read"),
        (
            "FLIGHT_ID,AIRCRAFT_TYPE,CFL,TRACK_ALTITUDE\n1,A320,200,100\n1,B738,200,101\n",
            "two types",
        ),
        (
            "t,icao,alt\n" + "".join(f"{4 * k},400000,{1000 + k}\n" for k in range(9)),
            "three aircraft",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_told(tmp_path, text, told):
    (tmp_path / "flights.csv").write_text(text)
    with pytest.raises(DataError, match=told):
        climb.read(tmp_path, 0, config())


def test_a_folder_without_flights_is_told(tmp_path):
    with pytest.raises(DataError, match="no file of flights"):
        climb.read(tmp_path, 0, config())


def test_every_split_gets_an_aircraft_even_where_one_flies_most():
    split = climb.parts(["a"] * 50 + ["b", "c"], (8, 1, 1), seeds.stream(0, "s"))
    assert {split[0], split[-1], split[-2]} == {0, 1, 2}


def counted(path):
    """Sequences of 60 steps of 20 s of a file of reports, every 20 steps, by a plain loop: half
    full and 3000 ft of change at least."""
    heard, count = defaultdict(dict), 0
    with path.open() as stream:
        for row in csv.DictReader(stream):
            heard[row["icao"]].setdefault(float(row["t"]), float(row["alt"]))
    for altitude in heard.values():
        times = sorted(altitude)
        pieces = [[times[0]]]
        for before, after in itertools.pairwise(times):
            if after - before > 120:
                pieces.append([])
            pieces[-1].append(after)
        for piece in pieces:
            line = np.interp(
                np.arange(piece[0], piece[-1] + 1e-6, 20), piece, [altitude[t] for t in piece]
            )
            parts = [line[begin : begin + 60] for begin in range(0, len(line), 20)]
            count += sum(len(part) >= 30 and np.ptp(part) >= 3000 for part in parts)
    return count


@real
def test_the_real_climbs_of_two_sources_become_sequences_split_by_aircraft(tmp_path):
    for name in (
        "acsmc/a320_406471.csv",
        "acsmc/b737_example_1.csv",
        "meteo-particle-model/aggregated.csv",
    ):
        (tmp_path / Path(name).name).symlink_to(REAL / name)
    made = climb.read(
        tmp_path, 0, ClimbReading(steps=60, step_s=20, bin_ft=200, stride=20, least_change_ft=3000)
    )
    check(made, "real")
    assert (
        made.law["types"] == ["A320", "B737", "unknown"]
        and made.dropped["rows of a time told before"] == 80
    )
    assert np.bincount(made.source).tolist() == [counted(REAL / "acsmc/a320_406471.csv"), 128, 3]
    crafts = [set(made.group[made.split == k].tolist()) for k in range(3)]
    assert (
        not (crafts[0] & crafts[1] or crafts[0] & crafts[2] or crafts[1] & crafts[2])
        and min(map(len, crafts)) >= 5
    )
    altitude = made.tokens[:, 61:]
    jump = np.abs(np.diff(altitude, axis=1))[(altitude[:, 1:] < 225) & (altitude[:, :-1] < 225)]
    assert jump.max() * 200 * 3 <= 9000 and made.law["filled"] < 0.15  # ft/min
