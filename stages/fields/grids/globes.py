"""The map of the whole globe at full resolution: what the model that selects best says, its error
and its spread at every node, with the points that it read. Above each panel, which longitudes
train, select and test. Kelvin, plain latitude and longitude."""

from typing import Any

import numpy as np

from stages.fields.grids.tables import called
from stages.figures import coast
from stages.figures.drawing import plt
from stages.tables.table import arm_of

MARKS = {"train": "#1d6fa5", "val": "#e69f00", "test": "#c1121f"}
WORDS = {"train": "longitudes that train", "val": "that select", "test": "that test"}
MOST = 6.0  # K: where the colours of errors end
HIGH = 3.0  # degrees of the bar


def maps(told: dict[str, np.ndarray], about: dict[str, Any]) -> Any:
    """The figure of map.npz and of what metrics.json tells of the set."""
    scale, origin = about["unit"][0], about["origin"]
    field, mean = (origin + scale * told[name] for name in ("field", "mean"))
    sd, model = scale * told["sd"], called(arm_of(about["map"]["cell"]))
    step = 360.0 / field.shape[1]
    extent = (-180 - step / 2, 180 - step / 2, -90 - step / 2, 90 + step / 2)
    pictures = (
        (f"{model}: answer at {field.size:,} nodes, {about['map']['points']} points [K]", mean,
         "RdYlBu_r", float(field.min()), float(field.max())),
        ("its error: answer minus truth [K]", mean - field, "PuOr_r", -MOST, MOST),
        ("its spread [K]", sd, "viridis", 0.0, float(np.quantile(sd, 0.999))),
    )  # fmt: skip
    figure, panels = plt.subplots(3, 1, figsize=(7.4, 10.2), layout="constrained", sharex=True)
    row, column = np.divmod(told["points"].astype(int), field.shape[1])
    for panel, (title, values, colours, low, high) in zip(panels, pictures, strict=True):
        image = panel.imshow(values, origin="lower", extent=extent, cmap=colours, vmin=low,
                             vmax=high, aspect="auto")  # fmt: skip
        figure.colorbar(image, ax=panel, shrink=0.9)
        panel.plot(-180 + step * column, -90 + step * row, ".", ms=2.2, color="black")
        coast.draw(panel)
        mark(panel, about["made"]["strips_deg"])
        panel.set(ylabel="latitude [°]", ylim=(-90.2, 90 + 2 * HIGH))
        panel.set_title(title, fontsize=9)
        panel.grid(False)
    panels[-1].set_xlabel("longitude [°]")
    panels[0].legend(*panels[0].get_legend_handles_labels(), ncols=3, fontsize=7.5,
                     loc="lower center", bbox_to_anchor=(0.5, 1.05))  # fmt: skip
    return figure


def mark(panel: Any, strips: dict[str, list[list[float]]]) -> None:
    """A bar over the longitudes of every split; one that crosses the date line in two parts."""
    for split, colour in MARKS.items():
        label = WORDS[split]
        for west, east in strips[split]:
            for turn in (-360.0, 0.0, 360.0):
                low, high = max(west + turn, -180.0), min(east + turn, 180.0)
                if low < high:
                    panel.fill_between([low, high], 90 + 0.5 * HIGH, 90 + 1.5 * HIGH, lw=0,
                                       color=colour, label=label)  # fmt: skip
                    label = "_nolegend_"
