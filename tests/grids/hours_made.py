"""A small month of real hours, as an archive's file holds it."""

import numpy as np
from scipy.io import netcdf_file

from stages import seeds

LAT, LON = np.linspace(58.0, 55.75, 10), np.linspace(-4.0, -1.25, 12)  # from north, as archives
HOURS = 110


def air(hours=HOURS):
    """Kelvin (hours, rows, columns): a warm south, a day, weather that moves."""
    rng = seeds.stream(0, "real hours")
    day = 3 * np.sin(2 * np.pi * np.arange(hours) / 24)[:, None, None]
    walk = np.cumsum(0.3 * rng.standard_normal((hours, 1, 1)), 0)
    place = 280 - LAT[:, None] + 54 + 0.2 * rng.standard_normal((10, 12))
    return place + day + walk + 0.1 * rng.standard_normal((hours, 10, 12))


def written(folder, values, lon=LON, hours=None, names=("time", "latitude", "longitude"), lat=LAT):
    """A NetCDF-3 file in a raw folder."""
    folder.mkdir(exist_ok=True)
    hours = np.arange(len(values)) if hours is None else hours
    units = ("hours since 2019-03-01 00:00:00", "degrees_north", "degrees_east")
    with netcdf_file(folder / "hours.nc", "w") as file:
        for name, axis, unit in zip(names, (hours, lat, lon), units, strict=True):
            file.createDimension(name, len(axis))
            stored = file.createVariable(name, "f8", (name,))
            stored[:], stored.units = axis, unit
        stored = file.createVariable("t2m", "f8", names)
        stored[:], stored.units = values, "K"
    return folder
