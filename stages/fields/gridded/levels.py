"""Fields on pressure levels of one or several members of an ensemble, GRIB 1 and 2, whole or
refused by name: grib.py walks the messages; here every one that is asked for is there once, in
metres per second, with a value at every node.

The axes are brought to the one convention (convention.py): latitudes and longitudes ascend. Times
are those that a field is valid for, whatever forecast it comes from.
Shapes: n times, m members, k levels, p latitudes, q longitudes.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stages.fields.gridded import grib
from stages.fields.gridded.convention import UNITS, axes, refuse

LEVEL = "isobaricInhPa"
FASTEST_M_S = 150.0
AGAIN = "fetch the file again, whole"
Key = tuple[str, int, int, np.datetime64]  # name, member, level, time


@dataclass(frozen=True)
class Winds:
    """Components on levels: values[name] (n, m, k, p, q) float32 in m/s; time (n,) datetime64,
    lat (p,) and lon (q,) degrees, ascending."""

    time: np.ndarray
    lat: np.ndarray
    lon: np.ndarray
    values: dict[str, np.ndarray]


@dataclass
class _Found:
    """Where the messages that are asked for stand in the file."""

    path: Path
    names: Sequence[str]
    grid: tuple[Any, ...] | None = None
    linear: dict[str, tuple[float, float]] = field(default_factory=dict)
    where: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def add(self, eccodes: Any, handle: Any, begin: int, length: int) -> None:
        """One message. DataError for another grid than before, a unit that is not known, and a
        field that is there already."""

        def get(key: str, kind: type | None = None) -> Any:
            return eccodes.codes_get(handle, key, *([kind] if kind else []))

        name = get("shortName")
        if name not in self.names or get("typeOfLevel") != LEVEL:
            return
        unit = get("units")
        known: Any = UNITS["m/s"]  # each with factor and offset
        if unit not in known:
            what = f"{name} has a unit that is not known for it"
            raise refuse(self.path, what, ", ".join(known), unit)
        found = grib._grib_axes(eccodes, handle)
        if self.grid not in (None, found) or not found[1]:
            what = "another grid than a regular one of latitude and longitude, or two of them"
            raise refuse(self.path, what, self.grid or "regular_ll", found)
        member = get("number", int) if eccodes.codes_is_defined(handle, "number") else 0
        key = (name, member, get("level", int), grib._grib_time(eccodes, handle))
        if key in self.where:
            raise refuse(self.path, f"{called(key)} is there twice", "one field each",
                         f"again at byte {begin}", AGAIN)  # fmt: skip
        factor, shift = known[unit]
        self.grid, self.linear[name] = found, (float(factor), float(shift))
        self.where[key] = (begin, length)


def called(key: Key) -> str:
    """'u at 500 hPa, 2016-02-07T06:00, member 0'."""
    name, member, level, time = key
    return f"{name} at {level} hPa, {time.astype('datetime64[m]')}, member {member}"


def read(path: Path, names: Sequence[str], levels: Sequence[int], members: Sequence[int]) -> Winds:
    """Of a file the components `names` on `levels` (hPa) of `members`, at every time that it has.

    DataError for a file that cannot be read, is cut short or damaged, lacks a level, a member or
    one field of them, has one twice, states another unit, has a node without a value, or a wind
    that cannot be; InputError without eccodes.
    """
    found = _Found(path, names)
    eccodes = grib._eccodes()
    try:
        for handle, begin, length in grib._walk(path):
            found.add(eccodes, handle, begin, length)
    except OSError as error:
        raise refuse(path, "a weather file cannot be read", "", type(error).__name__) from None
    lacking(found, names, levels, members)
    times = sorted({key[3] for key in found.where})
    assert found.grid is not None
    lat, lon, rows, columns = axes(
        np.linspace(*found.grid[3:5], found.grid[1]),
        np.linspace(*found.grid[5:7], found.grid[2]), path,
    )  # fmt: skip
    values = {}
    for name in names:
        parts = [
            one(found, (name, member, level, time))[np.ix_(rows, columns)]
            for time, member, level in itertools.product(times, members, levels)
        ]
        shape = (len(times), len(members), len(levels), len(lat), len(lon))
        values[name] = np.stack(parts).reshape(shape)
    return Winds(np.array(times), lat, lon, values)


def lacking(
    found: _Found, names: Sequence[str], levels: Sequence[int], members: Sequence[int]
) -> None:
    """DataError where a component, a level, a member or a single field is missing."""
    keys = found.where.keys()
    for word, asked, place in (("component", names, 0), ("level", levels, 2),
                               ("member", members, 1)):  # fmt: skip
        known = sorted({key[place] for key in keys})
        if absent := [one for one in asked if one not in known]:
            unit = " hPa" if word == "level" else ""
            raise refuse(found.path, f"a {word} is missing",
                         ", ".join(f"{one}{unit}" for one in absent),
                         ", ".join(map(str, known)) or "none", AGAIN)  # fmt: skip
    times = sorted({key[3] for key in keys})
    whole = [*itertools.product(names, members, levels, times)]
    if single := [key for key in whole if key not in keys]:
        lost = f"{len(single)} are not there, the first {called(single[0])}"
        raise refuse(found.path, "a field is missing", f"{len(whole)} fields", lost, AGAIN)


def one(found: _Found, key: Key) -> np.ndarray:
    """A field as the file has it (p, q). DataError for a node without a value or a wind that
    cannot be."""
    assert found.grid is not None
    values = grib._message(found.path, *found.where[key], found.linear[key[0]], found.grid[1:3])
    if holes := int((~np.isfinite(values)).sum()):
        raise refuse(found.path, f"a node has no value: {called(key)}", "a value at every node",
                     f"{holes} of {values.size} without one", AGAIN)  # fmt: skip
    if np.abs(values).max() > FASTEST_M_S:
        raise refuse(found.path, f"a wind that cannot be: {called(key)}",
                     f"at most {FASTEST_M_S:g} m/s", f"{np.abs(values).max():g}",
                     "the unit that the file states is wrong, or the file is damaged")  # fmt: skip
    return values
