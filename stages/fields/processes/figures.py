"""The experiment's figures: what every model says of one task (document N, figures 4.2.2, 5.4.2),
the same task shifted, functions drawn of it; of a plane each model's mean and spread over it
(figures 6.3.1 to 6.3.6); and the validation loss against steps.

Points black; a model's mean and its band of two standard deviations in colour; dashed, the exact
law's.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from stages.fields.processes.layout import BANDS, EXACT, PRIOR
from stages.fields.processes.tables import called, ranked
from stages.figures.drawing import plt, save
from stages.files import read_json
from stages.tables.table import arm_of

COLOURS = ("#1d6fa5", "#c1121f", "#01665e", "#762a83", "#e69f00", "#3a0ca3", "#8d8741", "#4cc9f0")
WIDTH, COLUMNS = 2.0, 4  # standard deviations of a band; panels in a row
WHOLE = (  # of which functions are drawn
    "neural_process-conditional",
    "neural_process-weighted",
    "neural_process-bound",
    "tnp-attention",
    "tetnp-post",
    "convcnp-plain",
)
SHIFTED = ("tnp-attention", "tetnp-post", "convcnp-plain")  # what is drawn shifted, as N has it
Content = Any  # of JSON


def draw(evaluated: Path, folder: Path, content: Content, dataset: str) -> None:
    """Write DATASET-learning.png, of sets in one dimension DATASET-bands.png, DATASET-shifted.png
    and DATASET-functions.png, of a plane DATASET-plane.png into `folder`."""
    told = read_json(evaluated / BANDS)
    arms = [arm for arm in ranked(content, dataset) if arm not in (EXACT, PRIOR)]
    cells = {arm: next(cell for cell in told["cells"] if arm_of(cell) == arm) for arm in arms}
    colours = {arm: COLOURS[place % len(COLOURS)] for place, arm in enumerate(arms)}
    losses = {
        arm: content["cells"][f"{dataset}/{cell}"]["history"]["val"] for arm, cell in cells.items()
    }
    save(learning(losses, colours, content, dataset), folder / f"{dataset}-learning.png")
    if not told["truth"]:
        return
    said = {arm: told["cells"][cell] for arm, cell in cells.items()}
    if told["truth"].get("axes") == 2:
        save(plane(best(said), told["truth"]), folder / f"{dataset}-plane.png", shaded=True)
        return
    save(bands(said, colours, told["truth"]), folder / f"{dataset}-bands.png")
    if few := best(said, SHIFTED):
        save(shifts(few, colours, told["truth"]), folder / f"{dataset}-shifted.png")
    if few := best(said, WHOLE):
        save(bands(few, colours, told["truth"], whole=True), folder / f"{dataset}-functions.png")


def best(said: dict[str, Content], variants: tuple[str, ...] = ()) -> dict[str, Content]:
    """Of each of the variants ("tnp-attention"), of all where none is named, that size which stands
    first."""
    first: dict[str, str] = {}
    for arm in said:
        first.setdefault(arm.rpartition("-")[0], arm)
    return {arm: said[arm] for variant, arm in first.items() if variant in (variants or first)}


def learning(
    losses: dict[str, list[list[float]]], colours: dict[str, str], content: Content, dataset: str
) -> Any:
    """Validation loss against steps, with the bound and the prior of the test tasks."""
    figure, panel = plt.subplots(figsize=(7.5, 3.8))
    for arm, points in losses.items():
        steps, values = np.array(points).T
        panel.plot(steps, values, "-o", ms=3, color=colours[arm], label=called(arm))
    for name, style in ((EXACT, "--"), (PRIOR, ":")):
        level = -content["arms"][f"{dataset}/{name}"]["metrics"]["log_likelihood"]["mean"]
        panel.axhline(level, color="black", lw=0.9, ls=style, label=called(name))
    panel.set(xlabel="steps", ylabel="negative log-likelihood [nats a target]")
    panel.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def told_of(panel: Any, said: Content, truth: Content, colour: str, by: float) -> None:
    """One model's law along the line, or functions of it, the exact law's, and the points, all
    moved `by`."""
    x = np.array(truth["x"]) + by
    if isinstance(said, list):
        for one in said:
            panel.plot(np.linspace(x[0], x[-1], len(one)), one, color=colour, lw=1.0)
    else:
        mean, sd = np.array(said["mean"]), np.array(said["sd"])
        panel.fill_between(x, mean - WIDTH * sd, mean + WIDTH * sd, color=colour, alpha=0.2, lw=0)
        panel.plot(x, mean, color=colour, lw=1.4)
    exact, spread = np.array(truth["mean"]), np.array(truth["sd"])
    for side in (-WIDTH, WIDTH):
        panel.plot(x, exact + side * spread, color="#555555", lw=0.7, ls="--")
    points = np.array(truth["context_x"]) + by
    panel.plot(points, truth["context_y"], "o", ms=3, color="black")
    low, high = min(exact - 3 * spread), max(exact + 3 * spread)
    panel.set(xlim=(x[0], x[-1]), ylim=(min(low, -0.5), max(high, 1.0)))


def bands(
    said: dict[str, Content], colours: dict[str, str], truth: Content, whole: bool = False
) -> Any:
    """A panel a model, the best first: its band, or functions of it as a `whole`."""
    rows = -(-len(said) // COLUMNS)
    figure, panels = plt.subplots(
        rows, COLUMNS, figsize=(3.1 * COLUMNS, 2.3 * rows), sharex=True, sharey=True, squeeze=False
    )
    for panel, (arm, one) in zip(panels.flat, said.items(), strict=False):
        told_of(panel, one["functions" if whole else "plain"], truth, colours[arm], 0.0)
        panel.set_title(called(arm), fontsize=9)
    for panel in panels.flat[len(said) :]:
        panel.axis("off")
    for panel in panels[:, 0]:
        panel.set_ylabel("value")
    for panel in panels[-1]:
        panel.set_xlabel("x")
    figure.tight_layout()
    return figure


def shifts(said: dict[str, Content], colours: dict[str, str], truth: Content) -> Any:
    """A row a model: the task as it was drawn, and shifted out of where it trained."""
    figure, panels = plt.subplots(
        len(said), 2, figsize=(8.5, 2.2 * len(said)), sharey=True, squeeze=False
    )
    for row, (arm, one) in zip(panels, said.items(), strict=True):
        for panel, name, by in zip(row, ("plain", "shifted"), (0.0, truth["shift"]), strict=True):
            told_of(panel, one[name], truth, colours[arm], by)
            panel.set_title(called(arm) + (f", shifted by {by:g}" if by else ""), fontsize=9)
        row[0].set_ylabel("value")
    for panel in panels[-1]:
        panel.set_xlabel("x")
    figure.tight_layout()
    return figure


def plane(said: dict[str, Content], truth: Content) -> Any:
    """Means above, standard deviations below, of the exact law and of each model, the best first;
    the context's points in the colour of their value, on the scale of the means."""
    laws = {EXACT: truth} | {arm: one["plain"] for arm, one in said.items()}
    side, ends = math.isqrt(len(truth["mean"])), max(truth["x"])
    points, values = np.reshape(truth["context_x"], (-1, 2)), truth["context_y"]
    shown = np.concatenate((truth["mean"], values))
    scales = (
        {"vmin": shown.min(), "vmax": shown.max(), "cmap": "viridis"},
        {"vmin": 0.0, "vmax": max(max(one["sd"]) for one in laws.values()), "cmap": "magma"},
    )
    figure, panels = plt.subplots(
        2, len(laws), figsize=(2.6 * len(laws) + 0.8, 5.0), sharex=True, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for column, (arm, law) in zip(panels.T, laws.items(), strict=True):
        column[0].set_title(called(arm), fontsize=9)
        for row, (name, scale) in enumerate(zip(("mean", "sd"), scales, strict=True)):
            field = np.reshape(law[name], (side, side))
            image = column[row].imshow(field, origin="lower", extent=(-ends, ends) * 2, **scale)
            column[row].grid(False)
            if arm == EXACT:
                bar = figure.colorbar(image, ax=panels[row], shrink=0.85)
                bar.set_label(("mean", "standard deviation")[row])
        column[0].scatter(*points.T, c=values, s=16, ec="white", lw=0.7, **scales[0])
        column[1].scatter(*points.T, s=4, color="white")
    return figure
