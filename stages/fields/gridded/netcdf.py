"""NetCDF 3 and 4 by the CF conventions: packed numbers, times since a date, versions of a time.

NetCDF-4 needs xarray with an HDF5 reader; NetCDF-3 neither.
Shapes: n times, p latitudes, q longitudes.
"""

# mypy: disable-error-code="arg-type"
# a star ends before the arguments behind it

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import InputError
from stages.fields.gridded.convention import EXTRA, NAMES, VARIABLES, Opened, axes, refuse, unit_of

AXES = {
    "time": "time",
    "valid_time": "time",
    "latitude": "lat",
    "lat": "lat",
    "longitude": "lon",
    "lon": "lon",
    "expver": "expver",
    "number": "number",
}
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
SINCE = (
    r"(second|minute|hour|day)s? since (\d{1,4})-(\d\d?)-(\d\d?)(?:[T "
    r"](\d\d?):(\d\d)(?::(\d\d)(?:\.0*)?)?)?(?: ?(?:UTC|Z|\+00:?00))?"
)
CALENDARS = ("standard", "gregorian", "proleptic_gregorian")


@dataclass(frozen=True)
class _Raw:
    """A NetCDF variable as stored: its dimensions, attributes, and numbers that can be indexed."""

    dims: tuple[str, ...]
    attributes: dict[str, Any]
    numbers: Any


def netcdf3(path: Path) -> dict[str, _Raw]:
    """The variables of a NetCDF-3 file, undecoded. DataError for a damaged one."""
    from scipy.io import netcdf_file

    try:
        with netcdf_file(path, "r", mmap=False, maskandscale=False) as stored:
            return {
                name: _Raw(tuple(raw.dimensions), dict(raw._attributes), raw.data)
                for name, raw in stored.variables.items()
            }
    except Exception as error:  # scipy meets a damaged header with whatever its bytes lead to
        found = f"{type(error).__name__}: {error}"
        raise refuse(
            path, "a NetCDF-3 file is cut short or damaged", "", found, "fetch the file again"
        ) from None


def netcdf4(path: Path) -> dict[str, _Raw]:
    """The variables of a NetCDF file through xarray, undecoded. InputError without xarray or a
    reader of HDF5."""
    try:
        import xarray

        stored = xarray.open_dataset(path, decode_cf=False)
    except (ImportError, ValueError) as error:
        if isinstance(error, ImportError) or "engine" in str(error) or "backend" in str(error):
            raise InputError(
                "NetCDF-4 cannot be read without xarray, h5netcdf and h5py",
                where=str(path),
                remedy=EXTRA,
            ) from None
        raise refuse(path, "a NetCDF file is damaged", "", error, "fetch the file again") from None
    except Exception as error:  # HDF5 readers have error classes of their own
        raise refuse(
            path,
            "a NetCDF file is damaged",
            "",
            f"{type(error).__name__}: {error}",
            "fetch the file again",
        ) from None
    return {
        str(name): _Raw(tuple(map(str, raw.dims)), dict(raw.attrs), raw)
        for name, raw in stored.variables.items()
    }


def _attribute(raw: _Raw, key: str, default: Any = None) -> Any:
    value = raw.attributes.get(key, default)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _native(numbers: Any) -> np.ndarray:
    """Numbers as an array of the machine's byte order."""
    array = np.asarray(numbers)
    return array.astype(array.dtype.newbyteorder("="))


def _decoded(raw: _Raw, numbers: Any) -> np.ndarray:
    """Packed numbers unpacked in float64, NaN for the fill value and the missing value."""
    packed = _native(numbers)
    gone = np.zeros(packed.shape, bool)
    for key in ("_FillValue", "missing_value"):
        for mark in np.ravel(_native(raw.attributes.get(key, ()))):
            gone |= packed == mark
    scale, offset = (
        float(np.ravel(raw.attributes.get(key, default))[0])
        for key, default in (("scale_factor", 1.0), ("add_offset", 0.0))
    )
    return np.where(gone, np.nan, packed.astype(np.float64) * scale + offset)


def _cf_time(path: Path, raw: _Raw) -> np.ndarray:
    """CF times `UNIT since DATE` (UTC) as datetime64[ns], to the second."""
    words, calendar = str(_attribute(raw, "units", "")), _attribute(raw, "calendar", "standard")
    match = re.fullmatch(SINCE, words)
    if not match or calendar not in CALENDARS:
        expected = "hours since 1900-01-01 00:00:00 in the standard calendar"
        raise refuse(path, "times that are not understood", expected, f"{words!r}, {calendar!r}")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[1:])
    since = np.atleast_1d(_decoded(raw, raw.numbers[...]))
    try:
        start = np.datetime64(
            f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}", "s"
        )
    except ValueError:
        raise refuse(path, "times that are not understood", "a date", words) from None
    if not (np.isfinite(since).all() and np.abs(since * SECONDS[match[1]]).max(initial=0) < 9e9):
        raise refuse(path, "times are missing or out of reach", "finite numbers", words)
    return (start + np.rint(since * SECONDS[match[1]]).astype("timedelta64[s]")).astype(
        "datetime64[ns]"
    )


def _slab(path: Path, name: str, raw: _Raw, k: int) -> np.ndarray:
    """Variable `name` at the file's k-th time, (lat, lon) as stored; versions of a time
    (`expver`) are merged, one member squeezed."""
    kinds = [AXES[dim] for dim in raw.dims]
    numbers = _decoded(
        raw, raw.numbers[tuple(k if kind == "time" else slice(None) for kind in kinds)]
    )
    left = [kind for kind in kinds if kind != "time"]
    numbers = np.moveaxis(numbers, (left.index("lat"), left.index("lon")), (-2, -1))
    merged, *others = numbers.reshape(-1, *numbers.shape[-2:])
    for other in others:
        if (np.isfinite(merged) & np.isfinite(other) & (merged != other)).any():
            raise refuse(
                path,
                f"{name} is there twice with different values",
                "one field a time",
                f"along {', '.join(set(raw.dims))}",
                "keep one member of an ensemble, and one version of a time",
            )
        merged = np.where(np.isfinite(merged), merged, other)
    return merged


def _coordinate(path: Path, variables: dict[str, _Raw], axis: str) -> _Raw:
    """The one coordinate of an axis, by its names in the versions of the archive."""
    found = [
        variables[name]
        for name, kind in AXES.items()
        if kind == axis and name in variables and len(variables[name].dims) <= 1
    ]
    if len(found) != 1:
        expected = " or ".join(name for name, kind in AXES.items() if kind == axis)
        raise refuse(path, f"no coordinate of {axis}, or several", expected, ", ".join(variables))
    return found[0]


def opened(path: Path, variables: dict[str, _Raw]) -> Opened:
    """A file of these variables by the CF conventions. DataError for axes, units or a calendar
    that are not understood."""
    raws, linear, unused = {}, {}, []
    for stored, raw in variables.items():
        name, kinds = NAMES.get(stored), {AXES.get(dim) for dim in raw.dims}
        if name and kinds <= set(AXES.values()) and {"lat", "lon"} <= kinds:
            if name in raws:
                raise refuse(path, f"{name} is there under two names", stored)
            raws[name], linear[name] = raw, unit_of(name, str(_attribute(raw, "units", "")), path)
        elif stored not in AXES:
            unused.append(stored)
    times = _cf_time(path, _coordinate(path, variables, "time"))
    lat, lon, rows, columns = axes(
        *(_native(_coordinate(path, variables, axis).numbers[...]) for axis in ("lat", "lon")), path
    )

    def get(name: str, k: int) -> np.ndarray:
        slab, (factor, offset) = _slab(path, name, raws[name], k), linear[name]
        if slab.shape != (len(lat), len(lon)):
            raise refuse(
                path, f"{name} has another shape than its axes", (len(lat), len(lon)), slab.shape
            )
        return (slab * factor + offset).astype(np.float32)[np.ix_(rows, columns)]

    first = np.unique(times, return_index=True)[
        1
    ]  # sorted by time; a time that is there again must say the same
    for again in np.setdiff1d(np.arange(len(times)), first):
        one = first[np.searchsorted(times[first], times[again])]
        if bad := [
            name
            for name in raws
            if not np.array_equal(get(name, one), get(name, again), equal_nan=True)
        ]:
            raise refuse(
                path,
                f"{bad[0]} is there twice with different values",
                "one field a time",
                f"{times[again]} again",
            )
    names = tuple(name for name in VARIABLES if name in raws)
    return Opened(
        path, times[first], lat, lon, names, tuple(unused), lambda name, k: get(name, int(first[k]))
    )
