"""The experiment's figures: what every model says of one task, along a line or as maps of mean and
spread (document G, figures 4.3 and 4.12; planes: planes.py; real hours: hours.py; the whole
globe at full resolution: globes.py), and the validation loss against steps.

On lines points are black, cells grey, bands two standard deviations, the dashed one the exact
law's. Maps are plain latitude and longitude, coasts the border of the simulated land; stations
black; kelvin.
"""

from pathlib import Path
from typing import Any

import numpy as np

from stages.fields.grids import globes, hours, planes
from stages.fields.grids.layout import EXACT, MAP, PICTURE, PRIOR
from stages.fields.grids.tables import UNTRAINED, called, ranked
from stages.fields.problems.coupled.globe import MEAN, SCALE
from stages.figures.drawing import plt, save
from stages.files import read_json
from stages.tables.table import arm_of

COLOURS = ("#1d6fa5", "#c1121f", "#01665e", "#762a83", "#e69f00", "#3a0ca3", "#8d8741", "#4cc9f0")
WIDTH, COLUMNS = 2.0, 4  # standard deviations of a band; panels in a row
BEST = 8  # models of which a real hour is drawn; the table has all
LEFT_OUT = "published"  # arms that maps leave out: what is wrong in them is told in numbers
Content = dict[str, Any]


def draw(evaluated: Path, folder: Path, content: Content, dataset: str) -> None:
    """Write DATASET-learning.png and DATASET-task.png into `folder`."""
    cells = read_json(evaluated / "metrics.json")["cells"]
    arms = [arm for arm in ranked(content, dataset) if arm not in UNTRAINED]
    named = {arm: next(cell for cell in cells if arm_of(cell) == arm) for arm in arms}
    colours = {arm: COLOURS[place % len(COLOURS)] for place, arm in enumerate(arms)}
    losses = {arm: cells[cell]["history"]["val"] for arm, cell in named.items()}
    save(learning(losses, colours, content, dataset), folder / f"{dataset}-learning.png")
    if content["about"][dataset]["made"]["process"] == "world":
        if (evaluated / MAP).is_file():
            with np.load(evaluated / MAP, allow_pickle=False) as found:
                full = {name: found[name] for name in found}
            figure = globes.maps(full, content["about"][dataset])
            save(figure, folder / f"{dataset}-map.png", shaded=True)
        return
    with np.load(evaluated / PICTURE, allow_pickle=False) as found:
        told = {name: found[name].astype(np.float64) for name in found}
    if "field" in told:
        shown = dict([*named.items()][:BEST])
        unit, origin = content["about"][dataset]["unit"][0], content["about"][dataset]["origin"]
        save(hours.maps(told, shown, unit, origin), folder / f"{dataset}-task.png", shaded=True)
    elif "height" in told:
        shown = {arm: cell for arm, cell in named.items() if LEFT_OUT not in arm}
        save(maps(told, shown), folder / f"{dataset}-task.png", shaded=True)
    elif told["places"].shape[1] == 2:
        save(planes.maps(told, named), folder / f"{dataset}-task.png", shaded=True)
    else:
        save(lines(told, named, colours), folder / f"{dataset}-task.png")


def learning(
    losses: dict[str, list[list[float]]], colours: dict[str, str], content: Content, dataset: str
) -> Any:
    """Validation loss against steps, with the bound and the prior of the test tasks."""
    figure, panel = plt.subplots(figsize=(7.5, 3.8))
    for arm, points in losses.items():
        steps, values = np.array(points).T
        panel.plot(steps, values, "-o", ms=3, color=colours[arm], label=called(arm))
    for name, style in ((EXACT, "--"), (PRIOR, ":")):
        if f"{dataset}/{name}" not in content["arms"]:
            continue
        level = -content["arms"][f"{dataset}/{name}"]["metrics"]["log_likelihood"]["mean"]
        panel.axhline(level, color="black", lw=0.9, ls=style, label=called(name))
    panel.set(xlabel="steps", ylabel="negative log-likelihood [nats a target]")
    panel.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def lines(told: dict[str, np.ndarray], named: dict[str, str], colours: dict[str, str]) -> Any:
    """A panel a model, the best first."""
    rows = -(-len(named) // COLUMNS)
    figure, panels = plt.subplots(
        rows, COLUMNS, figsize=(3.1 * COLUMNS, 2.3 * rows), sharex=True, sharey=True, squeeze=False
    )
    x = told["places"][:, 0]
    for panel, (arm, cell) in zip(panels.flat, named.items(), strict=False):
        mean, sd = told[f"{cell}.mean"], told[f"{cell}.sd"]
        panel.plot(told["cells"][:, 0], told["grid_y"], ".", ms=3, color="#9a9a9a", label="cells")
        panel.plot(told["target_x"][:, 0], told["target_y"], ".", ms=2, color="#e69f00",
                   label="targets")  # fmt: skip
        panel.fill_between(x, mean - WIDTH * sd, mean + WIDTH * sd, color=colours[arm], alpha=0.25)
        panel.plot(x, mean, color=colours[arm], lw=1.4)
        panel.plot(told["context_x"][:, 0], told["context_y"], "o", ms=3, color="black",
                   label="points")  # fmt: skip
        panel.set_title(called(arm), fontsize=9)
        panel.set_xlim(x[0], x[-1])
    for panel in panels.flat[len(named) :]:
        panel.axis("off")
    panels[0, 0].legend(fontsize=7)
    for panel in panels[:, 0]:
        panel.set_ylabel("value")
    for panel in panels[-1]:
        panel.set_xlabel("x")
    figure.tight_layout()
    return figure


def maps(told: dict[str, np.ndarray], named: dict[str, str]) -> Any:
    """A row a model: mean, and standard deviation; above, the grid as it was given and the
    orography."""
    rows = int(np.sqrt(len(told["places"]) / 2))
    shape, coarse = (rows, 2 * rows), int(np.sqrt(len(told["cells"]) / 2))
    extent = (-180.0, 180.0, -90.0, 90.0)
    figure, panels = plt.subplots(
        1 + len(named), 2, figsize=(10, 2.6 * (1 + len(named))), layout="constrained",
        sharex=True, sharey=True,
    )  # fmt: skip
    height = told["height"].reshape(shape)
    known = MEAN + SCALE * told["grid_y"].reshape(coarse, 2 * coarse)
    pictures = [("skin temperature of the grid [K]", known, "RdYlBu_r", 230.0, 305.0),
                ("orography [km]", height, "terrain", 0.0, 4.0)]  # fmt: skip
    for arm, cell in named.items():
        mean, sd = (told[f"{cell}.{part}"].reshape(shape) for part in ("mean", "sd"))
        pictures += [(f"{called(arm)}: air [K]", MEAN + SCALE * mean, "RdYlBu_r", 230.0, 305.0),
                     (f"{called(arm)}: spread [K]", SCALE * sd, "viridis", 0.0, 10.0)]  # fmt: skip
    for panel, (title, values, colours, low, high) in zip(panels.flat, pictures, strict=True):
        image = panel.imshow(values, origin="lower", extent=extent, cmap=colours, vmin=low,
                             vmax=high, aspect="auto")  # fmt: skip
        figure.colorbar(image, ax=panel, shrink=0.9)
        east, north = np.linspace(*extent[:2], 2 * rows), np.linspace(*extent[2:], rows)
        panel.contour(east, north, height > 0, levels=[0.5], colors="black", linewidths=0.6)
        panel.plot(told["context_x"][:, 1], told["context_x"][:, 0], ".", ms=3, color="black")
        panel.set_title(title, fontsize=9)
        panel.grid(False)
    for panel in panels[:, 0]:
        panel.set_ylabel("latitude [°]")
    for panel in panels[-1]:
        panel.set_xlabel("longitude [°]")
    return figure
