"""The joint nowcast's figures: the error against lead time, each source alone, both and the
optimum; the same against distance to data; the validation loss against steps; of a real sky a map
of one task (maps.py). m/s a component."""

from pathlib import Path
from typing import Any

import numpy as np

from stages.figures.drawing import plt, save
from stages.tables.table import arm_of
from stages.winds.joint import maps
from stages.winds.joint.layout import (
    INCREMENTS,
    KRIGING,
    LINEAR,
    OPTIMUM,
    OPTIMUM_AIRCRAFT,
    OPTIMUM_GRID,
    PICTURE,
)
from stages.winds.joint.tables import UNTRAINED, called, ranked, seeds_of

# Trained arms by what they read, the exact law of the same as a dashed line of its colour.
COLOURS = {"both": "#1d6fa5", "aircraft": "#c1121f", "grid": "#01665e"}
EXACT = {OPTIMUM: "both", OPTIMUM_AIRCRAFT: "aircraft", OPTIMUM_GRID: "grid"}
RIVALS = {INCREMENTS: "#e69f00", KRIGING: "#762a83", LINEAR: "#8d8741"}
AXES = {"lead": "lead time [min]", "distance": "distance to the nearest report [km]"}
Content = dict[str, Any]


def draw(evaluated: Path, folder: Path, content: Content, dataset: str) -> None:
    """Write DATASET-by_lead.png, DATASET-by_distance.png and DATASET-learning.png, and DATASET-map
    where the evaluation has what it shows."""
    for by in AXES:
        save(curves(content, dataset, by), folder / f"{dataset}-by_{by}.png")
    save(learning(content, dataset), folder / f"{dataset}-learning.png")
    if (evaluated / PICTURE).is_file():
        with np.load(evaluated / PICTURE, allow_pickle=False) as found:
            told = {name: found[name] for name in found}
        save(maps.drawn(told), folder / f"{dataset}-map.png", shaded=True)


def style(arm: str) -> dict[str, Any]:
    """How an arm is drawn; {} of one that is not."""
    if arm in EXACT:
        return {"color": COLOURS[EXACT[arm]], "ls": "--", "lw": 1.1}
    if arm in RIVALS:
        return {"color": RIVALS[arm], "marker": "s", "ms": 3, "lw": 1.2}
    reads = arm.split("-")[1] if "-" in arm else ""
    return {"color": COLOURS[reads], "marker": "o", "ms": 4} if reads in COLOURS else {}


def bounds(label: str) -> tuple[float, float]:
    """'015-030 min' -> (15, 30)."""
    low, _, high = label.partition(" ")[0].partition("-")
    return float(low), float(high)


def curves(content: Content, dataset: str, by: str) -> Any:
    """A line an arm, in the middle of each bin, with the 90 % interval over tasks of what is
    trained (of its first seed)."""
    figure, panel = plt.subplots(figsize=(7.8, 4.2))
    for arm in ranked(content, dataset):
        if not (look := style(arm)):
            continue
        mine = seeds_of(content, dataset, arm)
        labels = sorted(mine[0][f"by_{by}"])
        x = np.array([np.mean(bounds(one)) for one in labels])
        y = np.mean(
            [[cell[f"by_{by}"][one]["rmse"]["value"] for one in labels] for cell in mine], 0
        )
        panel.plot(x, y, label=called(arm), **look)
        if arm not in UNTRAINED:
            low, high = (
                np.array([mine[0][f"by_{by}"][one]["rmse"][end] for one in labels])
                for end in ("low", "high")
            )
            panel.fill_between(x, low, high, color=look["color"], alpha=0.15, lw=0)
    panel.set(xlabel=AXES[by], ylabel="RMSE [m/s a component]")
    panel.set_ylim(bottom=0)
    panel.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def learning(content: Content, dataset: str) -> Any:
    """Validation loss against steps, every seed."""
    figure, panel = plt.subplots(figsize=(7.5, 3.8))
    known = set()
    for arm in ranked(content, dataset):
        for cell in seeds_of(content, dataset, arm):
            if "history" not in cell:
                continue
            steps, values = np.array(cell["history"]["val"]).T
            name = None if arm in known else called(arm)
            panel.plot(steps, values, "-o", ms=3, color=style(arm_of(arm))["color"], label=name)
            known.add(arm)
    panel.set(xlabel="steps", ylabel="negative log-likelihood [nats a target]")
    panel.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
