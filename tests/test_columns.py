"""Columns of what people hand over: the values as they are, whatever holds them."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from stages import columns
from stages.errors import InputError

UTC = dt.UTC
HERE = dt.timezone(dt.timedelta(hours=1))
MOMENT = dt.datetime(2026, 1, 17, 3, 2)


@pytest.mark.parametrize(
    "values",
    [[np.int64(46), 46.75], [46, 46.75], [np.float32(46.0), 46.75], [None, np.int32(46), 46.75]],
)
def test_the_first_value_does_not_cut_the_others_to_its_type(values):
    expected = [None if one is None else float(one) for one in values]
    assert columns.of_list("a", values).cast(pl.Float64).to_list() == expected
    of_pandas = columns.of_pandas(pd.Series(values, dtype=object), "a")
    assert of_pandas.cast(pl.Float64).to_list() == expected


def test_moments_of_several_zones_and_of_none_are_those_of_utc():
    values = [
        MOMENT,
        MOMENT.replace(tzinfo=UTC),
        MOMENT.replace(hour=4, tzinfo=HERE),
        pd.Timestamp("2026-01-17 04:02", tz="Europe/Zurich"),
        None,
        np.datetime64("2026-01-17T03:02"),
    ]
    found = columns.of_list("t", values).cast(pl.Datetime("us")).to_list()
    assert found == [MOMENT] * 4 + [None, MOMENT]


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([1768618920, MOMENT], "row 2"),
        ([None, MOMENT, 1.5], "row 3"),
        ([True, 1.5], "row 2"),
        ([1.5, "a"], "row 2"),
        ([MOMENT, "2026-01-17T03:02:00Z"], "row 2"),
    ],
)
def test_values_of_two_kinds_are_refused_by_row(values, row):
    with pytest.raises(InputError, match="two kinds") as error:
        columns.of_list("t", values)
    assert row in error.value.found
