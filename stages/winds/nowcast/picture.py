"""A nowcast as a picture: arrows where it was asked, coloured by speed, over the spread.

A level on a grid is shaded by its wind speed, with contours of the spread; points are dots. Speeds
are told in knots.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.axes import Axes

from stages.figures.drawing import save
from stages.units import KNOT_M_S
from stages.winds.figures import HALO, arrow, map_axes
from stages.winds.nowcast.answers import Wind, table
from stages.winds.nowcast.refusals import iso

ARROWS = 24  # along the longer side of a grid; more cannot be told apart
LABELS = 20  # points that are told in figures, too; more hide each other


def draw(rows: list[Wind], path: Path) -> None:
    """Draw the winds of one call to a PNG."""
    found, first = table(rows), rows[0]
    lat, lon = (np.unique(found[name]) for name in ("lat_deg", "lon_deg"))
    figure, axes = plt.subplots(figsize=(8.5, 6.5), layout="constrained")
    whole = is_level(found)
    shown = shaded(axes, found, lat, lon) if whole else found
    speed = shown["speed_kn"].to_numpy()
    arrows = axes.quiver(
        *arrow(shown),
        *(() if whole else (speed,)),
        cmap="YlGnBu",
        scale=1600 if whole else 800,
        width=0.0025 if whole else 0.004,
        color="#333333" if whole else None,
        edgecolor="#333333",
        linewidth=0.0 if whole else 0.4,
    )
    axes.quiverkey(arrows, 0.92, -0.09, 50, "50 kn", labelpos="W", coordinates="axes")
    if not whole:
        figure.colorbar(arrows, ax=axes, label="wind speed [kn]", shrink=0.8)
        for row in rows if len(rows) <= LABELS else ():
            label(axes, row)
    times = sorted({row.point.ts_s for row in rows})
    levels = sorted({row.point.alt_ft for row in rows})
    axes.set_title(
        f"wind at {span([f'FL{feet / 100:.0f}' for feet in levels])}, "
        f"{span([iso(ts_s) for ts_s in times])}\n{first.model}, {first.lead_s / 60:g} min after "
        "the winds known"
    )
    map_axes(axes, *(np.array(edges(values)) for values in (lat, lon)))
    save(figure, path, shaded=True)


def is_level(found: pl.DataFrame) -> bool:
    """Whether rows are every place of a grid at one altitude and one time: what a shade between
    them may join."""
    lat, lon = (found[name].n_unique() for name in ("lat_deg", "lon_deg"))
    one = found["alt_ft"].n_unique() == found["time"].n_unique() == 1
    places = found.select("lat_deg", "lon_deg").n_unique()
    return one and lat > 1 < lon and len(found) == places == lat * lon


def shaded(axes: Axes, found: pl.DataFrame, lat: np.ndarray, lon: np.ndarray) -> pl.DataFrame:
    """Shade a level by its speed, with contours of its spread where it is known; the rows that get
    an arrow."""
    shape = len(lat), len(lon)
    grid = found.sort("lat_deg", "lon_deg")
    speed = grid["speed_kn"].to_numpy().reshape(shape)
    shade = axes.pcolormesh(lon, lat, speed, cmap="YlGnBu", shading="gouraud", vmin=0)
    axes.figure.colorbar(shade, ax=axes, label="wind speed [kn]", shrink=0.8)
    if grid["u_spread_m_s"].null_count() == 0:
        squares = grid.select(pl.col("u_spread_m_s", "v_spread_m_s") ** 2).mean_horizontal()
        values = (squares.to_numpy() ** 0.5 / KNOT_M_S).reshape(shape)
        if np.ptp(values) > 0.05:
            lines = axes.contour(lon, lat, values, levels=4, colors="#8c1c13", linewidths=0.9)
            axes.clabel(lines, fmt="±%.1f kn", fontsize=7)
    step = -(-max(shape) // ARROWS)
    picked = pl.DataFrame({"lat_deg": lat[::step]}).join(
        pl.DataFrame({"lon_deg": lon[::step]}), how="cross"
    )
    return grid.join(picked, on=["lat_deg", "lon_deg"], how="semi")


def label(axes: Axes, row: Wind) -> None:
    """Where a wind comes from, its speed and its spread, beside its arrow."""
    knots, spread = row.speed_m_s / KNOT_M_S, row.spread_m_s
    known = f" ±{(sum(s**2 for s in spread) / 2) ** 0.5 / KNOT_M_S:.0f}" if spread else ""
    axes.annotate(
        f"{round(row.from_deg) or 360:03d}° {knots:.0f}{known} kn",
        (row.point.lon_deg, row.point.lat_deg),
        xytext=(0, -12),
        textcoords="offset points",
        fontsize=8,
        path_effects=HALO,
    )


def edges(values: np.ndarray) -> tuple[float, float]:
    """The limits of an axis with a margin around its values."""
    margin = max(0.05 * float(np.ptp(values)), 0.25)
    return float(values.min()) - margin, float(values.max()) + margin


def span(names: list[str]) -> str:
    """The first and the last of some names."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
