"""Gridded weather: every form of a file gives the same grid, and what cannot be trusted is refused
(fault F11).

Oracles: cfgrib and xarray, which share no line with the reader, on real files; files made with
ecCodes whose content is known.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from grids_made import LAT, LON, WIND, same, written

from stages.errors import DataError, InputError
from stages.fields import gridded

eccodes = pytest.importorskip(
    "eccodes", reason="eccodes is not installed: pip install 'tradewind[era5]'"
)
MIRROR = os.environ.get("TRADEWIND_MIRROR", "")
REAL = Path(MIRROR) / "era5"
real = pytest.mark.skipif(
    not (MIRROR and REAL.is_dir()),
    reason="TRADEWIND_MIRROR is not set: the real ERA5 files are absent",
)
PARAM = {
    "u10": 165,
    "v10": 166,
    "u100": 228246,
    "v100": 228247,
    "sp": 134,
    "t2m": 167,
    "tcc": 164,
    "msl": 151,
}


def message(name="u100", values=WIND, hour=0, day=1, edition=1, lat=LAT, lon=LON, **keys):
    """One GRIB message; NaN becomes a hole in its bitmap; `keys` are set last."""
    handle = eccodes.codes_grib_new_from_samples(f"regular_ll_sfc_grib{edition}")
    rows, columns = values.shape
    grid = {
        "Nj": rows,
        "Ni": columns,
        "latitudeOfFirstGridPointInDegrees": lat[0],
        "latitudeOfLastGridPointInDegrees": lat[-1],
        "longitudeOfFirstGridPointInDegrees": lon[0],
        "longitudeOfLastGridPointInDegrees": lon[-1],
        "iDirectionIncrementInDegrees": 2.0,
        "jDirectionIncrementInDegrees": 2.0,
        "jScansPositively": int(lat[-1] > lat[0]),
    }
    try:
        for key, value in {
            **grid,
            "paramId": PARAM[name],
            "dataDate": 20000100 + day,
            "dataTime": 100 * hour,
            "bitsPerValue": 24,
            "bitmapPresent": int(np.isnan(values).any()),
            "missingValue": 9999.0,
            **keys,
        }.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set_values(handle, np.where(np.isnan(values), 9999.0, values).ravel())
        return eccodes.codes_get_message(handle)
    finally:
        eccodes.codes_release(handle)


@pytest.mark.parametrize("edition", [1, 2])
def test_a_grib_message_of_either_edition_comes_south_to_north_and_west_to_east(tmp_path, edition):
    grid = gridded.read(written(tmp_path, message(edition=edition)))
    assert same(grid)
    assert grid.units == {"u100": "m/s"} and grid.time.tolist() == [
        np.datetime64("2000-01-01", "ns").astype(int)
    ]


@pytest.mark.fault("F11")
def test_a_grib_file_from_south_to_north_gives_the_same_grid(tmp_path):
    assert same(gridded.read(written(tmp_path, message(values=WIND[::-1], lat=LAT[::-1]))))


@pytest.mark.fault("F11")
def test_longitudes_from_0_to_360_are_rolled_to_the_date_line(tmp_path):
    lon, values = np.arange(0.0, 360.0, 60.0), np.tile(np.arange(6.0), (3, 1))
    grid = gridded.read(
        written(tmp_path, message(values=values, lon=lon, iDirectionIncrementInDegrees=60.0))
    )
    assert grid.lon.tolist() == [-180.0, -120.0, -60.0, 0.0, 60.0, 120.0] and grid.values["u100"][
        0, 0
    ].tolist() == [3, 4, 5, 0, 1, 2]


@pytest.mark.parametrize("edition", [1, 2])
@pytest.mark.fault("F11")
def test_a_hole_in_the_bitmap_is_nan_and_never_zero_or_9999(tmp_path, edition):
    values = WIND.copy()
    values[1, 2] = np.nan
    grid = gridded.read(written(tmp_path, message(values=values, edition=edition)))
    assert same(grid, values)
    assert np.isnan(grid.values["u100"]).sum() == 1


@pytest.mark.fault("F11")
def test_a_real_value_of_9999_is_kept_beside_a_hole(tmp_path):
    values = np.full((3, 6), 99990.0)
    values[0, 0], values[2, 2] = np.nan, 9999.0 * 10
    grid = gridded.read(written(tmp_path, message("sp", values)))
    assert np.isnan(grid.values["sp"]).sum() == 1 and np.nanmin(grid.values["sp"]) == 99990.0


@pytest.mark.parametrize("cut", [1, 4, 40, 100, 107])
@pytest.mark.fault("F11")
def test_a_second_message_that_is_cut_short_is_refused_and_not_dropped(tmp_path, cut):
    whole = message() + message(hour=1)
    with pytest.raises(DataError, match="cut short") as error:
        gridded.open_grid(written(tmp_path, whole[:-cut]))
    assert "1 whole messages" in error.value.found and error.value.remedy


def test_cfgrib_opens_the_same_cut_file_without_a_word(tmp_path):
    """Why the reader walks the file first; if this fails, cfgrib has learned to see it."""
    cfgrib = pytest.importorskip("cfgrib")
    path = written(tmp_path, (message() + message(hour=1))[:-20])
    assert cfgrib.open_dataset(str(path), indexpath="", errors="ignore").sizes["latitude"] == 3


@pytest.mark.parametrize("parts", [(1, b"junk", 2), (1, b"tail"), (1, bytes(500), 2)])
@pytest.mark.fault("F11")
def test_bytes_that_belong_to_no_message_are_refused(tmp_path, parts):
    bodies = {1: message(), 2: message(hour=1)}
    with pytest.raises(DataError, match="no message"):
        gridded.open_grid(written(tmp_path, *(bodies.get(part, part) for part in parts)))


def test_zero_padding_between_messages_is_no_fault(tmp_path):
    assert (
        len(
            gridded.open_grid(
                written(tmp_path, message(), bytes(64), message(hour=1), bytes(12))
            ).time
        )
        == 2
    )


@pytest.mark.fault("F11")
def test_a_file_with_a_whole_message_less_than_was_counted_is_refused(tmp_path):
    path = written(tmp_path, message(), message(hour=1))
    assert len(gridded.open_grid(path, messages=2).time) == 2
    with pytest.raises(DataError, match="another number") as error:
        gridded.open_grid(path, messages=3)
    assert (error.value.expected, error.value.found) == ("3", "2")


def test_messages_in_any_order_and_twice_the_same_give_times_in_order(tmp_path):
    grid = gridded.read(
        written(
            tmp_path,
            message(values=WIND + 2, hour=2),
            message(),
            message(),
            message(values=WIND + 1, hour=1),
        )
    )
    assert (
        np.diff(grid.time).tolist() == [3600 * 10**9] * 2
        and grid.values["u100"][:, 0, 0].tolist() == (WIND[2, 0] + np.arange(3)).tolist()
    )


@pytest.mark.parametrize(
    "parts, what",
    [
        ([message(), message(values=WIND + 1)], "twice with different values"),
        ([message("msl", np.full((3, 6), 1e5))], "variable is missing"),
        ([message(), message("v100", hour=1)], "field is missing"),
        ([message(), message("v100", lat=LAT + 2)], "another grid"),
        ([message("t2m", np.full((3, 6), 12.0))], "cannot have"),
        ([message("sp", np.full((3, 6), 1013.0))], "cannot have"),
        ([message("tcc", np.full((3, 6), 80.0))], "cannot have"),
        ([message(values=WIND * 40)], "cannot have"),
        ([message(typeOfLevel="isobaricInhPa", level=500)], "variable is missing"),
        ([message(jPointsAreConsecutive=1)], "another grid"),
    ],
    ids=[
        "two members",
        "other variable",
        "hole in time",
        "two grids",
        "t in degC",
        "sp in hPa",
        "tcc in percent",
        "wind",
        "level",
        "columns",
    ],
)
@pytest.mark.fault("F11")
def test_grib_that_is_not_what_it_should_be_is_refused_by_name(tmp_path, parts, what):
    with pytest.raises(DataError, match=what):
        gridded.read(written(tmp_path, *parts))


def test_a_wanted_variable_that_is_not_there_is_named_with_what_is(tmp_path):
    with pytest.raises(DataError) as error:
        gridded.open_grid(
            written(tmp_path, message(), message("msl", np.full((3, 6), 1e5))), ("u100", "v100")
        )
    assert (
        error.value.expected == "v100"
        and "u100" in error.value.found
        and "msl" in error.value.found
    )


def test_no_index_or_other_file_appears_beside_the_input(tmp_path):
    gridded.read(written(tmp_path, message()))
    assert [path.name for path in tmp_path.iterdir()] == ["some.grib"]


def test_without_eccodes_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = written(tmp_path, message())
    monkeypatch.setitem(sys.modules, "eccodes", None)
    with pytest.raises(InputError) as error:
        gridded.open_grid(path)
    assert "tradewind[era5]" in error.value.remedy


@real
def test_the_real_month_is_what_cfgrib_reads(tmp_path):
    cfgrib = pytest.importorskip("cfgrib")
    path = REAL / "xarray-data" / "era5-2mt-2019-03-uk.grib"
    grid, oracle = gridded.read(path, ("t2m",)), cfgrib.open_dataset(str(path), indexpath="")
    np.testing.assert_array_equal(grid.time, oracle.valid_time.values.astype("datetime64[ns]"))
    np.testing.assert_allclose(grid.lat[::-1], oracle.latitude.values)
    np.testing.assert_allclose(grid.lon, oracle.longitude.values)
    np.testing.assert_array_equal(grid.values["t2m"][:, ::-1], oracle.t2m.values)


@real
def test_the_real_year_is_what_xarray_reads():
    xarray = pytest.importorskip("xarray")
    path = REAL / "feedinlib" / "ERA5_example_data.nc"
    grid, oracle = gridded.read(path), xarray.open_dataset(path, engine="scipy")
    np.testing.assert_array_equal(grid.time, oracle.time.values.astype("datetime64[ns]"))
    assert set(grid.values) == {"u10", "v10", "u100", "v100", "sp", "t2m"}
    for name, values in grid.values.items():
        np.testing.assert_allclose(values[:, ::-1], oracle[name].values, rtol=1e-6, atol=1e-6)


@real
@pytest.mark.parametrize(
    "name, what",
    [
        ("cfgrib/ERA5_levels.grib", "variable is missing"),
        ("cfgrib/era5-levels-members.grib", "variable is missing"),
        ("weather-tools/test_data_grib_multiple_edition_multiple_timestep.grib2", "another grid"),
    ],
)
def test_real_files_of_another_kind_are_refused_by_name(name, what):
    with pytest.raises(DataError, match=what):
        gridded.open_grid(REAL / name)


@real
def test_the_real_globe_has_its_poles_and_its_date_line():
    grid = gridded.read(REAL / "earthkit" / "era5.grib")
    assert (
        grid.values["t2m"].shape == (1, 721, 1440)
        and grid.lat[[0, -1]].tolist() == [-90.0, 90.0]
        and grid.lon[0] == -180.0
    )
    assert np.ptp(grid.values["t2m"][0, [0, -1]], axis=1).tolist() == [
        0.0,
        0.0,
    ]  # a pole is one place
