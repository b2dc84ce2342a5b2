"""Gridded weather as archives deliver it, GRIB 1/2 and NetCDF 3/4, read to one convention or
refused by name.

The convention: time UTC ascending, rows of latitude ascending (south to north, degrees north),
columns of longitude ascending in [-180, 180) (degrees east), float32 in the units of VARIABLES
(m/s, Pa, K, share), NaN where the file has no value. Variables go by name, never by their place in
the file, and their numbers must be possible ones in the stated unit. A GRIB file is first walked
from message to message: every byte belongs to a whole message or is zero padding (readers open a
file cut short without a word). GRIB needs eccodes and NetCDF-4 xarray with an HDF5 reader (the
extra `era5`); NetCDF-3 needs neither.
Shapes: n times, p latitudes, q longitudes.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError, InputError


@dataclass(frozen=True)
class Variable:
    """What a variable is called in files, the unit it gets here, and the values that are
    possible in it."""

    aliases: tuple[str, ...]
    unit: str
    low: float
    high: float
    height_m: int = 0


def _wind(axis: str, height: int) -> Variable:
    other = (
        f"{height}{axis}",
        f"{height}m_{axis}_component_of_wind",
        f"{axis}_component_of_{height}m_wind",
    )
    return Variable(other, "m/s", -150.0, 150.0, height)


VARIABLES = {
    "u10": _wind("u", 10),
    "v10": _wind("v", 10),
    "u100": _wind("u", 100),
    "v100": _wind("v", 100),
    "sp": Variable(("surface_pressure",), "Pa", 3e4, 1.2e5),
    "t2m": Variable(("2t", "2m_temperature"), "K", 150.0, 350.0, 2),
    "tcc": Variable(("total_cloud_cover",), "1", -0.02, 1.02),
    "d2m": Variable(("2d", "2m_dewpoint_temperature"), "K", 100.0, 350.0, 2),
    "skt": Variable(("skin_temperature",), "K", 120.0, 400.0),
}
NAMES = {alias: name for name, variable in VARIABLES.items() for alias in (name, *variable.aliases)}
UNITS = {  # unit -> words for it, each with factor and offset to that unit
    "m/s": {
        "m s**-1": (1, 0),
        "m s-1": (1, 0),
        "m/s": (1, 0),
        "knots": (1852 / 3600, 0),
        "knot": (1852 / 3600, 0),
        "kt": (1852 / 3600, 0),
    },
    "Pa": {
        "Pa": (1, 0),
        "hPa": (100, 0),
        "mbar": (100, 0),
        "millibar": (100, 0),
        "millibars": (100, 0),
    },
    "K": {
        "K": (1, 0),
        "kelvin": (1, 0),
        "degC": (1, 273.15),
        "celsius": (1, 273.15),
        "degrees_Celsius": (1, 273.15),
    },
    "1": {
        "(0 - 1)": (1, 0),
        "0 - 1": (1, 0),
        "1": (1, 0),
        "dimensionless": (1, 0),
        "%": (0.01, 0),
        "percent": (0.01, 0),
    },
}
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
LEVELS = ("surface", "heightAboveGround", "entireAtmosphere", "atmosphere")
PADDING = 120  # archives fill a message up to a multiple of as many bytes
NO_VALUE = 1e20
EXTRA = "pip install 'tradewind[era5]'"


@dataclass(frozen=True)
class Grid:
    """One file, whole. values[name] (n, p, q) float32 in units[name]; time (n,) datetime64[ns];
    lat (p,), lon (q,) degrees."""

    time: np.ndarray
    lat: np.ndarray
    lon: np.ndarray
    values: dict[str, np.ndarray]
    units: dict[str, str]


@dataclass(frozen=True)
class Opened:
    """One file whose fields are read one by one: `field(name, k)` is (p, q) float32 of variable
    `name` at time[k]."""

    path: Path
    time: np.ndarray
    lat: np.ndarray
    lon: np.ndarray
    names: tuple[str, ...]
    unused: tuple[str, ...]
    get: Callable[[str, int], np.ndarray] = field(repr=False)

    def field(self, name: str, k: int) -> np.ndarray:
        """(p, q) float32, NaN where there is no value. DataError where a number cannot be one of
        that variable in its unit."""
        values, variable = self.get(name, k), VARIABLES[name]
        some = values[np.isfinite(values)]
        if some.size and not variable.low <= some.min() <= some.max() <= variable.high:
            raise DataError(
                "values that the variable cannot have in its unit",
                where=f"{self.path.name}: {name} at {self.time[k]:s}Z",
                expected=f"{variable.low:g} to {variable.high:g} {variable.unit}",
                found=f"{some.min():g} to {some.max():g}",
                remedy="the unit that the file states is wrong, or the file is damaged",
            )
        return (
            np.clip(values, 0, 1) if variable.unit == "1" else values
        )  # packed shares pass 0 and 1 by a rounding


def read(
    path: str | Path, wanted: Iterable[str] | None = None, messages: int | None = None
) -> Grid:
    """The whole file, or the variables `wanted` of it. Raises as `open_grid`."""
    source = open_grid(path, wanted, messages)
    values = {
        name: np.stack([source.field(name, k) for k in range(len(source.time))])
        for name in source.names
    }
    return Grid(
        source.time,
        source.lat,
        source.lon,
        values,
        {name: VARIABLES[name].unit for name in source.names},
    )


def open_grid(
    path: str | Path, wanted: Iterable[str] | None = None, messages: int | None = None
) -> Opened:
    """Look through a file and normalise its axes; fields are read later.

    `wanted` must all be there (else all known variables that are). `messages`: how many a GRIB file
    must have.
    DataError for a file that is damaged, short of a field, or of another grid, unit or calendar;
    InputError where the extra is missing.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise DataError(
            "a weather file cannot be read", where=str(path), found=type(error).__name__
        ) from None
    if head[:4] == b"GRIB":
        opened = _grib(path, messages)
    elif head[:3] == b"CDF":
        opened = _cf(path, _netcdf3(path))
    elif head == b"\x89HDF\r\n\x1a\n":
        opened = _cf(path, netcdf4(path))
    else:
        raise DataError(
            "neither GRIB nor NetCDF",
            where=str(path),
            found=f"a file that begins with {head!r}",
            remedy="unpack it first, if it is an archive",
        )
    missing = sorted(set(wanted or ()) - set(opened.names))
    if missing or not opened.names:
        raise DataError(
            "a variable is missing",
            where=str(path),
            expected=", ".join(missing or VARIABLES),
            found=", ".join((*opened.names, *opened.unused)) or "nothing",
        )
    return opened


def _refuse(
    path: Path, what: str, expected: Any = "", found: Any = "", remedy: str = ""
) -> DataError:
    return DataError(what, where=str(path), expected=str(expected), found=str(found), remedy=remedy)


def unit_of(name: str, unit: str, where: Path) -> tuple[float, float]:
    """Factor and offset that bring `unit` to the variable's own. DataError for a unit that is
    not known for it."""
    words = UNITS[VARIABLES[name].unit]
    if unit not in words:
        raise _refuse(
            where,
            f"{name} has a unit that is not known for it",
            ", ".join(words),
            unit or "no unit at all",
        )
    return words[unit]


def axes(
    lat: np.ndarray, lon: np.ndarray, where: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A grid's latitudes and longitudes in the convention, and the order of rows and columns that
    brings fields there.

    DataError unless both are evenly spaced, without repetition, and (longitude) without a tear at
    the date line.
    """
    lat = np.round(np.atleast_1d(lat).astype(np.float64), 5)
    lon = np.round((np.round(np.atleast_1d(lon).astype(np.float64), 5) + 180) % 360 - 180, 5)
    if not (
        np.isfinite(lat).all()
        and np.isfinite(lon).all()
        and lat.size
        and lon.size
        and np.abs(lat).max() <= 90
    ):
        raise _refuse(
            where,
            "latitudes or longitudes are no positions",
            "degrees",
            f"{lat.size} and {lon.size} of them",
        )
    rows, columns = np.argsort(lat, kind="stable"), np.argsort(lon, kind="stable")
    for word, axis in (("latitude", lat[rows]), ("longitude", lon[columns])):
        step = np.diff(axis)
        if step.size and (
            step.min() <= 0 or step.max() - step.min() > 2e-3 + 1e-3 * step.mean()
        ):  # GRIB 1 rounds to 0.001 degrees
            raise _refuse(
                where,
                f"{word} is not evenly spaced in -180 to 180",
                "one positive step",
                f"steps from {step.min():g} to {step.max():g}",
                "interpolate it, or ask for an area off the date line",
            )
    return lat[rows], lon[columns], rows, columns


def _eccodes():
    try:
        import eccodes
    except (ImportError, RuntimeError):  # the latter: the binary library is not found
        raise InputError("GRIB cannot be read without eccodes", remedy=EXTRA) from None
    return eccodes


def _walk(path: Path):
    """Each message of a GRIB file as (handle, offset, bytes), the handle valid until the next.
    DataError for a byte out of place."""
    eccodes, end, count, size = _eccodes(), 0, 0, path.stat().st_size
    with path.open("rb") as stream, path.open("rb") as beside:
        while True:
            try:
                handle = eccodes.codes_grib_new_from_file(stream)
            except eccodes.CodesInternalError as error:
                raise _refuse(
                    path,
                    "a GRIB message is cut short or damaged",
                    "whole messages up to the file's end",
                    f"{count} whole messages in the first {end} of {size} bytes, then: {error}",
                    "fetch the file again",
                ) from None
            begin = int(eccodes.codes_get(handle, "offset")) if handle is not None else size
            beside.seek(end)
            between = beside.read(min(begin - end, PADDING + 1))
            if begin - end >= PADDING or between.strip(b"\0"):
                raise _refuse(
                    path,
                    "bytes of a GRIB file belong to no message",
                    "whole messages, one after the other",
                    f"{begin - end} bytes after message {count}",
                    "fetch the file again",
                )
            if handle is None:
                return
            try:
                end, count = begin + int(eccodes.codes_get(handle, "totalLength")), count + 1
                yield handle, begin, end - begin
            finally:
                eccodes.codes_release(handle)


def _named(eccodes, handle) -> tuple[str | None, str]:
    """Which of VARIABLES a message holds (None: none of them) and what to call it."""
    get = lambda key: (
        eccodes.codes_get(handle, key) if eccodes.codes_is_defined(handle, key) else None
    )  # noqa: E731
    short, level = get("shortName"), get("typeOfLevel")
    name = NAMES.get(get("cfVarName"), NAMES.get(short))
    high = get("level") if level == "heightAboveGround" else None
    fits = (
        name
        and level in LEVELS
        and get("startStep") == get("endStep")
        and high in (None, VARIABLES[name].height_m)
    )
    return (name if fits else None), f"{short} at {level}"


def _grib_axes(eccodes, handle) -> tuple[Any, ...]:
    """What decides a message's grid; only a regular latitude-longitude one, row by row, is
    known."""
    get = lambda key: eccodes.codes_get(handle, key)  # noqa: E731
    kind = get("gridType")
    if kind != "regular_ll" or get("jPointsAreConsecutive") or get("alternativeRowScanning"):
        return kind, 0, 0, 0.0, 0.0, 0.0, 0.0
    ends = [
        f"{axis}Of{end}GridPointInDegrees"
        for axis in ("latitude", "longitude")
        for end in ("First", "Last")
    ]
    west = bool(get("iScansNegatively"))
    first, last = get(ends[2]), get(ends[3])
    span = (first - last if west else last - first) % 360
    return (
        kind,
        get("Nj"),
        get("Ni"),
        get(ends[0]),
        get(ends[1]),
        first,
        first + (-span if west else span),
    )


def _grib_time(eccodes, handle) -> np.datetime64:
    date, clock = (eccodes.codes_get(handle, key, int) for key in ("validityDate", "validityTime"))
    return np.datetime64(
        f"{date // 10000:04d}-{date // 100 % 100:02d}-{date % 100:02d}T{clock // 100:02d}:{clock % 100:02d}",
        "ns",
    )


def _message(
    path: Path, begin: int, length: int, linear: tuple[float, float], shape: tuple[int, int]
) -> np.ndarray:
    """One message's numbers as its grid has them, float32, NaN where its bitmap has no value."""
    eccodes = _eccodes()
    with path.open("rb") as stream:
        stream.seek(begin)
        handle = eccodes.codes_new_from_message(stream.read(length))
    try:
        eccodes.codes_set(handle, "missingValue", NO_VALUE)
        values = eccodes.codes_get_values(handle)
    except eccodes.CodesInternalError as error:
        raise _refuse(
            path,
            "a GRIB message cannot be decoded",
            "",
            f"at byte {begin}: {error}",
            "fetch the file again",
        ) from None
    finally:
        eccodes.codes_release(handle)
    if values.size != shape[0] * shape[1]:
        raise _refuse(
            path, "a GRIB message has another number of values than its grid", shape, values.size
        )
    return (
        np.where(values == NO_VALUE, np.nan, values * linear[0] + linear[1])
        .astype(np.float32)
        .reshape(shape)
    )


def _grib(path: Path, messages: int | None) -> Opened:
    eccodes, grid, where, linear, unused, count = _eccodes(), None, {}, {}, set(), 0
    for handle, begin, length in _walk(path):
        count += 1
        try:
            name, called = _named(eccodes, handle)
            if name is None:
                unused.add(called)
                continue
            found, unit, time = (
                _grib_axes(eccodes, handle),
                eccodes.codes_get(handle, "units"),
                _grib_time(eccodes, handle),
            )
        except (eccodes.CodesInternalError, ValueError) as error:
            raise _refuse(
                path,
                "a GRIB message does not say what it holds",
                "",
                f"at byte {begin}: {error}",
                "fetch the file again",
            ) from None
        if grid not in (None, found) or not found[1]:
            raise _refuse(
                path,
                "another grid than a regular one of latitude and longitude, or two of them",
                grid or "regular_ll",
                found,
            )
        grid = found
        if linear.setdefault(name, new := unit_of(name, unit, path)) != new:
            raise _refuse(path, f"{name} has two units")
        key = name, time
        if key in where:
            pair = [
                _message(path, *at, linear[name], grid[1:3]) for at in (where[key], (begin, length))
            ]
            if not np.array_equal(*pair, equal_nan=True):
                raise _refuse(
                    path,
                    f"{name} is there twice with different values",
                    "one field a time",
                    f"{key[1]} again at byte {begin}",
                    "keep one member of an ensemble, and one version of a time",
                )
        where.setdefault(key, (begin, length))
    if messages not in (None, count):
        raise _refuse(
            path,
            "the file has another number of GRIB messages than was counted",
            messages,
            count,
            "fetch the file again",
        )
    names = tuple(name for name in VARIABLES if name in linear)
    times = np.array(sorted({time for _, time in where}), "datetime64[ns]")
    if lost := [
        f"{name} at {time}" for time in times for name in names if (name, time) not in where
    ]:
        raise _refuse(
            path,
            "a field is missing",
            f"{len(names) * len(times)} fields",
            f"{len(lost)} are not there, the first {lost[0]}",
        )
    if grid is None:
        return Opened(
            path,
            times,
            np.empty(0),
            np.empty(0),
            (),
            tuple(sorted(unused)),
            lambda name, k: np.empty(0),
        )
    lat, lon, rows, columns = axes(
        np.linspace(*grid[3:5], grid[1]), np.linspace(*grid[5:7], grid[2]), path
    )
    get = lambda name, k: _message(path, *where[name, times[k]], linear[name], grid[1:3])[
        np.ix_(rows, columns)
    ]  # noqa: E731
    return Opened(path, times, lat, lon, names, tuple(sorted(unused)), get)


@dataclass(frozen=True)
class _Raw:
    """A NetCDF variable as stored: its dimensions, attributes, and numbers that can be indexed."""

    dims: tuple[str, ...]
    attributes: dict[str, Any]
    numbers: Any


def _netcdf3(path: Path) -> dict[str, _Raw]:
    from scipy.io import netcdf_file

    try:
        with netcdf_file(path, "r", mmap=False, maskandscale=False) as stored:
            return {
                name: _Raw(tuple(raw.dimensions), dict(raw._attributes), raw.data)
                for name, raw in stored.variables.items()
            }
    except Exception as error:  # scipy meets a damaged header with whatever its bytes lead to
        found = f"{type(error).__name__}: {error}"
        raise _refuse(
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
        raise _refuse(path, "a NetCDF file is damaged", "", error, "fetch the file again") from None
    except Exception as error:  # HDF5 readers have error classes of their own
        raise _refuse(
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
        raise _refuse(path, "times that are not understood", expected, f"{words!r}, {calendar!r}")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[1:])
    since = np.atleast_1d(_decoded(raw, raw.numbers[...]))
    try:
        start = np.datetime64(
            f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}", "s"
        )
    except ValueError:
        raise _refuse(path, "times that are not understood", "a date", words) from None
    if not (np.isfinite(since).all() and np.abs(since * SECONDS[match[1]]).max(initial=0) < 9e9):
        raise _refuse(path, "times are missing or out of reach", "finite numbers", words)
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
            raise _refuse(
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
        raise _refuse(path, f"no coordinate of {axis}, or several", expected, ", ".join(variables))
    return found[0]


def _cf(path: Path, variables: dict[str, _Raw]) -> Opened:
    raws, linear, unused = {}, {}, []
    for stored, raw in variables.items():
        name, kinds = NAMES.get(stored), {AXES.get(dim) for dim in raw.dims}
        if name and kinds <= set(AXES.values()) and {"lat", "lon"} <= kinds:
            if name in raws:
                raise _refuse(path, f"{name} is there under two names", stored)
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
            raise _refuse(
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
            raise _refuse(
                path,
                f"{bad[0]} is there twice with different values",
                "one field a time",
                f"{times[again]} again",
            )
    names = tuple(name for name in VARIABLES if name in raws)
    return Opened(
        path, times[first], lat, lon, names, tuple(unused), lambda name, k: get(name, int(first[k]))
    )
