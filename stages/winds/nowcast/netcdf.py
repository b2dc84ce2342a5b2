"""A nowcast as NetCDF 3 by the CF conventions 1.11: a level asked for as a grid over altitude, lat
and lon, anything else as a discrete sampling geometry of points.

Of points a row of the table is an observation along `obs`. Every variable has its unit and, where
the conventions know one, its standard name. Times are Unix seconds; altitudes are pressure
altitudes.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import polars as pl
from scipy.io import netcdf_file

# column: (variable, unit, standard name or "", long name)
VARIABLES = {
    "lat_deg": ("lat", "degrees_north", "latitude", "latitude"),
    "lon_deg": ("lon", "degrees_east", "longitude", "longitude"),
    "alt_ft": ("alt", "ft", "barometric_altitude", "pressure altitude"),
    "u_m_s": ("u", "m s-1", "eastward_wind", "wind towards east"),
    "v_m_s": ("v", "m s-1", "northward_wind", "wind towards north"),
    "speed_m_s": ("speed", "m s-1", "wind_speed", "wind speed"),
    "from_deg": ("from", "degree", "wind_from_direction", "direction the wind comes from"),
    "u_spread_m_s": ("u_spread", "m s-1", "", "standard deviation of u"),
    "v_spread_m_s": ("v_spread", "m s-1", "", "standard deviation of v"),
    "nearest_km": ("nearest", "km", "", "distance to the nearest wind of the last slice known"),
}
AXES = {"altitude": ("alt_ft", "Z"), "lat": ("lat_deg", "Y"), "lon": ("lon_deg", "X")}  # of a grid
TIME = ("seconds since 1970-01-01 00:00:00 UTC", "time", "time")
FILL = 9.969209968386869e36  # of NetCDF's doubles


def write(
    table: pl.DataFrame, about: dict[str, Any], stream: BytesIO, gridded: bool = False
) -> None:
    """Write the rows of a nowcast's table (answers.table) and what holds for all of them;
    `gridded`: they are a level, row after row from south to north."""
    held = BytesIO()
    file = netcdf_file(held, "w", version=2)
    file.Conventions = "CF-1.11"
    file.title = "wind nowcast"
    file.source = f"tradewind, model {about['model']}, lead {about['lead_s']:g} s"
    file.comment = f"spread: {about['spread']}"
    moments = table["time"].str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us")
    time = moments.dt.epoch("us").to_numpy() / 1e6
    (_level if gridded else _points)(file, table, time)
    file.flush()
    stream.write(held.getvalue())


def _points(file: Any, table: pl.DataFrame, time: np.ndarray) -> None:
    file.featureType = "point"
    file.createDimension("obs", len(table))
    add(file, "time", time, TIME, ("obs",))
    for column, (name, *words) in VARIABLES.items():
        values = table[column].fill_null(FILL).to_numpy()
        add(file, name, values, words, ("obs",))
        if name not in ("lat", "lon", "alt"):
            file.variables[name].coordinates = "time lat lon alt"


def _level(file: Any, table: pl.DataFrame, time: np.ndarray) -> None:
    add(file, "time", time[0], TIME, ())
    shape = []
    for axis, (column, letter) in AXES.items():
        values = table[column].unique(maintain_order=True).to_numpy()
        shape.append(len(values))
        file.createDimension(axis, len(values))
        add(file, axis, values, VARIABLES[column][1:], (axis,))
        file.variables[axis].axis = letter
    file.variables["altitude"].positive = "up"
    for column, (name, *words) in VARIABLES.items():
        if column not in {place for place, _ in AXES.values()}:
            values = table[column].fill_null(FILL).to_numpy().reshape(shape)
            add(file, name, values, words, tuple(AXES))
            file.variables[name].coordinates = "time"


def add(
    file: Any, name: str, values: Any, words: Sequence[str], dimensions: tuple[str, ...]
) -> None:
    """One variable along these dimensions, float64, with its unit, standard name and long name."""
    variable = file.createVariable(name, "f8", dimensions)
    variable[...] = values
    variable.units, standard, variable.long_name = words
    if standard:
        variable.standard_name = standard
    if dimensions and name not in dimensions:  # a coordinate has no missing value
        variable._FillValue = FILL
