"""Gridded weather as archives deliver it, GRIB 1/2 and NetCDF 3/4, read to one convention
(convention.py) or refused by name.

Numbers must be possible ones in the unit that a file states. GRIB needs eccodes and NetCDF-4 xarray
with an HDF5 reader (the extra `era5`); NetCDF-3 needs neither.
Shapes: n times, p latitudes, q longitudes.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.fields.gridded import grib, netcdf
from stages.fields.gridded.convention import VARIABLES, Grid, Opened

__all__ = ["VARIABLES", "Grid", "Opened", "open_grid", "read"]


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
        opened = grib.opened(path, messages)
    elif head[:3] == b"CDF":
        opened = netcdf.opened(path, netcdf.netcdf3(path))
    elif head == b"\x89HDF\r\n\x1a\n":
        opened = netcdf.opened(path, netcdf.netcdf4(path))
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
