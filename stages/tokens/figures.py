"""The family's figures: what a layer costs against the length (thesis figure 2.2a, counted); the
error or the accuracy against the rows that train (figures 2.2b and 2.4); the pseudo-attention of
each net on one sequence of shapes (figure B.1); drawn pictures with their statements, met or not;
what is expected of a random search (figure 2.3)."""

from pathlib import Path
from typing import Any

import numpy as np

from stages.figures.drawing import MARKS, numbered, plt, save
from stages.files import read_json
from stages.tables.table import arm_of
from stages.tokens.layout import DRAWN, FIRST, MAPS
from stages.tokens.tables import MEASURE, amounts, called, shares
from stages.tokens.tasks import pictures

Content = dict[str, Any]
PAINT = {"white": "#f4f4f4", "red": "#c1121f", "green": "#2a9d3a", "blue": "#1d4fa5",
         "yellow": "#f2c230", "black": "#202020"}  # fmt: skip
MET, UNMET = "#1a7a2e", "#b3121d"


def draw(evaluated: Path, folder: Path, content: Content) -> None:
    """Write cost.png, SET-maps.png, SET-gallery.png, SET-tuning.png and SET-rows.png into `folder`,
    what was measured of them."""
    if "costs" in content:
        save(cost(content["costs"]), folder / "cost.png")
    for dataset, mine in content.get("tuning", {}).items():
        save(tuning(mine), folder / f"{dataset}-tuning.png")
    for dataset in shares(content):
        if curves := amounts(content, dataset):
            save(by_rows(curves, content["about"][dataset]["task"]), folder / f"{dataset}-rows.png")
    for dataset, about in content["about"].items():
        home = evaluated / dataset
        shown = read_json(home / "metrics.json")["about"]["shown"]
        if about["task"] == "value":
            found, first = (np.load(home / name, allow_pickle=False) for name in (MAPS, FIRST))
            save(maps(found, first, shown), folder / f"{dataset}-maps.png", shaded=True)
        if about["task"] == "next":
            found = np.load(home / DRAWN, allow_pickle=False)
            last = {name: one for name, one in zip(shown, found, strict=True) if name != "true"}
            made = about["made"]
            form = pictures.Form(made["high"], made["wide"], made["points"], made["statements"])
            name, one = next(iter(last.items()))
            save(gallery(one, form, called(arm_of(name))), folder / f"{dataset}-gallery.png")


def cost(curves: dict[str, dict[str, int]]) -> Any:
    """Millions of FLOPs against the length, each mixer a line."""
    figure, panel = plt.subplots(figsize=(7.5, 4.4))
    for mark, (name, mine) in zip(MARKS, curves.items(), strict=False):
        points = sorted((int(count), one / 1e6) for count, one in mine.items())
        lengths, flops = zip(*points, strict=True)
        panel.plot(lengths, flops, marker=mark, ms=4, lw=1.4, label=name)
    panel.set(xscale="log", yscale="log", xlabel="tokens N", ylabel="millions of FLOPs, one layer")
    numbered(panel.xaxis)
    panel.legend(fontsize=8)
    return figure


def by_rows(curves: dict[str, dict[int, list[float]]], task: str) -> Any:
    """Each arm's main number against the rows that train: a line through the means, a mark for each
    seed."""
    figure, panel = plt.subplots(figsize=(7.5, 4.4))
    scale, unit = (1, "") if task == "value" else (100, " [%]")
    for mark, (arm, mine) in zip(MARKS, curves.items(), strict=False):
        counts = sorted(mine)
        means = [scale * np.mean(mine[count]) for count in counts]
        (line,) = panel.plot(counts, means, lw=1.4)
        points = [(count, scale * one) for count in counts for one in mine[count]]
        panel.plot(*zip(*points, strict=True), mark, color=line.get_color(), ms=4, ls="",
                   label=called(arm))  # fmt: skip
    panel.set(xscale="log", xlabel="rows that train", ylabel=f"{MEASURE[task]}{unit}")
    numbered(panel.xaxis)
    if task == "value":
        panel.set_yscale("log")
        numbered(panel.yaxis)
    panel.legend(fontsize=8)
    return figure


def tuning(searched: dict[str, dict[str, Any]]) -> Any:
    """The best accuracy expected after k trials of each model; and that of each learning rate."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    for mark, (name, mine) in zip(MARKS, searched.items(), strict=False):
        best = [100 * one for one in mine["expected"]]
        left.plot(range(1, len(best) + 1), best, marker=mark, ms=4, lw=1.4, label=name)
        points = sorted(zip(mine["learning_rates"], mine["accuracies"], strict=True))
        rates, found = zip(*points, strict=True)
        right.plot(rates, [100 * one for one in found], marker=mark, ms=4, lw=0.8)
    left.set(xlabel="trials", ylabel="expected best accuracy [%]")
    left.xaxis.get_major_locator().set_params(integer=True)
    left.legend(fontsize=8)
    right.set(xscale="log", xlabel="learning rate", title="each trial")
    return figure


def maps(found: np.ndarray, first: np.ndarray, names: list[str]) -> Any:
    """Input gradients (cells, N, N) of the first seed of each net, each answer's scaled by its
    largest; above, the sequence."""
    cells: dict[str, int] = {}
    for cell, name in enumerate(names):
        cells.setdefault(arm_of(name), cell)
    figure, panels = plt.subplots(
        2, len(cells), figsize=(3.1 * len(cells), 4.4), layout="constrained", squeeze=False,
        gridspec_kw={"height_ratios": (1, 3)}, sharex=True,
    )  # fmt: skip
    values, kinds = first
    for (above, below), (arm, cell) in zip(panels.T, cells.items(), strict=True):
        above.plot(values, color="black", lw=1)
        above.set_title(called(arm), fontsize=8)
        for shape in range(1, 5):
            places = np.nonzero(kinds == shape)[0]
            if len(places):
                colour = "#1d6fa5" if shape < 3 else "#c1121f"
                above.axvspan(places[0], places[-1], color=colour, alpha=0.15, lw=0)
        one = found[cell] / np.maximum(found[cell].max(1, keepdims=True), 1e-12)
        below.imshow(one, cmap="Greys", vmin=0, vmax=0.7, aspect="auto")
        below.grid(False)
        below.set_xlabel("input at")
    panels[0, 0].set_ylabel("input [sd]", fontsize=8)
    panels[1, 0].set_ylabel("answer at")
    return figure


def gallery(sequences: np.ndarray, form: pictures.Form, name: str) -> Any:
    """Drawn pictures (S, N) with their statements below, met ones green, others red."""
    columns = 4
    rows = -(-len(sequences) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(2.3 * columns, 2.6 * rows), squeeze=False, layout="constrained"
    )
    figure.suptitle(f"drawn by {name}", fontsize=10)
    for panel in panels.ravel():
        panel.axis("off")
    for panel, one in zip(panels.ravel(), sequences, strict=False):
        shaped = one[form.said :].reshape(form.rows, form.columns)
        colours = [[PAINT[pictures.WORDS[cell]] for cell in row] for row in shaped]
        for row, line in enumerate(colours):
            for column, colour in enumerate(line):
                place = (column, form.rows - 1 - row)
                panel.add_patch(plt.Rectangle(place, 1, 1, fc=colour, ec="#bbbbbb", lw=0.5))
        panel.set(xlim=(0, form.columns), ylim=(0, form.rows))
        panel.set_aspect("equal")
        for number, statement in enumerate(pictures.parsed(one[: form.said].tolist())):
            met = pictures.met(statement, shaped)
            text = f"{'✓' if met else '✗'} {' '.join(statement).replace('_', ' ')}"
            colour = MET if met else UNMET
            panel.annotate(
                text,
                (0, 0),
                xytext=(0, -9 * (number + 1)),  # points, so that lines stand apart at every size
                textcoords="offset points",
                color=colour,
                fontsize=7.5,
            )
    return figure
