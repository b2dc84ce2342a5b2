"""What Python is handed: tables of Polars and pandas whose times are of any kind, and the rows and
things that are refused by name."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from stages import api
from stages.errors import InputError

PLACES = {"lat_deg": [46.5, 46.6], "lon_deg": [7.2, 7.2], "alt_ft": [34e3, 34e3]}


@pytest.fixture(scope="module")
def example():
    return api.example()


@pytest.fixture(scope="module")
def answer(example):
    """A model's winds at PLACES and two moments, as Unix seconds ask for them."""
    model, winds, time_s = example
    moments = [time_s, time_s + 1]
    return model.predict(pl.DataFrame({**PLACES, "ts_s": moments}), context=winds), moments


def kinds(moments):
    """The moments in every kind that people have them in, as pandas columns."""
    utc = pd.Series(pd.to_datetime(moments, unit="s", utc=True))
    return {
        "numbers": pd.Series(moments),
        "of a zone": utc.dt.tz_convert("Europe/Zurich"),
        "without a zone": utc.dt.tz_localize(None),
        "objects": pd.Series([dt.datetime.fromtimestamp(t, dt.UTC) for t in moments], dtype=object),
        "texts": utc.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


@pytest.mark.parametrize("name", ["time", "ts_s"])
@pytest.mark.parametrize("kind", list(kinds([0.0])))
def test_times_of_every_kind_are_the_same_moments(example, answer, kind, name):
    model, winds, _ = example
    expected, moments = answer
    table = pd.DataFrame(PLACES).assign(**{name: kinds(moments)[kind]})
    of_polars = pl.DataFrame({**PLACES, name: table[name].tolist()})
    known = winds.to_pandas()
    known = known.assign(ts_s=pd.to_datetime(known["ts_s"], unit="s", utc=True))
    for asked, context in ((table, winds), (of_polars, winds), (table, known)):
        found = model.predict(asked, context=context)
        assert type(found) is type(asked) and len(found) == 2
        for column in api.WIND:
            assert np.allclose(found[column].to_numpy(), expected[column].to_numpy())


def test_rows_of_a_context_that_give_no_wind_are_counted_in_a_warning(example, answer, tmp_path):
    model, winds, _ = example
    expected, moments = answer
    asked = pl.DataFrame({**PLACES, "ts_s": moments})
    broken = winds[:3].with_columns(lat_deg=pl.lit(500.0))
    more = pl.concat([winds, broken, winds[:2]])
    more.write_csv(tmp_path / "more.csv")
    for context in (more, tmp_path / "more.csv"):
        with pytest.warns(UserWarning, match="left out: 2 duplicate, 3 outside_range"):
            found = model.predict(asked, context=context)
        assert np.allclose(found["u_m_s"].to_numpy(), expected["u_m_s"].to_numpy())


def test_the_index_and_the_columns_of_a_pandas_table_are_kept(example, answer):
    model, winds, _ = example
    expected, moments = answer
    index = pd.Index(["x", "y"], name="flight")
    asked = pd.DataFrame(PLACES, index=index).assign(
        time=pd.to_datetime(moments, unit="s", utc=True), note=[object(), None], u_m_s=0.0
    )
    found = model.predict(asked, context=winds)
    assert found.index.equals(asked.index) and found.index.name == "flight"
    assert list(found.columns) == [*asked.columns.drop("u_m_s"), *api.WIND]
    assert found["time"].equals(asked["time"]) and found["note"].equals(asked["note"])
    assert found["u_m_s"].to_list() == pytest.approx(expected["u_m_s"].to_list())


@pytest.mark.parametrize("made", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("name", ["time", "ts_s", "lat_deg", "alt_ft"])
@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -1e9, 5e9])
def test_a_row_that_is_no_place_and_time_is_named(example, made, name, value):
    model, winds, time_s = example
    time = "time" if name == "time" else "ts_s"
    table = {**PLACES, time: [time_s, time_s]}
    table[name] = [table[name][0], value]
    with pytest.raises(InputError) as refused:
        model.predict(made(table), context=winds)
    assert name in refused.value.found
    assert "row 2" in refused.value.found or "of point 2" in refused.value.found


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"time": ["2026-01-17T03:02:00Z", "soon"]}, "time 'soon' of row 2"),
        ({"time": ["2026-01-17T03:02:00Z", None]}, "time null of row 2"),
        ({"ts_s": [0, 0], "lat_deg": ["46.5", "x"]}, "lat_deg 'x' of row 2"),
        ({"ts_s": [0, 0], "lat_deg": [dt.date(2026, 1, 1)] * 2}, "lat_deg: Date"),
        ({"ts_s": [0, 0], "lat_deg": [[46.5], [46.6]]}, "lat_deg: List(Float64)"),
        ({}, "no ts_s"),
    ],
)
def test_a_column_of_other_things_is_named(example, more, found):
    model, winds, _ = example
    with pytest.raises(InputError) as refused:
        model.predict(pl.DataFrame({**PLACES, **more}, strict=False), context=winds)
    assert found in refused.value.found


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_a_column_of_nearly_the_right_name_is_told(example, kind):
    model, winds, time_s = example
    places = {"alt_feet" if name == "alt_ft" else name: PLACES[name] for name in PLACES}
    with pytest.raises(InputError) as refused:
        model.predict(kind({**places, "ts_s": [time_s] * 2}), context=winds)
    assert "no alt_ft; did you mean alt_ft by 'alt_feet'" in refused.value.found


@pytest.mark.parametrize(
    ("days", "remedy"), [(-3, "a later time, or give a capture with older"), (3, "an earlier time")]
)
def test_a_time_that_is_not_reached_has_the_remedy_of_its_side(example, days, remedy):
    model, winds, time_s = example
    asked = pl.DataFrame({**PLACES, "ts_s": [time_s + days * 86400.0] * 2})
    with pytest.raises(InputError, match="no wind 30 minutes before") as refused:
        model.predict(asked, context=winds)
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("other", "remedy"),
    [
        (pl.LazyFrame(PLACES), "`.collect()`"),
        (PLACES, "polars.DataFrame"),
        ([PLACES], "polars.DataFrame"),
    ],
)
def test_what_becomes_a_table_has_the_way_there(example, other, remedy):
    model, winds, _ = example
    with pytest.raises(InputError, match="xarray") as refused:
        model.predict(other, context=winds)
    assert remedy in refused.value.remedy


def test_columns_of_one_name_are_refused(example):
    model, winds, time_s = example
    table = pd.DataFrame([[46.5, 46.6, 7.2, 34e3, time_s]])
    table.columns = ["lat_deg", "lat_deg", "lon_deg", "alt_ft", "ts_s"]
    with pytest.raises(InputError, match="several columns have one name"):
        model.predict(table, context=winds)


@pytest.mark.parametrize("other", [5, None, [1, 2], pd.Series([1.0])])
def test_what_is_no_table_is_refused(example, other):
    model, winds, _ = example
    for asked, context in ((other, winds), (winds, other)):
        with pytest.raises(InputError, match="no table"):
            model.predict(asked, context=context)


@pytest.mark.parametrize("name", [5, None, b"example"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InputError, match="not the name of a trained cell"):
        api.load(name)


@pytest.mark.parametrize(
    ("model", "data", "says"),
    [
        ("sigma_gpt", [[1, 2], [3]], "no table of numbers"),
        ("msa", {"context_x": [[[1.0]], [[1.0], [2.0]]]}, "context_x"),
        ("msa", {"context_x": [[["a"]]]}, "context_x"),
        ("msa", {"target_y": [1.0, 2.0]}, "not three axes"),
    ],
)
def test_what_no_model_can_be_fitted_to_is_refused(model, data, says):
    if model == "msa":
        names = ("context_x", "context_y", "target_x", "target_y")
        data = {name: np.zeros((20, 3, 1)) for name in names} | data
    with pytest.raises(InputError, match=says):
        api.fit(model, data)


def test_metres_levels_and_knots_are_read_as_the_shell_reads_them(example, answer):
    model, winds, _ = example
    expected, moments = answer
    asked = pl.DataFrame(
        {"lat": [46.5, 46.6], "longitude": [7.2, 7.2], "flight_level": [340.0, 340.0],
         "ts_ms": [moment * 1e3 for moment in moments]}
    )  # fmt: skip
    known = winds.select(
        "ts_s", "lat_deg", "lon_deg", alt_m=pl.col("alt_ft") * 0.3048,
        u_kn=pl.col("u_m_s") * 3600 / 1852, v_kn=pl.col("v_m_s") * 3600 / 1852,
    )  # fmt: skip
    for table, context in ((asked, known), (asked.to_pandas(), known.to_pandas())):
        found = model.predict(table, context=context)
        for column in api.WIND:
            assert np.allclose(found[column].to_numpy(), expected[column].to_numpy(), rtol=1e-4)


def test_a_column_of_objects_is_not_cut_to_its_first_values_type(example, answer):
    model, winds, _ = example
    moments = answer[1]
    whole = pd.DataFrame(PLACES).assign(ts_s=moments, lat_deg=[46.0, 46.75])
    mixed = whole.assign(lat_deg=pd.Series([np.int64(46), 46.75], dtype=object))
    ours, theirs = (model.predict(one, context=winds) for one in (mixed, whole))
    for column in api.WIND:
        assert np.array_equal(ours[column], theirs[column])
