"""`tradewind rows`: which rows were trained on, and which stand on both sides, from provenance.

A small prepared project of winds, sets and climbs whose splits are known by construction; leaks are
planted and must be found, a clean set must be clean, and the counts are held against a count by
hand.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from stages import records
from stages.audit import rows, rows_read
from stages.errors import InputError, IntegrityError
from stages.files import write_json
from stages.splits import SPLITS
from stages.winds import slices

MIDNIGHT = 1768521600.0  # 2026-01-16T00:00:00Z
FILES = ["a.csv", "b.csv"]


def told(root: Path, dataset: str, inputs: list[str]) -> None:
    """The record of the preparation, of the files as they are."""
    home = root / "data/mini/prepared" / dataset

    def describe(paths):
        return {path.relative_to(root).as_posix(): records.describe(path) for path in paths}

    write_json(
        root / f"data/mini/records/{dataset}.prepare.json",
        {
            "inputs": describe([root / name for name in inputs]),
            "outputs": describe(sorted(home.iterdir())),
        },
    )


def prepared_winds(root: Path, planted: bool = False) -> list[tuple]:
    """One row a minute for six hours before and after midnight: train, then a gap, then val and
    test. Returns the rows as tuples.

    `planted`: one row of test has the file and record of a row of train.
    """
    meta = {
        "t0_s": MIDNIGHT - 7200,
        "slice_s": 60.0,
        "lead_s": 600.0,
        "files": FILES,
        "slices": {
            "train": list(range(60, 150)),
            "val": list(range(200, 210)),
            "test": list(range(230, 240)),
        },
    }
    split = {j: k for k, name in enumerate(SPLITS) for j in meta["slices"][name]}
    made = [
        (meta["t0_s"] + 60 * j + 1, split.get(j, -1), j // 100, int(j >= 150), j, f"AC{j // 100}")
        for j in range(240)
    ]
    if planted:
        made[235] = (*made[235][:3], made[100][3], made[100][4], made[100][5])
    columns = dict(
        zip(
            ("t_s", "split", "flight", "file", "record", "icao"),
            zip(*made, strict=True),
            strict=True,
        )
    )
    table = pl.DataFrame(columns)
    home, decoded = root / "data/mini/prepared/winds", root / "data/mini/decoded/winds"
    home.mkdir(parents=True), decoded.mkdir(parents=True)
    table.drop("icao").cast(
        {"split": pl.Int8, "flight": pl.UInt32, "file": pl.UInt16, "record": pl.UInt32}
    ).write_parquet(home / "rows.parquet")
    names = table.select(
        pl.Series("file", [FILES[k] for k in columns["file"]]),
        pl.col("record").cast(pl.UInt32),
        "icao",
    )
    names.unique(maintain_order=True).write_parquet(decoded / "winds.parquet")
    write_json(home / "prepared.json", meta)
    told(root, "winds", ["data/mini/decoded/winds/winds.parquet"])
    return made


def prepared_sets(
    root: Path, split: list[int], source: list[int], record: list[int], group: list[int]
) -> None:
    """Sets of points, as far as their provenance goes."""
    home = root / "data/mini/prepared/points"
    home.mkdir(parents=True)
    save_file(
        {
            "split": np.array(split, np.int8),
            "source": np.array(source, np.int32),
            "record": np.array(record, np.int64),
            "group": np.array(group, np.int64),
        },
        home / "sets.safetensors",
    )
    write_json(home / "sets.json", {"files": FILES})
    told(root, "points", [])


def prepared_climbs(
    root: Path, record: list[int], split: list[int], aircraft: str = "AIRCRAFT"
) -> None:
    """Climbs that begin at rows of one raw file with an aircraft in each row; the group is as
    prepared, not as the file says."""
    raw, home = root / "data/mini/raw/climbs", root / "data/mini/prepared/climbs"
    raw.mkdir(parents=True), home.mkdir(parents=True)
    (raw / "flights.csv").write_text(
        f"FLIGHT_ID,{aircraft}\n" + "".join(f"{k},4005b{k // 2}\n" for k in range(8))
    )
    save_file(
        {
            "split": np.array(split, np.int8),
            "source": np.zeros(len(split), np.int32),
            "record": np.array(record, np.int64),
            "group": np.arange(len(split)),
        },
        home / "sequences.safetensors",
    )
    write_json(home / "sequences.json", {"files": ["flights.csv"], "kind": "climb"})
    told(root, "climbs", ["data/mini/raw/climbs/flights.csv"])


def counts(places: list[rows.Place]) -> dict[tuple[str, str], int]:
    return {(one.split, one.role): one.count for one in places}


def test_targets_and_contexts_are_those_of_the_time_slices(tmp_path):
    made = prepared_winds(tmp_path)
    held = rows_read.opened("mini/winds", tmp_path)
    meta = json.loads((tmp_path / "data/mini/prepared/winds/prepared.json").read_text())
    for name in SPLITS:
        windows = [
            slices.context_window(meta["t0_s"], j, 60.0, 600.0, "slice")
            for j in meta["slices"][name]
        ]
        expected = [any(low <= row[0] < high for low, high in windows) for row in made]
        assert held.roles[name, "context"].tolist() == expected and sum(expected) == len(windows)
    assert counts(rows.ask(held)) == {
        ("train", "targets"): 90,
        ("train", "context"): 90,
        ("val", "targets"): 10,
        ("val", "context"): 10,
        ("test", "targets"): 10,
        ("test", "context"): 10,
        ("none", "rows"): 240 - 101 - 20 - 20,
    }


def test_a_day_in_training_is_told_with_its_rows_and_files(tmp_path):
    made = prepared_winds(tmp_path)
    held = rows_read.opened("mini/winds", tmp_path)
    before, after = (counts(rows.ask(held, day=day)) for day in ("2026-01-15", "2026-01-16"))
    assert (
        before["train", "targets"] == sum(row[0] < MIDNIGHT and row[1] == 0 for row in made) == 60
    )
    assert (
        after["train", "targets"] == 30
        and after["test", "targets"] == 10
        and before["test", "targets"] == 0
    )
    text = rows.render(held, rows.ask(held, day="2026-01-15"))
    assert (
        text.startswith("yes, in training")
        and "from a.csv (60)" in text
        and "2026-01-15T23:00:01Z to 2026-01-15T23:59:01Z" in text
    )
    assert rows.render(held, rows.ask(held, day="2030-01-01")).startswith("no rows of mini/winds")


def test_an_aircraft_a_flight_and_a_file_are_found_by_provenance(tmp_path):
    prepared_winds(tmp_path)
    held = rows_read.opened("mini/winds", tmp_path)
    one = counts(rows.ask(held, aircraft="ac1"))
    assert (
        one["train", "targets"] == 50 and one["val", "targets"] == 0 and one["test", "targets"] == 0
    )
    two = rows.render(held, rows.ask(held, aircraft="AC2"))
    assert two.startswith("no, not in training") and "test   targets" in two and "b.csv (10)" in two
    assert counts(rows.ask(held, flight=0))["train", "targets"] == 40
    assert counts(rows.ask(held, file="a.csv", aircraft="AC1"))["train", "targets"] == 50
    assert counts(rows.ask(held, file="b.csv"))["train", "targets"] == 0


def test_a_clean_set_of_winds_is_clean_and_aircraft_on_both_sides_are_told_apart(tmp_path):
    prepared_winds(tmp_path)
    found = rows.both(rows_read.opened("mini/winds", tmp_path))
    assert found.exit_code == 0 and set(found.leaks.values()) == {0}
    assert found.facts == {
        "flights": 1,
        "aircraft": 1,
        "files": 0,
    }  # AC1 is the context of val's first slices; no row is shared
    assert rows.render_both(found).startswith("clean")


def test_a_row_planted_in_train_and_test_is_found_and_named(tmp_path):
    prepared_winds(tmp_path, planted=True)
    found = rows.both(rows_read.opened("mini/winds", tmp_path))
    assert found.exit_code == 1 and list(found.leaks.values()) == [1]
    assert "LEAK" in rows.render_both(found) and "a.csv record 100" in rows.render_both(found)


def test_equal_values_of_other_records_are_no_leak_and_equal_records_are_one(tmp_path):
    prepared_sets(
        tmp_path, split=[0, 0, 1, 2], source=[0, 1, 0, 1], record=[1, 2, 2, 1], group=[0, 1, 2, 3]
    )
    held = rows_read.opened("mini/points", tmp_path)
    assert rows.both(held).exit_code == 0 and rows.both(held).facts == {"files": 2}
    held.record[2] = 1
    assert rows.both(held).leaks == {"identical sets (one record of one file)": 1, "groups": 0}


def test_a_group_in_two_splits_is_a_leak(tmp_path):
    prepared_sets(
        tmp_path, split=[0, 0, 1, 2], source=[0, 0, 0, 0], record=[0, 1, 2, 3], group=[5, 6, 7, 5]
    )
    found = rows.both(rows_read.opened("mini/points", tmp_path))
    assert found.exit_code == 1 and found.leaks["groups"] == 1 and found.examples["groups"] == ["5"]


def test_val_and_test_may_share_what_train_does_not_have(tmp_path):
    prepared_sets(tmp_path, split=[0, 1, 2], source=[0, 1, 1], record=[0, 4, 4], group=[0, 1, 1])
    assert rows.both(rows_read.opened("mini/points", tmp_path)).exit_code == 0


def test_the_aircraft_of_climbs_is_read_from_the_raw_row_and_must_stand_in_one_split(tmp_path):
    prepared_climbs(tmp_path, record=[0, 2, 4, 6], split=[0, 0, 1, 2])
    held = rows_read.opened("mini/climbs", tmp_path)
    assert (
        held.aircraft.tolist() == ["4005B0", "4005B1", "4005B2", "4005B3"]
        and rows.both(held).exit_code == 0
    )
    assert counts(rows.ask(held, aircraft="4005b1"))["train", "sequences"] == 1
    held.aircraft[3] = "4005B0"
    assert rows.both(held).leaks["aircraft"] == 1


def test_an_aircraft_split_over_train_and_test_is_found_though_the_groups_say_otherwise(tmp_path):
    prepared_climbs(
        tmp_path, record=[0, 2, 4, 1], split=[0, 0, 1, 2]
    )  # rows 0 and 1 are of one aircraft
    found = rows.both(rows_read.opened("mini/climbs", tmp_path))
    assert (
        found.exit_code == 1
        and found.leaks["groups"] == 0
        and found.examples["aircraft"] == ["4005B0"]
    )


def test_what_is_not_stored_is_said_by_name(tmp_path):
    prepared_sets(tmp_path, split=[0, 1, 2], source=[0, 0, 0], record=[0, 1, 2], group=[0, 1, 2])
    prepared_climbs(tmp_path, record=[0, 2, 4], split=[0, 1, 2], aircraft="TYPE")
    points, climbs = (rows_read.opened(f"mini/{name}", tmp_path) for name in ("points", "climbs"))
    for held, question in (
        (points, {"day": "2026-01-15"}),
        (points, {"aircraft": "A"}),
        (points, {"flight": 1}),
        (climbs, {"day": "2026-01-15"}),
    ):
        with pytest.raises(InputError, match="stores of each of its"):
            rows.ask(held, **question)
    with pytest.raises(InputError, match="names no aircraft"):
        rows.ask(climbs, aircraft="A")
    assert "day, flight, aircraft: sets.safetensors stores" in rows.render_both(rows.both(points))


def test_the_missing_decoded_winds_are_named_when_the_aircraft_is_asked(tmp_path):
    prepared_winds(tmp_path)
    (tmp_path / "data/mini/decoded/winds/winds.parquet").unlink()
    held = rows_read.opened("mini/winds", tmp_path)
    assert rows.both(held).exit_code == 0 and "aircraft" not in rows.both(held).facts
    with pytest.raises(InputError, match="decoded/winds/winds.parquet"):
        rows.ask(held, aircraft="AC1")


@pytest.mark.parametrize(
    "question, words",
    [
        ({"aircraft": "AC9"}, "did you mean 'AC"),
        ({"file": "c.csv"}, "no prepared row is of that file"),
        ({"day": "yesterday"}, "YYYY-MM-DD"),
        ({"day": "2026-02-30"}, "no day"),
    ],
)
def test_unknown_names_and_days_are_refused(tmp_path, question, words):
    prepared_winds(tmp_path)
    with pytest.raises(InputError, match=words):
        rows.ask(rows_read.opened("mini/winds", tmp_path), **question)


def test_an_unknown_data_set_is_refused_with_the_nearest(tmp_path):
    prepared_winds(tmp_path)
    for address in ("mini/wind", "winds", "mini/winds/x", "../mini/winds"):
        with pytest.raises(InputError, match="mini/winds"):
            rows_read.opened(address, tmp_path)


def test_rows_that_are_not_the_recorded_ones_answer_nothing(tmp_path):
    prepared_winds(tmp_path)
    file = tmp_path / "data/mini/prepared/winds/rows.parquet"
    pl.read_parquet(file).head(10).write_parquet(file)
    with pytest.raises(IntegrityError, match="rows.parquet"):
        rows_read.opened("mini/winds", tmp_path)
