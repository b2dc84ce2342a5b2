"""A nowcast as NetCDF 3 by the CF conventions 1.11: a discrete sampling geometry of points.

A row of the table is an observation along `obs`; every variable has its unit and, where the
conventions know one, its standard name. Times are Unix seconds; altitudes are pressure altitudes.
"""

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
FILL = 9.969209968386869e36  # of NetCDF's doubles


def write(table: pl.DataFrame, about: dict[str, Any], stream: BytesIO) -> None:
    """Write the rows of a nowcast's table (answers.table) and what holds for all of them."""
    held = BytesIO()
    file = netcdf_file(held, "w", version=2)
    file.Conventions, file.featureType = "CF-1.11", "point"
    file.title = "wind nowcast"
    file.source = f"tradewind, model {about['model']}, lead {about['lead_s']:g} s"
    file.comment = f"spread: {about['spread']}"
    file.createDimension("obs", len(table))
    moments = table["time"].str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us")
    time = moments.dt.epoch("us").to_numpy() / 1e6
    add(file, "time", time, ("seconds since 1970-01-01 00:00:00 UTC", "time", "time"))
    for column, (name, *words) in VARIABLES.items():
        values = table[column].fill_null(FILL).to_numpy()
        add(file, name, values, (words[0], words[1], words[2]))
        if name not in ("lat", "lon", "alt"):
            file.variables[name].coordinates = "time lat lon alt"
    file.flush()
    stream.write(held.getvalue())


def add(file: Any, name: str, values: np.ndarray, words: tuple[str, str, str]) -> None:
    """One variable (N,) along `obs`, float64, with its unit, standard name and long name."""
    variable = file.createVariable(name, "f8", ("obs",))
    variable[:] = values
    variable.units, standard, variable.long_name = words
    if standard:
        variable.standard_name = standard
    variable._FillValue = FILL
