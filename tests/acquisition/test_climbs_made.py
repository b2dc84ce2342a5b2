"""Simulated climbs: the documents' columns, 25 ft steps, rates that no aircraft exceeds and that
fall with altitude, levels that are held."""

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from stages.params.sequences import Climb
from stages.sequences.data.climb import make as climb

ROWS = 144


def config(**changed):
    return Climb(
        **(
            {
                "seed": 3,
                "train": 400,
                "val": 50,
                "test": 50,
                "steps": 24,
                "step_s": 24,
                "bin_ft": 500,
                "types": 8,
            }
            | changed
        )
    )


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    """The table of 500 flights, and altitude and cleared level (500, 144) in ft."""
    folder = tmp_path_factory.mktemp("climbs")
    climb.make(config(), folder)
    rows = pl.read_csv(folder / "flights.csv", schema_overrides={"AIRCRAFT": pl.String})
    return (
        rows,
        rows["TRACK_ALTITUDE"].to_numpy().reshape(-1, ROWS) * 100,
        rows["CFL"].to_numpy().reshape(-1, ROWS) * 100.0,
    )


def test_the_file_has_the_columns_of_the_documents_and_a_row_every_four_seconds_of_each_flight(
    flown,
):
    rows, altitude, _ = flown
    assert rows.columns == ["FLIGHT_ID", "AIRCRAFT_TYPE", "CFL", "TRACK_ALTITUDE", "AIRCRAFT"]
    assert len(altitude) == 500 and (rows.group_by("FLIGHT_ID").len()["len"] == ROWS).all()


def test_an_aircraft_flies_four_flights_and_has_one_type(flown):
    rows, _, _ = flown
    each = rows.group_by("AIRCRAFT").agg(
        pl.col("FLIGHT_ID").n_unique().alias("flights"),
        pl.col("AIRCRAFT_TYPE").n_unique().alias("types"),
    )
    assert len(each) == 125 and (each["flights"] == 4).all() and (each["types"] == 1).all()
    assert set(rows["AIRCRAFT_TYPE"]) == set(climb.TYPES)


def test_altitudes_are_quarters_of_a_flight_level_within_the_types_reach(flown):
    rows, altitude, _ = flown
    assert (altitude % 25 == 0).all() and altitude.min() > 0
    ceiling = np.array([climb.TYPES[name][1] for name in rows["AIRCRAFT_TYPE"]]).reshape(-1, ROWS)
    assert (altitude < ceiling).all()


def test_no_flight_is_faster_than_its_type_can_be_and_climbs_and_descents_are_as_common(flown):
    _, altitude, cleared = flown
    assert np.abs(np.diff(altitude, axis=1)).max() * 15 < 6000  # ft/min
    assert 0.4 < (cleared[:, 0] > altitude[:, 0]).mean() < 0.6


def test_flights_move_towards_the_cleared_level_never_far_beyond_it_and_hold_it(flown):
    _, altitude, cleared = flown
    left = cleared - altitude
    step = np.diff(altitude, axis=1)
    far = np.abs(left[:, :-1]) > 1000
    assert (
        np.sign(step[far]) * np.sign(left[:, :-1][far]) >= 0
    ).mean() > 0.99  # but for the lag after a change
    reached = np.maximum.accumulate(np.abs(left) < 50, axis=1)
    same = np.concatenate(
        [
            np.ones((len(left), 1), bool),
            np.cumprod(np.diff(cleared, axis=1) == 0, axis=1).astype(bool),
        ],
        axis=1,
    )
    assert np.abs(left)[reached & same].max() <= 100 and 0.3 < (np.abs(left) < 50).mean() < 0.7


def test_cleared_levels_are_whole_thousands_all_one_way_and_some_change_before_they_are_reached(
    flown,
):
    _, altitude, cleared = flown
    assert (cleared % 1000 == 0).all()
    change = np.diff(cleared, axis=1)
    up = cleared[:, 0] > altitude[:, 0]
    assert (np.where(up[:, None], change, -change) >= 0).all() and (
        np.abs(change[change != 0]) >= climb.APART_FT
    ).all()
    assert (np.abs(cleared - altitude)[:, 0] >= climb.APART_FT - 25).all()
    at = np.argwhere(change != 0)
    gap = np.array([abs(cleared[n, t] - altitude[n, t]) for n, t in at])
    assert 0.1 < (gap > 100).mean() < 0.5 and len(at) > 200


def test_a_climb_is_slower_the_higher_it_is_and_types_differ(flown):
    rows, altitude, cleared = flown
    rate, middle = np.diff(altitude, axis=1) * 15, (altitude[:, :-1] + altitude[:, 1:]) / 2
    free = cleared[:, :-1] - altitude[:, :-1] > 2000
    kind = rows["AIRCRAFT_TYPE"].to_numpy().reshape(-1, ROWS)[:, 0]
    for name in np.unique(kind):
        own = free & (kind == name)[:, None]
        low, high = (
            np.median(
                rate[
                    own & (middle > a * climb.TYPES[name][1]) & (middle < b * climb.TYPES[name][1])
                ]
            )
            for a, b in ((0, 0.3), (0.5, 0.9))
        )
        assert low > 1.3 * high > 0, name
    slow, fast = (
        np.median(rate[free & (middle < 15_000) & (kind == name)[:, None]])
        for name in ("AT76", "C56X")
    )
    assert fast > 1.7 * slow


def test_the_seed_decides_every_byte_and_the_numbers_of_flights_are_those_asked_for(tmp_path):
    small = {"train": 9, "val": 2, "test": 2, "types": 1}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        climb.make(config(seed=seed, **small), tmp_path / name)
    a, b, c = ((tmp_path / name / "flights.csv").read_bytes() for name in "abc")
    assert a == b != c and a.count(b"\n") == 1 + 13 * ROWS
    assert (
        pl.read_csv(tmp_path / "a" / "flights.csv", columns=["AIRCRAFT_TYPE"])[
            "AIRCRAFT_TYPE"
        ].n_unique()
        == 1
    )


def test_too_few_flights_for_three_splits_by_aircraft_are_refused():
    with pytest.raises(ValidationError, match="leave a split without aircraft"):
        config(train=6, val=1, test=1)
