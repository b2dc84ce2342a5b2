"""What `tradewind init` saw of a file: its kind, its columns, and what it has to say of them.

Units are those of the known formats, or what a column's name says; a column's span is of its
numbers alone, and a value that is no number (NaN) is missing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

SUFFIXES = {
    "_m_s": "m/s",
    "_kn": "kn",
    "_kt": "kn",
    "_deg": "degrees",
    "_ft": "ft",
    "_km": "km",
    "_m": "m",
    "_ms": "ms",
    "_s": "s",
    "_k": "K",
}
PUBLISHED = {  # of meteo-particle's tables (data/README.md, notes W1 and W2) and SkySoft's
    "ts": "Unix s",
    "lat": "degrees",
    "lon": "degrees",
    "alt": "ft",
    "vwx": "m/s towards east",
    "vwy": "m/s towards north",
    "gs_adsb": "kn",
    "trk_adsb": "degrees true",
    "hdg": "degrees magnetic",
    "ias": "kn",
    "mach": "Mach",
    "trk": "degrees true",
    "gs": "kn",
    "tas": "kn",
    "LAT": "degrees",
    "LONG": "degrees",
    "TRACK_ALTITUDE": "flight levels",
    "UNIX_TIME": "s of the day",
    "WIND_SPEED": "kn",
    "WIND_ORIGIN_ANGLE_DEG": "degrees, blowing from",
}


@dataclass(frozen=True)
class Column:
    """One column or array: its unit ('' where nothing tells it), its span, its missing values."""

    name: str
    unit: str
    low: str
    high: str
    missing: int = 0


@dataclass(frozen=True)
class Look:
    """What was seen: kind is frames, states, winds, text, sets, sequences, arrays, grid
    (netCDF, HDF5, GRIB), JSON or table; span_s the first and last Unix second (or second of a
    beginning of the file's own), where there are times."""

    kind: str
    rows: int
    columns: tuple[Column, ...] = ()
    span_s: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def unit(name: str) -> str:
    """The unit that a column's name tells, '' where it tells none."""
    known = {"ts_s": "Unix s", "ts_ms": "Unix ms"} | PUBLISHED
    known |= {"latitude": "degrees", "longitude": "degrees", "flight_level": "flight levels"}
    ends = next((u for end, u in SUFFIXES.items() if name.lower().endswith(end)), "")
    return known.get(name, ends)


def column(name: str, array: Any, told: str = "") -> Column:
    """An array as a column: its shape and kind beside its name, and its span."""
    called = f"{name} {'x'.join(map(str, array.shape)) or 'one'} {array.dtype}"
    if array.dtype.kind not in "iuf" or not array.size:
        return Column(called, told or unit(name), "", "")
    finite = array[~np.isnan(array)] if array.dtype.kind == "f" else array
    missing = int(array.size - finite.size)
    if not finite.size:
        return Column(called, told or unit(name), "", "", missing)
    low, high = f"{finite.min():.7g}", f"{finite.max():.7g}"
    return Column(called, told or unit(name), low, high, missing)
