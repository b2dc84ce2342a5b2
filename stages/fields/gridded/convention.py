"""The one convention of gridded weather: names, units, axes, and what an opened file is.

Time UTC ascending, rows of latitude ascending (south to north, degrees north), columns of longitude
ascending in [-180, 180) (degrees east), float32 in the units of VARIABLES (m/s, Pa, K, share), NaN
where the file has no value. Variables go by name, never by their place in the file.
Shapes: n times, p latitudes, q longitudes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.units import KNOT_M_S


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
        "knots": (KNOT_M_S, 0),
        "knot": (KNOT_M_S, 0),
        "kt": (KNOT_M_S, 0),
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


def refuse(
    path: Path, what: str, expected: Any = "", found: Any = "", remedy: str = ""
) -> DataError:
    """A DataError about the file at `path`."""
    return DataError(what, where=str(path), expected=str(expected), found=str(found), remedy=remedy)


def unit_of(name: str, unit: str, where: Path) -> tuple[float, float]:
    """Factor and offset that bring `unit` to the variable's own. DataError for a unit that is
    not known for it."""
    words: Any = UNITS[VARIABLES[name].unit]
    if unit not in words:
        raise refuse(
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
        raise refuse(
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
            raise refuse(
                where,
                f"{word} is not evenly spaced in -180 to 180",
                "one positive step",
                f"steps from {step.min():g} to {step.max():g}",
                "interpolate it, or ask for an area off the date line",
            )
    return lat[rows], lon[columns], rows, columns
