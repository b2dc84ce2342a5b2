"""Figures of mazes: paths, densities of shortest paths, and a burst as it goes (thesis 4.3).

Shapes: S shown sequences, T tokens, R rows and K columns of a maze.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import ListedColormap

from stages.figures.drawing import save
from stages.sequences import comparisons
from stages.sequences.evaluation import maze
from stages.sequences.reporting.arms import Cells, order_of, short
from stages.sequences.reporting.canvas import DPI, Tensors, chosen, panels, sampled, worded
from stages.tables.table import arm_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAZES = 3  # mazes of a figure
STAGES = 8  # pictures of a strip at most
CELLS = ListedColormap(
    ["#ffffff", "#39414d", "#2a9d8f", "#e07a1f", "#6baed6"]
)  # empty, wall, start, goal, path
WAITING = "#d5d8dc"


def draw_maze(panel: "Axes", grid: np.ndarray, given: np.ndarray | None = None) -> None:
    """A maze (R, K); crosses where what was given (R, K) was changed into something else than
    path."""
    panel.imshow(grid, cmap=CELLS, vmin=0, vmax=4, interpolation="nearest")
    if given is not None:
        wrong = np.argwhere(np.where(grid == maze.PATH, given != maze.EMPTY, grid != given))
        panel.plot(wrong[:, 1], wrong[:, 0], "x", color="#c1121f", ms=5, mew=1.6)


def draw_density(panel: "Axes", given: np.ndarray, chance: np.ndarray) -> None:
    """Chances of the path (R, K) on a maze's empty cells."""
    panel.imshow(given, cmap=CELLS, vmin=0, vmax=4, interpolation="nearest")
    shown = np.ma.masked_where((given != maze.EMPTY) | (chance <= 0), chance)
    panel.imshow(shown, cmap="Blues", vmin=-0.15, vmax=1, interpolation="nearest")


def mazes(tensors: Tensors, cells: Cells, dataset: str, law: dict[str, Any], path: Path) -> bool:
    """A row a maze: its true path, the exact density of shortest paths, the learned one, how
    often samples pass a cell, some samples."""
    shape, chosen_ones = (law["rows"], law["columns"]), chosen(tensors, cells, dataset)
    size, kept = shape[0] * shape[1], sampled(tensors, "prompt")
    ours = [made for (cell, _), made in kept.items() if order_of(arm_of(cell)) == "random"]
    dense = next(
        (name for name in sorted(tensors) if name.endswith("/density") and "random" in name), None
    )
    if not chosen_ones:
        return False
    count = min(MAZES, len(tensors["truth"]))
    titles = [
        "true path",
        "exact density\nof shortest paths",
        *(["learned density"] if dense else []),
        *([f"share of {len(ours)} samples\nin random order"] if ours else []),
    ]
    titles += [f"{short(arm_of(cell))}\n{worded(sampler)}" for cell, sampler in chosen_ones]
    figure, axes = panels(count, len(titles), 1.75, 1.75 * shape[0] / shape[1] + 0.42)
    for row in range(count):
        given, true = (part.reshape(shape) for part in np.split(tensors["truth"][row], 2))
        draw_maze(axes[row, 0], true)
        exact = maze.density(given, given, np.zeros(shape, bool))
        draw_density(axes[row, 1], given, exact[..., maze.PATH])
        if dense:
            draw_density(axes[row, 2], given, tensors[dense][row].reshape(shape))
        if ours:
            passed = np.mean([one[row, size:].reshape(shape) == maze.PATH for one in ours], axis=0)
            draw_density(axes[row, 2 + bool(dense)], given, passed)
        for panel, key in zip(
            axes[row, len(titles) - len(chosen_ones) :], chosen_ones, strict=True
        ):
            made = kept[key][row, size:].reshape(shape)
            draw_maze(panel, made, given)
            verdict = maze.judge(made, given)
            panel.set_xlabel(
                "shortest" if verdict.optimal else "correct" if verdict.correct else "wrong",
                fontsize=8,
                color="#1d6f42" if verdict.correct else "#c1121f",
            )
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set_title(title, fontsize=8)
    save(figure, path, dpi=DPI)
    return True


def accepted(
    tensors: Tensors, cell: str, sampler: str, row: int, known: int
) -> tuple[np.ndarray, bool]:
    """When the token at each position (T) of a sample came: by the burst that accepted it (from 1;
    0 given), where that was kept (`round`, by the order's steps); else by its place in the
    order. And whether by bursts."""
    rounds, order = (tensors.get(f"{cell}/{sampler}/prompt/{part}") for part in ("round", "order"))
    when = np.empty(len(order[row]), np.int64)
    when[order[row]] = (
        rounds[row] if rounds is not None else np.maximum(np.arange(len(order[row])) + 1 - known, 0)
    )
    return when, rounds is not None


def strip(
    tensors: Tensors,
    cells: Cells,
    dataset: str,
    about: dict[str, Any],
    law: dict[str, Any],
    path: Path,
) -> bool:
    """A burst as it goes: after each picture's burst (or number of tokens) what is accepted, the
    newest dotted; grey waits.

    Of the bursts of the arm in random order that with the fewest orders, which takes most
    rounds."""
    key = next(
        (
            (cell, sampler)
            for cell, sampler in chosen(tensors, cells, dataset)
            if sampler == comparisons.TRIED
        ),
        None,
    )
    if key is None:
        return False
    key = (
        key[0],
        comparisons.tried(
            sampler for cell, sampler in sampled(tensors, "prompt") if cell == key[0]
        )[0],
    )
    shape, known = (law["rows"], law["columns"]), about["prompt"]
    size, rows = shape[0] * shape[1], min(2, len(tensors["truth"]))
    whens = [accepted(tensors, *key, row, known) for row in range(rows)]
    most = max(int(when.max()) for when, _ in whens)
    ends = np.unique(
        np.linspace(most / STAGES if most > STAGES else 1, most, min(most, STAGES))
        .round()
        .astype(int)
    )
    figure, axes = panels(rows, len(ends), 1.55, 1.55 * shape[0] / shape[1] + 0.3)
    waiting = ListedColormap([WAITING])
    for row, (when, by_round) in enumerate(whens):
        made = tensors["/".join((*key, "prompt/tokens"))][row, size:].reshape(shape)
        when = when[size:].reshape(shape)
        for panel, end, before in zip(axes[row], ends, (0, *ends[:-1]), strict=True):
            draw_maze(panel, made)
            panel.imshow(
                np.ma.masked_where(when <= end, np.zeros(shape)),
                cmap=waiting,
                interpolation="nearest",
            )
            fresh = np.argwhere((when > before) & (when <= end) & (when > 0))
            panel.plot(fresh[:, 1], fresh[:, 0], ".", color="#c1121f", ms=5, mec="white", mew=0.5)
            if row == 0:
                panel.set_title(f"after {'burst' if by_round else 'token'} {end}", fontsize=8)
            if end >= when.max() > before:
                panel.set_xlabel("all accepted", fontsize=8)
    save(figure, path, dpi=DPI)
    return True
