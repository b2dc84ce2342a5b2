"""The family's figures: NRMSE against time with its band over starts (document R, figures 5 and
13), and the first start's truth, forecast and difference: space-time images of fields, traces of
Lorenz-96.

Time in Lyapunov times. Of every class the best arm is shown.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.dynamics.layout import CURVES, IMAGES
from stages.dynamics.measure import SELECTS
from stages.dynamics.searched import tables
from stages.dynamics.tables import called, ranked
from stages.figures.drawing import plt, save
from stages.files import read_json
from stages.tables.table import arm_of

CLASSES = {
    "lstm": ("#c1121f", "LSTM"),
    "gru": ("#e69f00", "GRU"),
    "rhn": ("#762a83", "RHN"),
    "transformer": ("#3a0ca3", "transformer"),
    "recurrent_transformer": ("#4cc9f0", "recurrent transformer"),
    "persistence": ("#9a9a9a", "persistence"),
    "linear": ("#8d8741", "linear"),
    "quadratic": ("#1d6fa5", "quadratic"),
    "reservoirs": ("#01665e", "parallel reservoirs"),
    "solver": ("#000000", "solver, finer step"),
}
BANDED = ("transformer", "reservoirs")  # whose band is shown: all would hide each other
VIOLIN = 5  # different values at least, for a density
SHOWN = ("rhn", "transformer", "reservoirs")  # whose forecast is shown: R's classes, and the rival
Content = dict[str, Any]


def best(content: Content, dataset: str) -> dict[str, str]:
    """Class -> its arm that was valid for longest on the part that selects, in the order of
    CLASSES."""
    found: dict[str, tuple[float, str]] = {}
    for arm in ranked(content, dataset):
        told = content["arms"][f"{dataset}/{arm}"]["metrics"].get(SELECTS)
        one, name = (told["mean"] if told else 0.0, arm), arm.split("-")[0]
        found[name] = max(found.get(name, one), one)
    return {name: found[name][1] for name in CLASSES if name in found}


def draw(evaluated: Path, folder: Path, content: Content, dataset: str) -> None:
    """Write DATASET-curves.png and DATASET-forecasts.png into `folder`, and DATASET-trials.png
    where arguments were searched."""
    told, arms = read_json(evaluated / CURVES), best(content, dataset)
    about = content["about"][dataset]
    time = (np.arange(about["horizon"]) + 1) * about["step"] * about["unit"]
    cells = {name: next(c for c in told["order"] if arm_of(c) == arm) for name, arm in arms.items()}
    bands = {name: told["curves"][cell] for name, cell in cells.items()}
    save(curves(bands, arms, time, about["threshold"]), folder / f"{dataset}-curves.png")
    images = np.load(evaluated / IMAGES, allow_pickle=False)
    shown = {name: images[1 + told["order"].index(cells[name])] for name in SHOWN if name in cells}
    labels = {name: called(arms[name]) for name in shown}
    show = fields if about["system"]["system"] == "kuramoto" else traces
    path = folder / f"{dataset}-forecasts.png"
    save(show(images[0], shown, labels, time, about), path, shaded=show is fields)
    if searched := tables(evaluated.parent.parent, dataset):
        save(trials(searched), folder / f"{dataset}-trials.png")


def trials(searched: dict[str, pl.DataFrame]) -> Any:
    """Valid times on the test part of all finished trials of each class, as violins (document R,
    figures 9 and 10), and against those on the part that trains."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    shown = [name for name in CLASSES if name in searched]
    for place, name in enumerate(shown):
        colour, words = CLASSES[name]
        known = searched[name].filter(pl.col("state") == "finished")
        test, train = (known[f"vpt_{part}"].to_numpy() for part in ("test", "train"))
        if len(np.unique(test)) >= VIOLIN:
            body = left.violinplot(test, [place], showmedians=True, widths=0.8)
            for part in (
                *body["bodies"],
                *(body[k] for k in ("cmedians", "cmins", "cmaxes", "cbars")),
            ):
                part.set_color(colour)
        left.plot(np.full(len(test), place), test, "o", ms=3, color=colour, alpha=0.6)
        counted = f"{words}, {len(test)} of {searched[name].height} trials finished"
        right.plot(train, test, "o", ms=4, color=colour, alpha=0.7, label=counted)
    left.set_xticks(range(len(shown)), [CLASSES[name][1] for name in shown], fontsize=8)
    left.set(ylabel="valid time on the test part, Lyapunov times", title="trials of each class")
    right.set(
        xlabel="valid time on the part that trains, Lyapunov times",
        ylabel="on the test part",
        title="train against test",
    )
    right.axline((0, 0), slope=1, color="black", lw=0.8, ls=":")
    right.legend(fontsize=7.5)
    return figure


def line(band: list[float | None]) -> np.ndarray:
    """A curve as drawn: a gap where it is infinite."""
    return np.array([np.nan if one is None else one for one in band])


def curves(bands: dict[str, Any], arms: dict[str, str], time: np.ndarray, threshold: float) -> Any:
    """NRMSE against time: the median over starts, of some with the band from 5 to 95 %."""
    figure, panel = plt.subplots(figsize=(7.5, 4.2))
    for name, band in bands.items():
        colour, _ = CLASSES[name]
        style = "--" if name in ("persistence", "linear", "solver") else "-"
        panel.plot(time, line(band["0.5"]), style, color=colour, lw=1.6, label=called(arms[name]))
        if name in BANDED:
            low, high = line(band["0.05"]), line(band["0.95"])
            panel.fill_between(time, low, high, color=colour, alpha=0.12, lw=0)
    panel.axhline(threshold, color="black", lw=0.8, ls=":")
    panel.set(xlabel="time, Lyapunov times", ylabel="NRMSE, median over starts", ylim=(0, 1.6))
    panel.set_xlim(0, time[-1])
    panel.legend(fontsize=7.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def fields(
    truth: np.ndarray,
    shown: dict[str, np.ndarray],
    labels: dict[str, str],
    time: np.ndarray,
    about: dict[str, Any],
) -> Any:
    """Space-time images (H, O): the truth above; below, forecast and difference of each."""
    count = len(shown)
    figure, panels = plt.subplots(
        1 + 2 * count, 1, figsize=(8, 1.25 * (1 + 2 * count)), sharex=True, layout="constrained"
    )
    rows = [("truth", truth)]
    for name, image in shown.items():
        rows += [(labels[name], image), ("forecast − truth", image - truth)]
    extent = (float(time[0]), float(time[-1]), 0.0, float(about["system"]["length"]))
    for panel, (title, image) in zip(np.atleast_1d(panels), rows, strict=True):
        drawn = panel.imshow(
            image.T, aspect="auto", origin="lower", extent=extent, cmap="RdBu_r", vmin=-3, vmax=3
        )
        panel.set_title(title, fontsize=9, loc="left")
        panel.set_ylabel("x", fontsize=8)
        panel.grid(False)
    panels[-1].set_xlabel("time, Lyapunov times")
    figure.colorbar(drawn, ax=panels, label="standard deviations", aspect=50)
    return figure


def traces(
    truth: np.ndarray,
    shown: dict[str, np.ndarray],
    labels: dict[str, str],
    time: np.ndarray,
    about: dict[str, Any],
) -> Any:
    """The first four observed values against time: the truth, and each forecast."""
    count = min(4, truth.shape[1])
    figure, panels = plt.subplots(count, 1, figsize=(8, 1.5 * count), sharex=True)
    for place, panel in enumerate(panels):
        panel.plot(time, truth[:, place], color="black", lw=1.6, label="truth")
        for name, image in shown.items():
            panel.plot(time, image[:, place], lw=1.1, color=CLASSES[name][0], label=labels[name])
        panel.set_ylabel(f"X{place + 1} [sd]")
        panel.set_xlim(0, time[-1])
    panels[0].legend(fontsize=7.5, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    panels[-1].set_xlabel("time, Lyapunov times")
    return figure
