"""Gridded weather in NetCDF: names, axes, units and versions give the same grid; what cannot be
trusted is refused (fault F11)."""

import numpy as np
import pytest
from grids_made import LAT, LON, WIND, same, written
from scipy.io import netcdf_file

from stages.errors import DataError, InputError
from stages.fields import gridded


def cdf(
    folder,
    values=WIND[None],
    name="u100",
    unit="m s**-1",
    lat=LAT,
    lon=LON,
    hours=(0,),
    since="hours since 2000-01-01 00:00:00.0",
    dims=("time", "latitude", "longitude"),
    kind="f8",
    extra=None,
    **attributes,
):
    """A NetCDF-3 file of one variable; `dims` names its axes in the file's words."""
    path = folder / "some.nc"
    with netcdf_file(path, "w") as file:
        words = [
            next(d for d in dims if d in some)
            for some in (("time", "valid_time"), ("latitude", "lat"), ("longitude", "lon"))
        ]
        for word, axis, units in zip(
            words, (hours, lat, lon), (since, "degrees_north", "degrees_east"), strict=True
        ):
            file.createDimension(word, len(axis))
            stored = file.createVariable(word, "f8", (word,))
            stored[:], stored.units = axis, units
        for dim, size in (extra or {}).items():
            file.createDimension(dim, size)
        stored = file.createVariable(name, kind, dims)
        stored[:] = values
        if unit is not None:
            stored.units = unit
        for key, value in attributes.items():
            setattr(stored, key, value)
    return path


@pytest.mark.parametrize(
    "name", ["u100", "100u", "u_component_of_100m_wind", "100m_u_component_of_wind"]
)
@pytest.mark.parametrize(
    "dims",
    [
        ("time", "latitude", "longitude"),
        ("valid_time", "lat", "lon"),
        ("longitude", "time", "latitude"),
    ],
)
def test_netcdf_of_any_version_s_names_and_axes_gives_the_same_grid(tmp_path, name, dims):
    values = WIND[None] if dims[0] != "longitude" else WIND.T[:, None]
    assert same(gridded.read(cdf(tmp_path, values, name=name, dims=dims)))


@pytest.mark.parametrize("unit, factor", [("m/s", 1.0), ("m s-1", 1.0), ("knots", 3600 / 1852)])
def test_known_units_become_metres_a_second(tmp_path, unit, factor):
    assert same(gridded.read(cdf(tmp_path, WIND[None] * factor, unit=unit)))


@pytest.mark.parametrize(
    "name, unit, given, got",
    [("t2m", "degC", 12.5, 285.65), ("sp", "hPa", 1013.0, 101300.0), ("tcc", "%", 80.0, 0.8)],
)
def test_known_units_of_other_variables_are_turned_too(tmp_path, name, unit, given, got):
    np.testing.assert_allclose(
        gridded.read(cdf(tmp_path, np.full((1, 3, 6), given), name=name, unit=unit)).values[name],
        got,
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    "change, what",
    [
        ({"unit": "km/h"}, "unit"),
        ({"unit": None}, "no unit at all"),
        ({"unit": "K"}, "unit"),
        ({"name": "ugrd"}, "variable is missing"),
        ({"since": "fortnights since 2000-01-01"}, "times"),
        ({"since": "hours since 2000-13-01"}, "times"),
        ({"hours": (np.nan,)}, "times"),
        ({"lat": np.array([50.0, 48.0, 40.0])}, "evenly"),
        ({"lat": np.array([50.0, 50.0, 50.0])}, "evenly"),
        ({"lat": LAT + 100}, "positions"),
        ({"lon": np.arange(174.0, 186.0, 2.0)}, "date line"),
    ],
)
@pytest.mark.fault("F11")
def test_netcdf_that_is_not_what_it_should_be_is_refused_by_name(tmp_path, change, what):
    with pytest.raises(DataError, match=what):
        gridded.read(cdf(tmp_path, **change))


def test_fill_and_missing_values_of_packed_numbers_are_nan(tmp_path):
    shorts = np.arange(18).reshape(1, 3, 6).astype(np.int16)
    shorts[0, 0, 0], shorts[0, 2, 5] = -32767, -1
    path = cdf(
        tmp_path,
        shorts,
        kind="i2",
        scale_factor=0.5,
        add_offset=-2.0,
        _FillValue=np.int16(-32767),
        missing_value=np.int16(-1),
    )
    expected = np.where(shorts[0] < 0, np.nan, shorts[0] * 0.5 - 2)
    assert same(gridded.read(path), expected)


def test_the_two_versions_of_a_time_are_merged_and_two_members_refused(tmp_path):
    values = np.stack([WIND, np.full_like(WIND, np.nan)])[None]
    dims = ("time", "expver", "latitude", "longitude")
    assert same(gridded.read(cdf(tmp_path, values, dims=dims, extra={"expver": 2})))
    with pytest.raises(DataError, match="twice with different values"):
        gridded.read(
            cdf(tmp_path, np.stack([WIND, WIND + 1])[None], dims=dims, extra={"expver": 2})
        )


def test_times_out_of_order_are_sorted_and_a_repeated_one_must_say_the_same(tmp_path):
    grid = gridded.read(cdf(tmp_path, np.stack([WIND + 2, WIND, WIND]), hours=(48, 0, 0)))
    assert same(grid)
    assert [str(time)[:10] for time in grid.time] == ["2000-01-01", "2000-01-03"]
    with pytest.raises(DataError, match="twice with different values"):
        gridded.read(cdf(tmp_path, np.stack([WIND, WIND + 1]), hours=(0, 0)))


@pytest.mark.parametrize("keep", [30, 200, -1])
@pytest.mark.fault("F11")
def test_a_netcdf_file_that_is_cut_short_is_refused(tmp_path, keep):
    path = cdf(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="NetCDF-3 file is cut short"):
        gridded.open_grid(path)


@pytest.mark.parametrize("body", [b"", b"PK\3\4....", b"<html></html>"])
def test_what_is_neither_grib_nor_netcdf_is_refused(tmp_path, body):
    with pytest.raises(DataError, match="neither GRIB nor NetCDF"):
        gridded.open_grid(written(tmp_path, body, name="some.nc"))


def test_netcdf_4_reads_as_netcdf_3_does_or_says_what_to_install(tmp_path):
    xarray = pytest.importorskip("xarray")
    old, new = cdf(tmp_path), tmp_path / "new.nc"
    np.testing.assert_array_equal(
        gridded.netcdf.netcdf4(old)["u100"].numbers[0], WIND
    )  # the same way in, through xarray
    new.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises((InputError, DataError)) as error:
        gridded.open_grid(new)
    assert error.value.remedy
    pytest.importorskip("h5py", reason="h5py is not installed: NetCDF-4 cannot be written")
    xarray.open_dataset(old).to_netcdf(new, engine="h5netcdf")
    assert same(gridded.read(new))
