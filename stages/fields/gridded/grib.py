"""GRIB 1 and 2, walked from message to message: every byte belongs to a whole message or is zero
padding (readers open a file cut short without a word). Needs eccodes.

Shapes: p latitudes, q longitudes.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import InputError
from stages.fields.gridded.convention import EXTRA, NAMES, VARIABLES, Opened, axes, refuse, unit_of

LEVELS = ("surface", "heightAboveGround", "entireAtmosphere", "atmosphere")
PADDING = 120  # archives fill a message up to a multiple of as many bytes
NO_VALUE = 1e20


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
                raise refuse(
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
                raise refuse(
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

    def get(key):
        return eccodes.codes_get(handle, key) if eccodes.codes_is_defined(handle, key) else None

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

    def get(key):
        return eccodes.codes_get(handle, key)

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
    day = f"{date // 10000:04d}-{date // 100 % 100:02d}-{date % 100:02d}"
    return np.datetime64(f"{day}T{clock // 100:02d}:{clock % 100:02d}", "ns")


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
        raise refuse(
            path,
            "a GRIB message cannot be decoded",
            "",
            f"at byte {begin}: {error}",
            "fetch the file again",
        ) from None
    finally:
        eccodes.codes_release(handle)
    if values.size != shape[0] * shape[1]:
        raise refuse(
            path, "a GRIB message has another number of values than its grid", shape, values.size
        )
    return (
        np.where(values == NO_VALUE, np.nan, values * linear[0] + linear[1])
        .astype(np.float32)
        .reshape(shape)
    )


@dataclass
class _Found:
    """What a file's messages say, gathered one by one."""

    path: Path
    grid: tuple[Any, ...] | None = None
    where: dict[tuple[str, np.datetime64], tuple[int, int]] = field(default_factory=dict)
    linear: dict[str, tuple[float, float]] = field(default_factory=dict)
    unused: set[str] = field(default_factory=set)
    count: int = 0

    def add(self, eccodes, handle, begin: int, length: int) -> None:
        """One message. DataError for another grid or unit than before, or another field of a time
        that is there."""
        self.count += 1
        try:
            name, called = _named(eccodes, handle)
            if name is None:
                self.unused.add(called)
                return
            found, unit, time = (
                _grib_axes(eccodes, handle),
                eccodes.codes_get(handle, "units"),
                _grib_time(eccodes, handle),
            )
        except (eccodes.CodesInternalError, ValueError) as error:
            raise refuse(
                self.path,
                "a GRIB message does not say what it holds",
                "",
                f"at byte {begin}: {error}",
                "fetch the file again",
            ) from None
        if self.grid not in (None, found) or not found[1]:
            raise refuse(
                self.path,
                "another grid than a regular one of latitude and longitude, or two of them",
                self.grid or "regular_ll",
                found,
            )
        self.grid = found
        new = unit_of(name, unit, self.path)
        if self.linear.setdefault(name, new) != new:
            raise refuse(self.path, f"{name} has two units")
        self.place(name, time, begin, length)

    def place(self, name: str, time: np.datetime64, begin: int, length: int) -> None:
        """Note where a field stands. DataError where the time has it already, with other values."""
        key = name, time
        if key in self.where:
            first, again = (
                _message(self.path, *at, self.linear[name], self.grid[1:3])
                for at in (self.where[key], (begin, length))
            )
            if not np.array_equal(first, again, equal_nan=True):
                raise refuse(
                    self.path,
                    f"{name} is there twice with different values",
                    "one field a time",
                    f"{time} again at byte {begin}",
                    "keep one member of an ensemble, and one version of a time",
                )
        self.where.setdefault(key, (begin, length))

    def times(self, names: tuple[str, ...]) -> np.ndarray:
        """All times, ascending. DataError where one lacks a field that others have."""
        times = np.array(sorted({time for _, time in self.where}), "datetime64[ns]")
        fields = [(name, time) for time in times for name in names]
        if lost := [f"{name} at {time}" for name, time in fields if (name, time) not in self.where]:
            raise refuse(
                self.path,
                "a field is missing",
                f"{len(names) * len(times)} fields",
                f"{len(lost)} are not there, the first {lost[0]}",
            )
        return times


def opened(path: Path, messages: int | None) -> Opened:
    """Look through a GRIB file; `messages`: how many it must have. DataError for a file that is
    damaged, short of a field, or of another grid or unit; InputError without eccodes."""
    eccodes, found = _eccodes(), _Found(path)
    for handle, begin, length in _walk(path):
        found.add(eccodes, handle, begin, length)
    if messages not in (None, found.count):
        raise refuse(
            path,
            "the file has another number of GRIB messages than was counted",
            messages,
            found.count,
            "fetch the file again",
        )
    names = tuple(name for name in VARIABLES if name in found.linear)
    times, unused, grid = found.times(names), tuple(sorted(found.unused)), found.grid
    if grid is None:
        none = np.empty(0)
        return Opened(path, times, none, none, (), unused, lambda name, k: none)
    lat, lon, rows, columns = axes(
        np.linspace(*grid[3:5], grid[1]), np.linspace(*grid[5:7], grid[2]), path
    )

    def get(name: str, k: int) -> np.ndarray:
        at = found.where[name, times[k]]
        values = _message(path, *at, found.linear[name], grid[1:3])
        return values[np.ix_(rows, columns)]

    return Opened(path, times, lat, lon, names, unused, get)
