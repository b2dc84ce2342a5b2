"""A nowcast as a picture: arrows where it was asked, coloured by speed, over the spread.

A level on a grid is shaded by its wind speed, with contours of the spread; points are dots. Speeds
are told in knots.
"""

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.axes import Axes

from stages.figures.drawing import save
from stages.units import EARTH_KM, KNOT_M_S
from stages.winds.figures import HALO, arrow, map_axes
from stages.winds.nowcast.answers import Wind, table
from stages.winds.nowcast.refusals import iso

ARROWS = 24  # along the longer side of a grid; more cannot be told apart
LEVEL_KN, POINTS_KN = 1600.0, 800.0  # whose arrow would be as long as the map is wide
BAR_SHARE = 0.4  # of the map's width, that the bar may take
KNOWN = "#e8710a"  # dots of winds that were known
LABELS = 20  # points that are told in figures, too; more hide each other


def draw(
    rows: list[Wind], path: Path, *, known: pl.DataFrame | None = None, top_kn: float | None = None
) -> None:
    """Draw the winds of one call to a PNG; `known`: winds that are shown as dots where they were
    measured; `top_kn`: the speed at which the shade of a level ends, else its highest."""
    found, first = table(rows), rows[0]
    lat, lon = (np.unique(found[name]) for name in ("lat_deg", "lon_deg"))
    figure, axes = plt.subplots(figsize=(8.5, 6.5), layout="constrained")
    whole = is_level(found)
    shown = shaded(axes, found, lat, lon, top_kn) if whole else found
    speed = shown["speed_kn"].to_numpy()
    arrows = axes.quiver(
        *arrow(shown),
        *(() if whole else (speed,)),
        cmap="YlGnBu",
        scale=LEVEL_KN if whole else POINTS_KN,
        width=0.0025 if whole else 0.004,
        color="#333333" if whole else None,
        edgecolor="#333333",
        linewidth=0.0 if whole else 0.4,
    )
    if known is not None:
        axes.plot(known["lon_deg"], known["lat_deg"], ".", color=KNOWN, markersize=3)
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
    north, east = limits(lat, lon, 0.0 if whole else float(speed.max()) / POINTS_KN)
    map_axes(axes, north, east, bar_km(north, east))
    save(figure, path, shaded=True)


def is_level(found: pl.DataFrame) -> bool:
    """Whether rows are every place of a grid at one altitude and one time: what a shade between
    them may join."""
    lat, lon = (found[name].n_unique() for name in ("lat_deg", "lon_deg"))
    one = found["alt_ft"].n_unique() == found["time"].n_unique() == 1
    places = found.select("lat_deg", "lon_deg").n_unique()
    return one and lat > 1 < lon and len(found) == places == lat * lon


def shaded(
    axes: Axes, found: pl.DataFrame, lat: np.ndarray, lon: np.ndarray, top_kn: float | None
) -> pl.DataFrame:
    """Shade a level by its speed, up to `top_kn` where that is told, with contours of its spread
    where it is known; the rows that get an arrow."""
    shape = len(lat), len(lon)
    grid = found.sort("lat_deg", "lon_deg")
    speed = grid["speed_kn"].to_numpy().reshape(shape)
    shade = axes.pcolormesh(lon, lat, speed, cmap="YlGnBu", shading="gouraud", vmin=0, vmax=top_kn)
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


def limits(lat: np.ndarray, lon: np.ndarray, arrow: float) -> tuple[np.ndarray, np.ndarray]:
    """The limits (2,) in latitude and in longitude, degrees, with a margin that holds arrows of up
    to a share `arrow` of the map's width, wherever they point."""
    wide = float(np.ptp(lon))
    across = max(0.05 * wide, 0.25, min(arrow, 0.4) * wide / (1 - 2 * min(arrow, 0.4)))
    tall = arrow * (wide + 2 * across) * math.cos(math.radians(float(lat.mean())))
    along = max(0.05 * float(np.ptp(lat)), 0.25, tall)
    ends = ((lat, along), (lon, across))
    north, east = (np.array([each.min() - m, each.max() + m]) for each, m in ends)
    return north, east


def bar_km(lat: np.ndarray, lon: np.ndarray) -> float:
    """The longest of 1, 2 and 5 times a power of ten, in km, that fits BAR_SHARE of a map with
    these limits, degrees."""
    degree = math.radians(1.0) * EARTH_KM * math.cos(math.radians(float(lat.min())))
    most = BAR_SHARE * float(np.ptp(lon)) * degree
    ten = 10.0 ** math.floor(math.log10(most))
    return max(step * ten for step in (1.0, 2.0, 5.0) if step * ten <= most)


def span(names: list[str]) -> str:
    """The first and the last of some names."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
