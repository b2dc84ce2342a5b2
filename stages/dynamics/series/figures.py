"""The figures of series: NRMSE against time with its band over starts, and the first start's truth
and forecasts. Time in days."""

from pathlib import Path
from typing import Any

import numpy as np

from stages.dynamics.figures import CLASSES, line
from stages.dynamics.layout import CURVES, IMAGES
from stages.dynamics.series.measure import SELECTS
from stages.dynamics.series.tables import called, ranked
from stages.figures.drawing import plt, save
from stages.files import read_json
from stages.tables.table import arm_of

COLOURS = {name: colour for name, (colour, _) in CLASSES.items()} | {
    "yesterday": "#e69f00",
    "reservoir": "#01665e",
    "mean": "#bbbbbb",
}
SHOWN = ("transformer", "rhn", "linear")  # whose forecast is shown
Content = dict[str, Any]


def best(content: Content, dataset: str) -> dict[str, str]:
    """Class -> its arm that was valid for longest on what selects; of a rival its only one."""
    found: dict[str, tuple[float, str]] = {}
    for arm in ranked(content, dataset):
        told = content["arms"][f"{dataset}/{arm}"]["metrics"].get(SELECTS)
        one = (told["mean"] if told else 0.0, arm)
        name = arm.split("-")[0]
        found[name] = max(found.get(name, one), one)
    return {name: arm for name, (_, arm) in found.items()}


def draw(evaluated: Path, folder: Path, content: Content, dataset: str) -> None:
    """Write DATASET-curves.png and DATASET-forecasts.png into `folder`."""
    told, arms, about = (
        read_json(evaluated / CURVES),
        best(content, dataset),
        content["about"][dataset],
    )
    time = (np.arange(about["horizon"]) + 1) * about["step"]
    cells = {name: next(c for c in told["order"] if arm_of(c) == arm) for name, arm in arms.items()}
    figure, panel = plt.subplots(figsize=(7.5, 4.2))
    for name, cell in cells.items():
        band, colour = told["curves"][cell], COLOURS[name]
        style = "-" if arms[name] != name else "--"
        panel.plot(time, line(band["0.5"]), style, color=colour, lw=1.6, label=called(arms[name]))
    panel.axhline(about["threshold"], color="black", lw=0.8, ls=":")
    panel.set(xlabel="time [days]", ylabel="NRMSE, median over starts", ylim=(0, 2))
    panel.set_xlim(0, time[-1])
    panel.legend(fontsize=7.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    save(figure, folder / f"{dataset}-curves.png")
    images = np.load(evaluated / IMAGES, allow_pickle=False)
    count = min(4, images.shape[2])
    figure, panels = plt.subplots(count, 1, figsize=(8, 1.5 * count), sharex=True)
    for place, panel in enumerate(np.atleast_1d(panels)):
        panel.plot(time, images[0][:, place], color="black", lw=1.6, label="truth")
        for name in SHOWN:
            if name in cells:
                image = images[1 + told["order"].index(cells[name])]
                panel.plot(
                    time, image[:, place], lw=1.1, color=COLOURS[name], label=called(arms[name])
                )
        panel.set_ylabel(f"{about['columns'][place][:12]} [sd]", fontsize=8)
        panel.set_xlim(0, time[-1])
    np.atleast_1d(panels)[0].legend(fontsize=7.5, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    np.atleast_1d(panels)[-1].set_xlabel("time [days]")
    save(figure, folder / f"{dataset}-forecasts.png")
