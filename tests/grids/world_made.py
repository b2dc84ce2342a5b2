"""A small globe, as an archive's file holds it: 5 degrees, from north and from Greenwich."""

import numpy as np
from hours_made import written

from stages import seeds

STEP = 5.0
LAT, LON = np.arange(90.0, -91.0, -STEP), np.arange(0.0, 360.0, STEP)  # 37, 72
MADE = {"seed": 0, "process": "world", "axes": 2, "block": 3, "window_deg": 40.0,
        "strips_deg": {"train": ((-150.0, -60.0),), "val": ((-50.0, 20.0),),
                       "test": ((30.0, 90.0), (150.0, 200.0))},
        "context": 12, "targets": 20, "val": 8, "test": 16, "points": 60}  # fmt: skip


def air():
    """Kelvin (1, rows, columns): cold poles of one value, waves around."""
    rng = seeds.stream(0, "world")
    north, east = np.radians(LAT)[:, None], np.radians(LON)
    found = 250 + 45 * np.cos(north) + 6 * np.cos(north) * np.sin(2 * east + 1)
    found = found + 1.5 * np.cos(north) * rng.standard_normal((len(LAT), len(LON)))
    return found[None]


def filed(folder, values=None, lat=LAT, lon=LON, **more):
    """A NetCDF-3 file of it in a raw folder."""
    return written(folder, air() if values is None else values, lon=lon, lat=lat, **more)
