"""The figures of an experiment: error against lead, altitude and distance; a nowcast on the map;
where errors lie.

Every figure is a PNG with fixed metadata, so that the same numbers give the same bytes. Directions
on maps are those the wind blows towards; axes are degrees with the aspect of the mean latitude, and
a scale bar in kilometres.
"""

# mypy: disable-error-code="attr-defined, union-attr"
# what NumPy makes of columns is a column

from pathlib import Path
from typing import Any

import matplotlib.patheffects as effects
import numpy as np
import polars as pl
from matplotlib.axes import Axes

from stages.figures import coast
from stages.figures import sweeps as sweep_figures
from stages.figures.colours import colour
from stages.figures.drawing import MARKS, plt, save
from stages.files import atomic_folder, read_json
from stages.tables.table import datasets_of, label
from stages.units import KNOT_M_S
from stages.winds.tables import curve, floor_of, leading, ordered, samplers_of, trials_of

PLAIN = (
    "day_average",
    "hour_average",
    "persistence",
    "knn",
    "trend",
    "kernel",
)  # dotted, beside what learns by gradient
DASHED = {
    "requery": (0, (4, 2)),
    "swept": (0, (1, 1)),
}  # of arms that share their model's colour with another one
GROUPS = {
    "by_lead": "lead time [min]",
    "by_altitude": "altitude band",
    "by_distance": "distance to the nearest context point [km]",
}
# Positions of towns that help a reader to find himself (latitude, longitude, degrees).
TOWNS = {
    "Amsterdam": (52.37, 4.90),
    "Brussels": (50.85, 4.35),
    "London": (51.51, -0.13),
    "Lille": (50.63, 3.06),
    "Luxembourg": (49.61, 6.13),
    "Cologne": (50.94, 6.96),
    "Groningen": (53.22, 6.57),
    "Norwich": (52.63, 1.30),
    "Geneva": (46.20, 6.14),
    "Zurich": (47.37, 8.54),
    "Lyon": (45.76, 4.84),
    "Turin": (45.07, 7.69),
    "Milan": (45.46, 9.19),
    "Strasbourg": (48.57, 7.75),
    "Dijon": (47.32, 5.04),
}

HALO = [
    effects.withStroke(linewidth=2.5, foreground="white", alpha=0.8)
]  # keeps labels readable on dark ground


def dash(arm: str) -> Any:
    """A line style for an arm: dotted of a plain average or law, else one that sets it apart
    from other arms of its model."""
    if arm in PLAIN:
        return ":"
    return next((style for name, style in DASHED.items() if f"-{name}" in arm), "-")


def breakdown(
    cells: dict[str, Any], arms: list[str], group: str, title: str, floor: float | None, path: Path
) -> bool:
    """RMSE against lead, altitude or distance, every arm with its 90 % band. False when there is
    nothing to draw."""
    curves = {arm: curve(cells, arm, group) for arm in arms}
    keys = max((list(c) for c in curves.values()), key=len, default=[])
    if len(keys) < 2:
        return False
    numeric = all(key.replace(".", "", 1).isdigit() for key in keys)
    places = [float(key) for key in keys] if numeric else list(range(len(keys)))
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    for number, (arm, points) in enumerate(curves.items()):
        here = [
            (place, points[key]) for place, key in zip(places, keys, strict=True) if key in points
        ]
        if not here:
            continue
        x, (value, low, high) = [p for p, _ in here], np.array([v for _, v in here]).T
        name = arm.split("/")[1]
        axes.plot(
            x,
            value,
            MARKS[number % len(MARKS)],
            ls=dash(name),
            ms=5,
            lw=1.8,
            color=colour(name),
            label=label(name),
        )
        axes.fill_between(x, low, high, color=colour(name), alpha=0.10, lw=0)
    if floor:
        axes.axhline(floor, color="black", lw=1, ls=":", label="noise floor of the sensors")
    if not numeric:
        axes.set_xticks(places, keys, rotation=25, ha="right")
    axes.set(xlabel=title, ylabel="RMSE per component [kn]")
    axes.set_ylim(bottom=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    save(figure, path)
    return True


def map_axes(axes: Axes, lat: np.ndarray, lon: np.ndarray, bar_km: float = 100.0) -> None:
    """Degrees with the right aspect, coasts, towns, and a bar of so many kilometres."""
    south, north, west, east = lat.min(), lat.max(), lon.min(), lon.max()
    axes.set_aspect(1 / np.cos(np.radians((south + north) / 2)))
    axes.set(
        xlim=(west, east), ylim=(south, north), xlabel="longitude [°E]", ylabel="latitude [°N]"
    )
    coast.draw(axes)
    for town, (y, x) in TOWNS.items():
        if south < y < north and west < x < east:
            axes.plot(x, y, "s", ms=3, color="#444444")
            axes.annotate(
                town,
                (x, y),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=7,
                color="#333333",
                path_effects=HALO,
            )
    kilometre = 1 / (111.195 * np.cos(np.radians(south)))
    x, y = west + 0.04 * (east - west), south + 0.04 * (north - south)
    axes.plot([x, x + bar_km * kilometre], [y, y], color="black", lw=2, path_effects=HALO)
    axes.annotate(
        f"{bar_km:g} km",
        (x + bar_km / 2 * kilometre, y),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        path_effects=HALO,
    )


def arrow(frame: pl.DataFrame, kind: str = "") -> tuple[Any, ...]:
    """Places and winds [kn] of rows, `kind` of their columns, as `quiver` takes them."""
    return (
        frame["lon_deg"],
        frame["lat_deg"],
        frame[f"u{kind}_m_s"] / KNOT_M_S,
        frame[f"v{kind}_m_s"] / KNOT_M_S,
    )


def forecast_panel(panel: Axes, context: pl.DataFrame, field: pl.DataFrame, title: str) -> None:
    """The forecast over a whole level, its spread where it tells one, and what it was made from."""
    speed = np.hypot(field["u_m_s"], field["v_m_s"]).to_numpy() / KNOT_M_S
    lon, lat = np.unique(field["lon_deg"]), np.unique(field["lat_deg"])
    shade = panel.pcolormesh(
        lon, lat, speed.reshape(len(lat), len(lon)), cmap="YlGnBu", shading="gouraud", vmin=0
    )
    if field["u_scale_m_s"].null_count() == 0:
        spread = (
            np.sqrt((field["u_scale_m_s"] ** 2 + field["v_scale_m_s"] ** 2) / 2).to_numpy()
            / KNOT_M_S
        )
        lines = panel.contour(
            lon, lat, spread.reshape(len(lat), len(lon)), levels=5, colors="#8c1c13", linewidths=0.9
        )
        panel.clabel(lines, fmt="±%.0f kn", fontsize=7)
    panel.quiver(*arrow(field), scale=1600, width=0.0022, color="#333333")
    panel.plot(
        context["lon_deg"],
        context["lat_deg"],
        "o",
        ms=5,
        mfc="#ff7f0e",
        mec="white",
        mew=0.6,
        ls="none",
        label=f"{len(context):,} winds known",
    )
    panel.legend(loc="lower right", frameon=True, fontsize=8)
    panel.set_title(title)
    panel.figure.colorbar(shade, ax=panel, label="wind speed [kn]", shrink=0.8)


def measured_panel(panel: Axes, here: pl.DataFrame) -> None:
    """The forecast where aircraft measured, coloured by its error, over what they measured."""
    error = (
        np.hypot(here["u_pred_m_s"] - here["u_m_s"], here["v_pred_m_s"] - here["v_m_s"]) / KNOT_M_S
    ).to_numpy()
    panel.quiver(*arrow(here), color="black", scale=900, width=0.0040, alpha=0.5, label="measured")
    arrows = panel.quiver(
        *arrow(here, "_pred"),
        error,
        cmap="plasma_r",
        scale=900,
        width=0.0030,
        clim=(0, max(20.0, np.quantile(error, 0.95))),
    )
    panel.quiverkey(
        arrows, 0.92, -0.075, 50, "50 kn", labelpos="W", coordinates="axes"
    )  # below: above it may lie on a town
    panel.set_title(
        f"that minute, all levels: measured (black), forecast (colour), {len(here):,} points"
    )
    panel.figure.colorbar(arrows, ax=panel, label="error of the vector [kn]", shrink=0.8)


def nowcast_map(
    rows: pl.DataFrame,
    field: pl.DataFrame,
    here: pl.DataFrame,
    meta: dict[str, Any],
    name: str,
    path: Path,
) -> None:
    """One test minute: the forecast over a whole level with what it was made from, and the
    forecast where aircraft then measured."""
    start = meta["t0_s"] + field["slice"][0] * meta["slice_s"] - meta["lead_s"]
    context = rows.filter((pl.col("t_s") >= start - meta["slice_s"]) & (pl.col("t_s") < start))
    figure, axes = plt.subplots(1, 2, figsize=(13.5, 6.6), sharey=True, layout="constrained")
    title = (
        f"{name}: wind at FL{field['alt_ft'][0] / 100:.0f}, {meta['lead_s'] / 60:.0f} min after "
        "the winds known"
    )
    forecast_panel(axes[0], context, field, title)
    measured_panel(axes[1], here)
    for panel in axes:
        map_axes(panel, rows["lat_deg"].to_numpy(), rows["lon_deg"].to_numpy())
    save(figure, path, shaded=True, dpi=76)


def error_map(predictions: dict[str, pl.DataFrame], rows: pl.DataFrame, path: Path) -> None:
    """Root mean square vector error of some models over all test minutes, in cells of about 40
    km."""
    lat, lon = rows["lat_deg"].to_numpy(), rows["lon_deg"].to_numpy()
    figure, panels = plt.subplots(
        1, len(predictions), figsize=(5.6 * len(predictions), 5.4), sharey=True, squeeze=False
    )
    width = 40 / 111.195
    bins = [
        np.arange(lon.min(), lon.max() + 2 * width, width / np.cos(np.radians(lat.mean()))),
        np.arange(lat.min(), lat.max() + width, width),
    ]
    top = 0.0
    grids = []
    for here in predictions.values():
        square = (here["u_pred_m_s"] - here["u_m_s"]) ** 2 + (
            here["v_pred_m_s"] - here["v_m_s"]
        ) ** 2
        total, _, _ = np.histogram2d(
            here["lon_deg"], here["lat_deg"], bins=bins, weights=square / KNOT_M_S**2
        )
        count, _, _ = np.histogram2d(here["lon_deg"], here["lat_deg"], bins=bins)
        grid = np.sqrt(np.divide(total, count, out=np.full_like(total, np.nan), where=count >= 5))
        grids.append(grid)
        top = max(top, float(np.nanquantile(grid, 0.95)) if np.isfinite(grid).any() else 1.0)
    for panel, name, grid in zip(panels[0], predictions, grids, strict=True):
        mesh = panel.pcolormesh(bins[0], bins[1], grid.T, cmap="magma_r", vmin=0, vmax=top)
        panel.set_title(name)
        map_axes(panel, lat, lon)
    figure.colorbar(mesh, ax=panels[0].tolist(), label="vector RMSE [kn]", shrink=0.8)
    save(figure, path, shaded=True, dpi=90)


def mapped(names: list[str]) -> list[str]:
    """Of models from worst to best, those whose errors are mapped: trend, kernel, the best MSA;
    else persistence, best GKA, best."""
    learned = [name for name in names if name.startswith("msa")][-1:]
    if learned:
        return [name for name in ("trend", "kernel", *learned) if name in names]
    kernels = [name for name in names if name.startswith("gka")][-1:]
    chosen = [name for name in ("persistence", *kernels, names[-1]) if name in names]
    return list(dict.fromkeys(chosen))


def draw(home: Path, prepared: Path, arms: dict[str, Any], cells: dict[str, Any]) -> None:
    """All figures of an experiment and profile into `home`/figures."""
    with atomic_folder(home / "figures") as folder:
        for dataset in datasets_of(arms):
            names, floor = ordered(arms, dataset), floor_of(arms, dataset)
            for group, title in GROUPS.items():
                breakdown(
                    cells, leading(names), group, title, floor, folder / f"{dataset}-{group}.png"
                )
            swept = home / "sweeps" / dataset
            if trials := trials_of(swept):
                drawn = sweep_figures.drawn(
                    trials, sweep_figures.importances_of(swept), samplers_of(swept), colour
                )
                save(drawn, folder / f"{dataset}-sweeps.png")
            rows = pl.read_parquet(prepared / dataset / "rows.parquet")
            meta = read_json(prepared / dataset / "prepared.json")
            evaluated = home / "evaluated" / dataset
            first = {
                name: next(c for c in cells if c == name or c.startswith(name + "-s")).split("/")[1]
                for name in names
            }  # seed
            found = {
                name.split("/")[1]: pl.read_parquet(evaluated / f"predictions-{cell}.parquet")
                for name, cell in first.items()
            }
            shown = [
                name for name in names if (evaluated / f"field-{first[name]}.parquet").exists()
            ]
            if shown:
                told = next(
                    (name for name in shown if "gaussian" in name), shown[-1]
                )  # what `tradewind nowcast` uses, else the best
                field = pl.read_parquet(evaluated / f"field-{first[told]}.parquet")
                name = told.split("/")[1]
                here = found[name].filter(pl.col("slice") == field["slice"][0])
                nowcast_map(rows, field, here, meta, label(name), folder / f"{dataset}-nowcast.png")
            error_map(
                {label(name): found[name] for name in mapped(list(found))},
                rows,
                folder / f"{dataset}-errors.png",
            )
