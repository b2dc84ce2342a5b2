"""A split that rolls with the data: the law always holds, the newest rows test, holes are
stepped over, too little data is told."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_sky import START_S, WIND_MAX_M_S, prepared, tidy, winds

from stages.errors import DataError, ParamsError
from stages.params import Prepare, load
from stages.runner import Asked
from stages.splits import SPLITS
from stages.winds import prepare, rows, slices

ROOT_PARAMS = Path(__file__).parents[2] / "params.yaml"
ROLLING = Prepare(slice_s=60, lead_s=600, embargo_s=300, rolling={"test_s": 1800.0, "val_s": 900.0})


def laid(rolling: Prepare, hours: float, **changes) -> Prepare:
    return slices.resolve(rolling.model_copy(update=changes), 0.0, hours * 3600 - 1)


def needed(text: str) -> float:
    """The seconds that an error says are missing."""
    return float(re.search(r"found: ([\d.e+]+) s are missing", text)[1])


# --- the law

plans = st.builds(
    lambda w, lead, embargo, test, val: Prepare(
        slice_s=w, lead_s=lead, embargo_s=embargo, rolling={"test_s": test * w, "val_s": val * w}
    ),
    st.integers(1, 600),
    st.floats(0.5, 4000),
    st.floats(0, 4000),
    st.floats(1, 40),
    st.floats(1, 40),
)


@settings(max_examples=300, deadline=None)
@given(plans, st.floats(0, 1e9), st.floats(0, 400_000), st.data())
def test_the_law_holds_for_all_settings_and_all_data_or_it_is_told_how_much_is_missing(
    plan, first_s, length_s, data
):
    slices.check(plan, "here")  # any such settings can be fulfilled by enough data
    try:
        found = slices.resolve(plan, first_s, first_s + length_s)
    except DataError as error:
        missing = needed(str(error))
        assert missing > 0 and "drop more captures" in str(error)
        found = slices.resolve(plan, first_s, first_s + length_s + missing + plan.slice_s)
        if missing > plan.slice_s:
            with pytest.raises(DataError):
                slices.resolve(plan, first_s, first_s + length_s + missing - 2 * plan.slice_s)
    slices.check(found, "here")
    assert found.rolling is None and (found.slice_s, found.lead_s, found.embargo_s) == (
        plan.slice_s,
        plan.lead_s,
        plan.embargo_s,
    )
    (train,), (val,), (test,) = (getattr(found.split, name) for name in SPLITS)
    assert train[1] <= val[0] < val[1] <= test[0]
    for asked, (start, end) in ((plan.rolling.val_s, val), (plan.rolling.test_s, test)):
        assert asked - plan.slice_s < end - start <= asked * (1 + 1e-12)


@pytest.mark.parametrize(
    ("w", "lead", "embargo", "first"),
    [(1, 69.36, 35.64, 81225), (3, 90.7, 95.3, 74365), (3, 25.47, 64.53, 64270)],
)
def test_rounding_does_not_undercut_the_embargo(w, lead, embargo, first):
    """Here the last boundary before the embargo, as computed, lies some 1e-12 s too late."""
    plan = Prepare(
        slice_s=w, lead_s=lead, embargo_s=embargo, rolling={"test_s": 10.0 * w, "val_s": 5.0 * w}
    )
    found = slices.resolve(plan, 0.0, w * (first + 9.5))
    assert found.split.test == ((w * first, w * (first + 10)),)
    slices.check(found, "here")


@settings(max_examples=150, deadline=None)
@given(plans, st.sets(st.integers(0, 900), min_size=1, max_size=200))
def test_the_law_holds_where_the_data_have_holes_and_every_split_holds_a_slice_that_can_be_used(
    plan, filled
):
    usable = sorted(filled)
    try:
        found = slices.resolve(plan, 0.0, plan.slice_s * 1000, usable)
    except DataError as error:
        assert needed(str(error)) > 0
        return
    slices.check(found, "here")
    for name in SPLITS:
        assert any(j in inside for inside in slices.target_ranges(found, name) for j in usable), (
            name
        )
    assert found.split.test[0][1] == plan.slice_s * (usable[-1] + 1)


# --- where the intervals lie


def test_the_last_seconds_test_those_before_them_select_and_all_before_those_train():
    """By hand: w = 60, lead 600, embargo 300: contexts reach 660 s back, so 960 s lie between
    splits; a target needs 660 s before it."""
    split = laid(ROLLING, 3).split
    assert split.test == ((9000, 10800),)
    assert split.val == ((9000 - 960 - 900, 9000 - 960),)
    assert split.train == ((660, 7140 - 960),)


def test_an_hour_more_moves_test_and_val_by_an_hour_and_lets_train_grow():
    before, after = laid(ROLLING, 3).split, laid(ROLLING, 4).split
    assert [[edge + 3600 for edge in interval] for interval in (*before.val, *before.test)] == [
        list(i) for i in (*after.val, *after.test)
    ]
    assert after.train == ((before.train[0][0], before.train[0][1] + 3600),)


def test_time_counts_from_the_first_full_slice():
    first_s = 1_600_000_000.0  # 20 s before a full minute
    assert slices.resolve(ROLLING, first_s, first_s + 20 + 10799).split.test[0][1] == 10800
    assert (
        slices.resolve(ROLLING, first_s, first_s + 20 + 10800).split.test[0][1] == 10860
    )  # the slice that the data end in counts


def test_the_least_that_can_be_split_is_a_slice_to_train_on():
    least = 660 + 60 + 960 + 900 + 960 + 1800
    split = slices.resolve(ROLLING, 0.0, least - 1).split
    assert split.train == ((660, 720),)
    with pytest.raises(DataError, match="too few data") as caught:
        slices.resolve(ROLLING, 0.0, least - 61)
    assert (
        needed(str(caught.value)) == 60
        and f"expected: {least} s" in str(caught.value)
        and caught.value.exit_code == 1
    )


def test_a_fixed_split_stays_as_it_is():
    fixed = Prepare(
        slice_s=60,
        lead_s=600,
        embargo_s=300,
        split={"train": ((660, 3600),), "val": ((4560, 5700),), "test": ((6660, 9000),)},
    )
    assert slices.resolve(fixed, 0.0, 100.0) is fixed


@pytest.mark.parametrize(("changes", "name"), [({"test_s": 59.0}, "test"), ({"val_s": 1.0}, "val")])
def test_a_rolling_split_without_a_whole_slice_is_refused_before_any_work(
    changes, name, tmp_path, monkeypatch
):
    plan = ROLLING.model_copy(update={"rolling": ROLLING.rolling.model_copy(update=changes)})
    monkeypatch.chdir(tmp_path)
    whole = load(ROOT_PARAMS)
    profile = whole.profiles["live"].model_copy(update={"prepare": {"captures": plan}})
    with pytest.raises(
        ParamsError,
        match=rf"no whole slice(.|\n)*profiles\.live\.prepare\.captures(.|\n)*found: {name}\b",
    ):
        parameters = whole.model_copy(update={"profiles": {"live": profile}})
        prepare.plan(Asked({"profile": "live", "dataset": "captures"}, parameters))
    assert not [*tmp_path.iterdir()]


# --- on rows


def test_rows_are_those_of_the_same_intervals_written_by_hand(tmp_path):
    table = winds(truth=True)
    rolled = prepared(table, tmp_path / "rolled", ROLLING)
    split = slices.Split(**{name: tuple(map(tuple, rolled["split"][name])) for name in SPLITS})
    fixed = ROLLING.model_copy(update={"split": split, "rolling": None})
    plain = prepared(table, tmp_path / "fixed", fixed)
    assert rolled.pop("rolling") == {"test_s": 1800.0, "val_s": 900.0} and "rolling" not in plain
    assert rolled == plain
    assert (tmp_path / "rolled/rows.parquet").read_bytes() == (
        tmp_path / "fixed/rows.parquet"
    ).read_bytes()
    assert "rolling" in json.loads((tmp_path / "rolled/prepared.json").read_text())


def test_the_newest_rows_are_test_rows(tmp_path):
    table = winds()
    meta = prepared(table, tmp_path, ROLLING)
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert rows["split"][-1] == SPLITS.index("test") and rows["t_s"][-1] == table["ts_s"][-1]
    times = {name: rows.filter(split=code)["t_s"].to_numpy() for code, name in enumerate(SPLITS)}
    assert times["test"].min() >= table["ts_s"][-1] - 1800 - 60
    for early, late in itertools.pairwise(SPLITS):
        assert times[late].min() - times[early].max() >= ROLLING.embargo_s + ROLLING.lead_s
    assert meta["rows"]["train"] > meta["rows"]["test"] > meta["rows"]["val"] > 0


def test_a_night_without_captures_does_not_leave_a_split_empty(tmp_path):
    """Three hours, nine hours of nothing, fifty minutes: by the clock alone, val would lie in
    the hole."""
    table = winds()
    late = table.filter(pl.col("ts_s") < START_S + 3000).with_columns(
        pl.col("ts_s") + 12 * 3600, record=pl.col("record") + 10**6
    )
    meta = prepared(tidy(pl.concat([table, late])), tmp_path, ROLLING)
    assert min(meta["rows"].values()) > 100
    newest, hole = meta["split"]["test"][0], 3 * 3600.0
    assert newest[1] > 12 * 3600 and newest[0] > hole
    assert hole - 120 < meta["split"]["val"][0][1] <= hole, (
        "val ends where the rows before the hole end"
    )
    with pytest.raises(DataError, match="hold no|both hold rows"):
        clock = slices.resolve(ROLLING, table["ts_s"][0], late["ts_s"][-1])
        rows.prepare(tmp_path / "winds.parquet", tmp_path, clock, WIND_MAX_M_S, "toy", "sky")


def test_rows_that_cannot_be_used_do_not_move_the_split(tmp_path):
    """Winds over the limit, minutes after the last good row, with good rows a lead before them:
    dropped, so no split may end on them."""
    table = winds()
    wild = table.tail(50).with_columns(
        ts_s=pl.col("ts_s") + 500, u_m_s=pl.lit(500.0), record=pl.col("record") + 10**6
    )
    meta = prepared(tidy(pl.concat([table, wild])), tmp_path / "a", ROLLING)
    clean = prepared(table, tmp_path / "b", ROLLING)
    assert meta["dropped"]["over_wind_max"] == 50 and meta["split"] == clean["split"]


def test_too_little_data_says_how_many_seconds_are_missing_and_what_to_do(tmp_path):
    with pytest.raises(DataError) as caught:
        prepared(winds(hours=1.0), tmp_path, ROLLING)
    missing = needed(str(caught.value))
    assert "drop more captures" in str(caught.value)
    length = np.ceil(winds(hours=1.0)["ts_s"][-1] - START_S)
    assert abs(length + missing - (660 + 60 + 960 + 900 + 960 + 1800)) <= 180


def test_the_live_profile_can_be_split_once_some_hours_are_there():
    live = load(ROOT_PARAMS).profiles["live"].prepare["captures"]
    split = laid(live, 6).split
    assert (
        split.test == ((18000, 21600),) and split.val[0][1] - split.val[0][0] == live.rolling.val_s
    )
    with pytest.raises(DataError, match="s are missing"):
        laid(live, 2)
