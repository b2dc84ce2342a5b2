"""Tables that a search is asked with: moments of every resolution and zone are the same ones, no
query sees its future, and what is no number is refused by column and row."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from stages import neighbours
from stages.errors import InputError

START = np.datetime64("2026-01-17T03:00:00", "us")
PLACES = {"x": np.arange(6.0), "y": np.zeros(6), "z": np.zeros(6)}
SECONDS = np.arange(6) * 20  # after START


def moments(unit="us"):
    return (START + SECONDS.astype("m8[s]")).astype(f"M8[{unit}]")


def kinds():
    """The points' moments as tables have them."""
    utc = pd.Series(moments("ns")).dt.tz_localize("UTC")
    return {
        **{f"pandas {unit}": pd.DataFrame(PLACES).assign(t=moments(unit)) for unit in ("s", "ns")},
        "zone": pd.DataFrame(PLACES).assign(t=utc.dt.tz_convert("Europe/Zurich")),
        "objects": pd.DataFrame(PLACES).assign(t=[m.to_pydatetime() for m in utc]),
        **{f"polars {unit}": pl.DataFrame({**PLACES, "t": moments(unit)}) for unit in ("ms", "us")},
        "polars zone": pl.DataFrame({**PLACES, "t": moments()}).with_columns(
            pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
        ),
        "Unix seconds": pl.DataFrame({**PLACES, "t": moments().astype(np.int64) / 1e6}),
    }


@pytest.mark.parametrize("window", [0.0, 30.0])
@pytest.mark.parametrize("asked", list(kinds()))
@pytest.mark.parametrize("known", ["pandas s", "polars us", "Unix seconds"])
def test_no_query_sees_its_future_whatever_kind_its_moment_has(known, asked, window):
    points, queries = kinds()[known], kinds()[asked]
    found = neighbours(points, queries, 6, window=window)
    assert type(found).__module__.partition(".")[0] == type(queries).__module__.partition(".")[0]
    pairs = {*zip(found["query"].to_list(), found["index"].to_list(), strict=True)}
    seen = SECONDS[None] <= SECONDS[:, None] - window
    assert pairs == {*zip(*(part.tolist() for part in np.nonzero(seen)), strict=True)}


@pytest.mark.parametrize("made", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("t", [None, "2026-01-17T03:00:00Z"], "t '2026-01-17T03:00:00Z' of row 2"),
        ("x", ["a", "b"], "x 'a' of row 1"),
        ("x", [True, False], "x True of row 1"),
        ("t", [dt.timedelta(seconds=1)] * 2, "t datetime.timedelta(seconds=1) of row 1"),
        ("y", [dt.datetime(2026, 1, 17)] * 2, "y datetime.datetime(2026, 1, 17, 0, 0) of row 1"),
    ],
)
def test_what_is_no_number_is_named(made, name, values, found):
    table = {column: [0.0, 1.0] for column in ("x", "y", "z", "t")}
    good, wrong = made(table), made({**table, name: values})
    for points, queries, what in ((wrong, good, "points"), (good, wrong, "queries")):
        with pytest.raises(InputError, match=f"a column of the {what} holds no numbers") as told:
            neighbours(points, queries, 1)
        assert found in told.value.found


def test_a_table_that_is_not_collected_has_the_way_there():
    with pytest.raises(InputError, match="no table"):
        neighbours(pl.LazyFrame(PLACES), pl.DataFrame(PLACES), 1)


@pytest.mark.parametrize("owners", [["a"] * 3 + ["b"] * 3, ["0", "1"] * 3, np.arange(6) // 2])
def test_trajectories_may_be_texts(owners):
    points = pl.DataFrame({**PLACES, "t": SECONDS.astype(float)})
    plain = neighbours(points, points, 3)
    assert neighbours(points, points, 3, trajectory=owners, method="trajectory").equals(plain)
    named = points.with_columns(icao=pl.Series(owners))
    assert neighbours(named, points, 3, trajectory="icao", method="trajectory").equals(plain)


def test_a_point_of_nobody_is_named():
    points = pl.DataFrame({**PLACES, "t": SECONDS.astype(float), "icao": ["a", None] * 3})
    with pytest.raises(InputError, match="no trajectory") as told:
        neighbours(points, points, 3, trajectory="icao")
    assert told.value.found == "None of row 2"


@pytest.mark.parametrize("later", [1.0, 10.0, 100.0])
def test_lists_keep_the_seconds_that_tell_past_from_future(later):
    t = 1768618920.0
    known, asked = [[0.0, 0.0, 0.0, t + later], [5.0, 0.0, 0.0, t - 600]], [[0.0, 0.0, 0.0, t]]
    assert neighbours(known, asked, 1).index.tolist() == [[1]]
    assert neighbours(np.array(known), np.array(asked), 1).index.tolist() == [[1]]
    with pytest.raises(InputError, match="off by up to a minute"):
        neighbours(np.array(known, np.float32), np.array(asked, np.float32), 1)


def test_numbers_of_objects_are_not_cut_to_the_first_ones_type():
    table = pd.DataFrame(PLACES).assign(t=SECONDS.astype(float))
    mixed = table.assign(x=pd.Series([np.int64(0), *(0.75 + np.arange(5))], dtype=object))
    plain = table.assign(x=[0.0, *(0.75 + np.arange(5))])
    names = ("x", "y", "z", "t")
    ours, theirs = (neighbours(t, t, 2, columns=names) for t in (mixed, plain))
    assert ours.equals(theirs)
