"""Infilling as a table and as figures: samples that keep tokens given anywhere, beside free ones
(thesis 4.3.7, figures 4.2 and 4.3).

What evaluation/infill.py measured of σ-GPT in random order: CELL/infilled/TASK/{metrics},
and in samples.safetensors CELL/infilled/TASK_{truth,given,tokens,free}. Tasks of mazes: `on`, a
cell of the shown shortest path; `off`, one of another way. Of flights: `points`, some altitudes.
`cells` and `about` are those of tables.py.
Shapes: S shown sequences, K samples of each, T tokens, R K rows and columns of a maze. Units:
shares in %, ft, minutes.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.sequences.evaluation import maze, vertical
from stages.sequences.reporting.arms import Cells, Told, at, called, members, number, ranked
from stages.tables.table import NONE, Table

if TYPE_CHECKING:
    from stages.sequences.reporting.canvas import Tensors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = 3  # mazes of a figure
FLIGHTS = 3
TASKS = {"on": "a cell of the shortest path", "off": "a cell of another way"}
SHARES = (
    ("correct", "correct [%]"),
    ("free_correct", "correct, free [%]"),
    ("joined", "through the cell [%]"),
    ("free_joined", "through the cell, free [%]"),
    ("free_joined_exact", "the same, by the law [%]"),
)
ERRORS = (
    ("rmse", "RMSE [ft]"),
    ("rmse_mean", "RMSE of the mean of samples [ft]"),
    ("rmse_straight", "RMSE of straight lines [ft]"),
    ("free_rmse", "RMSE, free [ft]"),
    ("free_rmse_mean", "RMSE of the mean, free [ft]"),
)
CAPTION = {
    "maze": "Infilling: free samples, and samples of the same maze of which one more cell (ringed) "
    "is given.",
    "climb": "Infilling: test flights of which the points are given, beside samples with the first "
    "altitude alone: median, 25-75 % and 5-95 % of samples, single ones thin; the truth in black, "
    "straight lines between the points dotted.",
}


def table(cells: Cells, about: dict[str, Any], dataset: str) -> Told | None:
    """A row an arm and task: what its samples are worth beside free ones; None where nothing was
    infilled."""
    mazes = about["kind"] == "maze"
    columns, scale = (SHARES, 100) if mazes else (ERRORS, 1)
    rows = []
    for arm in ranked(cells, dataset):
        for task, words in (TASKS if mazes else {"points": "altitudes at 3 points"}).items():

            def of(key, arm=arm, task=task):
                return at(cells, dataset, arm, "infilled", task, key)

            if of(columns[0][0]):
                shown = (
                    number(of(key), scale, interval=place < 3)
                    for place, (key, _) in enumerate(columns)
                )
                told = (between(of("free_joined_between")),) if mazes else ()
                seeds = str(len(members(cells, dataset, arm)))
                rows.append((called(arm), seeds, words, *shown, *told))
    titles = ("model", "seeds", "given beside the prompt", *(title for _, title in columns))
    titles += ("mazes where that is neither 0 nor 100 %",) if mazes else ()
    words = "`free`: samples of the same sequences with the prompt alone" + (
        (
            "; shares are of the test mazes that have such a cell; 'through the cell': the marked "
            "cells join start, cell and goal; with the cell given the law's own rate is 100; 'by "
            "the law': the mean over these mazes of the exact chance that their path passes the "
            "cell, known from the maze alone where it is 0 or 100 %"
        )
        if mazes
        else "; the mean of 8 samples is a forecast of one value, as the straight line is"
    )
    return (
        (
            Table(f"infilling on {dataset}", titles, tuple(rows), frozenset({0, 2})),
            words.replace("`", "'"),
        )
        if rows
        else None
    )


def between(found: dict[str, Any] | None) -> str:
    """'3 of 100' mazes."""
    return f"{found['mean']:.0f} of {found['n']:,}" if found else NONE


def first(tensors: "Tensors", task: str) -> str | None:
    """The beginning of the names of the first cell's tensors of a task."""
    return next(
        (
            name.removesuffix("truth")
            for name in sorted(tensors)
            if name.endswith(f"/infilled/{task}_truth")
        ),
        None,
    )


def mazes(tensors: "Tensors", law: dict[str, Any], path: Path) -> bool:
    """A row a maze: its true path, a free sample, a sample of each task with the given cell
    ringed. False without tensors."""
    from stages.figures.drawing import save  # with matplotlib
    from stages.sequences.reporting.canvas import DPI, panels  # with matplotlib
    from stages.sequences.reporting.mazes import draw_maze  # with matplotlib

    tasks = [(task, start) for task in TASKS if (start := first(tensors, task))]
    if not tasks:
        return False
    shape, begin = (
        (law["rows"], law["columns"]),
        tasks[-1][1],
    )  # mazes with another way, where there are any
    size, truth = shape[0] * shape[1], tensors[begin + "truth"]
    rows = min(ROWS, len(truth))
    figure, axes = panels(rows, 2 + len(tasks), 1.9, 1.9 * shape[0] / shape[1] + 0.45)
    titles = ["true path", "free sample", *(f"given:\n{TASKS[task]}" for task, _ in tasks)]
    for row in range(rows):
        given, true = (part.reshape(shape) for part in np.split(truth[row], 2))
        draw_maze(axes[row, 0], true)
        judge(axes[row, 1], tensors[begin + "free"][row, size:].reshape(shape), given)
        for panel, (_, start) in zip(axes[row, 2:], tasks, strict=True):
            same = np.flatnonzero((tensors[start + "truth"] == truth[row]).all(1))
            if not len(same):
                panel.set_visible(False)
                continue
            judge(panel, tensors[start + "tokens"][same[0], size:].reshape(shape), given)
            asked = np.argwhere(tensors[start + "given"][same[0], size:].reshape(shape))
            panel.plot(asked[:, 1], asked[:, 0], "o", mfc="none", mec="#c1121f", ms=12, mew=2)
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set_title(title, fontsize=9)
    save(figure, path, dpi=DPI)
    return True


def judge(panel: "Axes", made: np.ndarray, given: np.ndarray) -> None:
    """A sample (R, K) of a maze (R, K), and its verdict below."""
    from stages.sequences.reporting.mazes import draw_maze  # with matplotlib

    draw_maze(panel, made, given)
    verdict = maze.judge(made, given)
    panel.set_xlabel(
        "shortest" if verdict.optimal else "correct" if verdict.correct else "wrong",
        fontsize=9,
        color="#1d6f42" if verdict.correct else "#c1121f",
    )


def flights(tensors: "Tensors", law: dict[str, Any], path: Path) -> bool:
    """Figure 4.2: a column a flight, those that climb or descend most; above with the points
    given, below free. False without tensors."""
    from stages.figures.drawing import plt, save  # with matplotlib
    from stages.sequences.reporting.canvas import DPI, colour  # with matplotlib
    from stages.sequences.reporting.flights import shade  # with matplotlib

    begin = first(tensors, "points")
    if begin is None:
        return False
    altitude, flown = vertical.feet(tensors[begin + "truth"], law)
    rows = np.argsort(-np.ptp(altitude, axis=1), kind="stable")[:FLIGHTS]
    figure, axes = plt.subplots(
        2,
        len(rows),
        figsize=(3.3 * len(rows), 4.6),
        layout="constrained",
        sharex="col",
        sharey="col",
        squeeze=False,
    )
    minutes = np.arange(law["steps"]) * law["step_s"] / 60
    for column, row in zip(axes.T, rows, strict=True):
        ends, true = int(flown[row].sum()), altitude[row] / 1000
        known = tensors[begin + "given"][row, 1 + law["steps"] :].astype(bool)
        wide = np.ptp(true[:ends])
        span = (true[:ends].min() - 0.25 * wide - 0.5, true[:ends].max() + 0.25 * wide + 0.5)
        for panel, part in zip(column, ("tokens", "free"), strict=True):
            lines = vertical.feet(tensors[begin + part][row], law)[0][:, :ends]
            shade(
                panel,
                lines,
                minutes[:ends],
                0,
                span,
                colour("sigma_gpt-random") if part == "tokens" else "#8a929c",
            )
            panel.plot(minutes[:ends], true[:ends], color="black", lw=1.2)
            points = np.flatnonzero(known) if part == "tokens" else np.flatnonzero(known)[:1]
            panel.plot(minutes[points], true[points], "o", color="black", ms=6)
            if part == "tokens":
                panel.plot(
                    minutes[:ends],
                    np.interp(minutes[:ends], minutes[points], true[points]),
                    ":",
                    color="black",
                    lw=1.2,
                )
            panel.tick_params(labelsize=8)
        column[-1].set_xlabel("min", fontsize=9)
    for panel, words in zip(axes[:, 0], ("points given", "first altitude alone"), strict=True):
        panel.set_ylabel(f"{words}\n[1000 ft]", fontsize=9)
    save(figure, path, dpi=DPI)
    return True


def draw(tensors: "Tensors", kind: str, law: dict[str, Any], path: Path) -> bool:
    """The figure of a kind of sequences; False where nothing was infilled."""
    return {"maze": mazes, "climb": flights}[kind](tensors, law, path) if kind in CAPTION else False
