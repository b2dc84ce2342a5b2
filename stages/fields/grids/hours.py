"""Maps of one real hour: above, the grid as it was given and the present as it was; then of each
model what it answers, how far it spreads, and its z-scores: by how many of its standard deviations
the present lies above the answer. Points are dots, kelvin, plain latitude and longitude."""

from typing import Any

import numpy as np

from stages.fields.grids.tables import called
from stages.figures import coast
from stages.figures.drawing import plt

WIDE = 4.0  # standard deviations: where the colours of z-scores end


def maps(told: dict[str, np.ndarray], named: dict[str, str], scale: float, origin: float) -> Any:
    """The figure; `named` a model's arm -> its cell, values of 1 are `scale` K about `origin`."""
    lat, lon = told["lat"], told["lon"]
    shape, extent = (len(lat), len(lon)), (lon[0], lon[-1], lat[0], lat[-1])
    stamps = [f"{np.datetime64(int(one), 'h')}:00" for one in told["stamps"]]
    rows = 1 + len(named)
    figure, panels = plt.subplots(rows, 3, figsize=(12.5, 2.8 * rows), layout="constrained",
                                  sharex=True, sharey=True)  # fmt: skip
    field = origin + scale * told["field"].reshape(shape)
    low, high = float(field.min()), float(field.max())
    north, east = (np.unique(told["cells"][:, axis]) for axis in (0, 1))
    known = origin + scale * told["grid_y"].reshape(len(north), len(east))
    block = (len(lat) // len(north), len(lon) // len(east))
    whole = np.repeat(np.repeat(known, block[0], 0), block[1], 1)
    grid = np.full(shape, np.nan)
    grid[: len(whole), : whole.shape[1]] = whole
    most = max(float(scale * told[f"{cell}.sd"].max()) for cell in named.values())
    pictures = [(f"grid of {stamps[1]} UTC [K]", grid, "RdYlBu_r", low, high),
                (f"present, {stamps[0]} UTC [K]", field, "RdYlBu_r", low, high),
                ("what the grid lacks: present minus grid [K]", field - grid, "PuOr_r", -6.0, 6.0),
                ]  # fmt: skip
    for arm, cell in named.items():
        mean, sd = (told[f"{cell}.{part}"].reshape(shape) for part in ("mean", "sd"))
        pictures += [(f"{called(arm)}: answer [K]", origin + scale * mean, "RdYlBu_r", low, high),
                     ("its spread [K]", scale * sd, "viridis", 0.0, most),
                     ("its z-scores", (field - origin - scale * mean) / (scale * sd), "PuOr_r",
                      -WIDE, WIDE)]  # fmt: skip
    middle = lat.mean(), lon.mean()
    points = told["context_x"] / np.array([1.0, np.cos(np.radians(middle[0]))]) + middle
    for panel, (title, values, colours, least, top) in zip(panels.flat, pictures, strict=True):
        image = panel.imshow(values, origin="lower", extent=extent, cmap=colours, vmin=least,
                             vmax=top, aspect=1 / np.cos(np.radians(middle[0])))  # fmt: skip
        figure.colorbar(image, ax=panel, shrink=0.9)
        panel.plot(points[:, 1], points[:, 0], ".", ms=4, color="black")
        coast.draw(panel)
        panel.set_title(title, fontsize=9)
        panel.grid(False)
    for panel in panels[:, 0]:
        panel.set_ylabel("latitude [°]")
    for panel in panels[-1]:
        panel.set_xlabel("longitude [°]")
    return figure
