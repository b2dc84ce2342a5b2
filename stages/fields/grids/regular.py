"""A field of weather as a grid that models read: axes by name, south to north, from the date line
eastwards, what is missing masked; else refused by name. How files are read: stages/fields/gridded.

Shapes: p latitudes, q longitudes.
"""

from pathlib import Path

import numpy as np
import torch

from stages.errors import DataError
from stages.fields.gridded.convention import axes
from stages.layers.grid import TURN, Grid

NAMES = {"latitude": "latitude", "lat": "latitude", "longitude": "longitude", "lon": "longitude"}


def regular(
    names: tuple[str, str], lat: np.ndarray, lon: np.ndarray, values: np.ndarray, where: Path
) -> Grid:
    """One field, its axes called `names` in the order of `values`: latitudes (p,) and longitudes
    (q,) in degrees, rows in any direction, longitudes from anywhere. The mask is False where a
    value is no finite number. DataError for other axes, for rows or columns that are missing or
    uneven, for a field of another shape, and for one without a value."""
    known = tuple(NAMES.get(name.lower(), "") for name in names)
    if sorted(known) != ["latitude", "longitude"]:
        raise DataError(
            "the axes of a field are not latitude and longitude",
            where=str(where),
            expected="latitude and longitude",
            found=", ".join(names),
            remedy="choose one level and one time, and interpolate projected grids",
        )
    field = np.asarray(values, dtype=np.float32)
    field = field.T if known[0] == "longitude" else field
    if field.shape != (len(lat), len(lon)):
        raise DataError(
            "a field has not as many rows and columns as its axes",
            where=str(where),
            expected=f"{len(lat)} latitudes, {len(lon)} longitudes",
            found=str(field.shape),
            remedy="a truncated file, or rows that were dropped",
        )
    north, east, rows, columns = axes(lat, lon, where)
    field = field[rows][:, columns]
    mask = np.isfinite(field)
    if not mask.any():
        raise DataError("a field has no value", where=str(where), found="no finite number")
    around = len(east) > 1 and abs(len(east) * float(np.diff(east).mean()) - TURN) < 0.01
    return Grid(
        (torch.from_numpy(north.astype(np.float32)), torch.from_numpy(east.astype(np.float32))),
        torch.from_numpy(np.where(mask, field, 0.0))[None, :, :, None],
        torch.from_numpy(mask)[None],
        around,
    )
