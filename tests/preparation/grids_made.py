"""A small field of wind and what a grid read from a file of it must hold."""

import numpy as np

LAT, LON = (
    np.array([50.0, 48.0, 46.0]),
    np.array([352.0, 354.0, 356.0, 358.0, 0.0, 2.0]),
)  # as archives have them, across Greenwich
WIND = np.arange(18.0).reshape(3, 6) - 5  # first row is the northernmost


def written(folder, *parts, name="some.grib"):
    (folder / name).write_bytes(b"".join(parts))
    return folder / name


def same(grid, values=WIND, name="u100") -> bool:
    """Whether it is the file's content in the convention: south to north, from west to east over
    Greenwich."""
    placed = grid.lat.tolist() == [46.0, 48.0, 50.0] and grid.lon.tolist() == [
        -8.0,
        -6.0,
        -4.0,
        -2.0,
        0.0,
        2.0,
    ]
    return placed and np.allclose(
        grid.values[name][0], values[::-1], rtol=1e-7, atol=2e-5, equal_nan=True
    )
