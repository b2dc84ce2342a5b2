"""The figures of the neighbour search: figure 1.4's surfaces over K and F, the speed table as a
chart, and why the printed bound fails.

PNGs with fixed metadata (figures.save): the same numbers give the same bytes. Surfaces: rows K
(points a segment), columns F (segments a fetch); shares of comparisons in percent, counted by the
DAG; speed-up over linear search from the benchmark, where there is one.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.figures.drawing import plt, save
from stages.neighbours.experiment.tables import SURFACE, SearchResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = {
    "compiled": "#c1121f",
    "boxes": "#2a9d8f",
    "forest": "#1d6fa5",
    "trajectory": "#c9a227",
    "linear": "#9a9a9a",
}
MARKS = {"iso": "o", "aniso": "D"}
GOALS = {"boxes", "compiled"}


def surface(found: SearchResults, name: str, path: Path) -> bool:
    """Share of comparisons and, where timed, speed-up over K and F. False when there are not two
    values of each."""
    cells = {
        (int(m[1]), int(m[2])): 100
        * found.metric(name, arm.partition("/")[2], "comparisons_share")["mean"]
        for arm in found.arms
        if arm.startswith(name + "/") and (m := SURFACE.fullmatch(arm.partition("/")[2]))
    }
    rows = [row for row in found.times.get("surface", []) if row["set"] == name]
    device = "cuda" if any(row["device"] == "cuda" for row in rows) else "cpu"
    timed = {
        (row["segments"], row["fetch"]): row["speed_up"] for row in rows if row["device"] == device
    }
    where = {"cuda": "GPU", "cpu": "CPU"}[device]
    panels = [(cells, "points looked at, % of linear search (lower is better)", "YlOrBr", "%.1f")]
    panels += (
        [(timed, f"times faster than linear search, {where} (higher is better)", "YlGnBu", "%.2g")]
        if timed
        else []
    )
    if len({k for k, _ in cells}) < 2 or len({f for _, f in cells}) < 2:
        return False
    figure, axes = plt.subplots(
        1, len(panels), figsize=(5.2 * len(panels), 3.8), squeeze=False, layout="constrained"
    )
    for panel, (values, title, colours, form) in zip(axes[0], panels, strict=True):
        heat(panel, values, colours, form)
        panel.set_title(title, fontsize=10)
    save(figure, path)
    return True


def heat(panel: "Axes", values: dict[tuple[int, int], float], colours: str, form: str) -> None:
    """A grid of numbers with their colours: K down, F across; the eye finds the best in bold."""
    segments, fetches = sorted({k for k, _ in values}), sorted({f for _, f in values})
    grid = np.array([[values.get((k, f), np.nan) for f in fetches] for k in segments])
    panel.imshow(grid, cmap=colours, aspect="auto", norm="log")
    best = np.nanargmin(grid) if colours == "YlOrBr" else np.nanargmax(grid)
    middle = np.sqrt(np.nanmin(grid) * np.nanmax(grid))
    for place, value in enumerate(grid.ravel()):
        row, column = divmod(place, len(fetches))
        panel.text(
            column,
            row,
            form % value,
            ha="center",
            va="center",
            fontsize=9,
            weight="bold" if place == best else "normal",
            color="white" if value > 1.5 * middle else "black",
        )
    # Matplotlib makes words of numbers
    panel.set_xticks(range(len(fetches)), fetches)  # type: ignore[arg-type]
    # Matplotlib makes words of numbers
    panel.set_yticks(range(len(segments)), segments)  # type: ignore[arg-type]
    panel.set(xlabel="F, segments a fetch", ylabel="K, points a segment")
    panel.grid(visible=False)


def ratios(times: dict[str, Any], path: Path) -> bool:
    """Each method's time over the yardstick's at every k and scale, a panel a set. False where
    nothing was timed."""
    rows = [row for row in times.get("speed", []) if row["method"] in METHODS]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    if not sets:
        return False
    asked = sorted({row["k"] for row in rows})
    figure, axes = plt.subplots(
        1,
        len(sets),
        figsize=(5.4 * len(sets), 4.0),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for panel, name in zip(axes[0], sets, strict=True):
        for place, (method, shade) in enumerate(METHODS.items()):
            for arm, mark in MARKS.items():
                mine = {
                    row["k"]: row["ratio"]
                    for row in rows
                    if (row["set"], row["method"], row["arm"]) == (name, method, arm)
                }
                x = [asked.index(k) + 0.13 * (place - 2) for k in mine]
                panel.plot(
                    x,
                    list(mine.values()),
                    mark,
                    color=shade,
                    ms=6,
                    mfc=shade if arm == "iso" else "white",
                    mew=1.4,
                    label=f"{method}, scale {'1, 1, 1, 1' if arm == 'iso' else '1, 1, 4, 9'}",
                )
        for goal in times.get("goals", []):
            goal_line(panel, goal, name, asked)
        panel.axhline(1, color="black", lw=1)
        panel.set_yscale("log")
        panel.set_xticks(range(len(asked)), [f"k = {k}" for k in asked])
        panel.set_title(name.replace("_", " "))
    axes[0, 0].set_ylabel(
        "time over SciPy's cKDTree, asked for more\nuntil enough are causal (= 1)"
    )
    axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path)
    return True


def goal_line(panel: "Axes", goal: dict[str, Any], name: str, asked: list[int]) -> None:
    """A short bar where a method should be at one k (both scales have the same goal)."""
    words = goal["goal"].split(", ")
    method = words[0].partition(" over cKDTree")[0]
    if len(words) == 4 and method in GOALS and words[1] == name and words[3].startswith("k="):
        middle = asked.index(int(words[3][2:])) + 0.13 * (list(METHODS).index(method) - 2)
        panel.plot(
            [middle - 0.06, middle + 0.06],
            [goal["bar"]] * 2,
            color=METHODS[method],
            lw=3,
            alpha=0.6,
            zorder=0,
        )


def bound(example: dict[str, Any], path: Path) -> None:
    """The counterexample: a run that bends towards the query, the line it is taken for, and how
    near each bound says that it can be."""
    run, (x, y) = np.array(example["run"])[:, :2], example["query"][:2]
    foot, near, rival = example["projection"][:2], run[example["nearest"]], example["rival"][:2]
    printed, mended = np.sqrt(example["printed"]), np.sqrt(example["segment"])
    figure, axes = plt.subplots(figsize=(7.4, 5.2))
    axes.add_patch(plt.Circle((x, y), printed, color="#c1121f", alpha=0.10, lw=0))
    for radius, shade, style in ((printed, "#c1121f", (0, (5, 3))), (mended, "#1d6f42", "-")):
        axes.add_patch(plt.Circle((x, y), radius, fill=False, ec=shade, lw=1.8, ls=style))
    axes.plot(*run[[0, -1]].T, color="#5f6b7a", lw=1.2, ls=":")
    axes.plot(*run.T, "o-", color="#1c2430", lw=2, ms=6)
    axes.plot([x, near[0]], [y, near[1]], color="#1d6f42", lw=1.2)
    axes.plot([x + 0.06, foot[0] + 0.06], [y, foot[1]], color="#5f6b7a", lw=1, ls=":")
    axes.plot(x, y, "*", color="#e07a1f", ms=18, mec="white")
    axes.plot(*rival, "s", color="#1d6fa5", ms=8)
    true, away = np.sqrt(example["true"]), np.sqrt(example["rival_true"])
    lead = {
        "arrowprops": {"arrowstyle": "-", "color": "#9a9a9a", "lw": 0.8, "shrinkB": 4},
        "va": "center",
    }
    for text, at, place, more in (
        ("query", (x, y), (x + 0.3, y), {"va": "center"}),
        ("A", run[0], run[0] - (0.3, 0), {"va": "center", "ha": "right", "weight": "bold"}),
        ("B", run[-1], run[-1] + (0.3, 0), {"va": "center", "weight": "bold"}),
        (f"nearest point of the run:\n{true:g} away", near, (x - 5.2, near[1]), lead),
        (f"another run's point:\n{away:g} away", rival, (x + 2.6, rival[1]), lead),
        (
            (
                f"line AB: {example['distance_to_line']:g} away, the run strays by "
                f"{example['deviation']:g}"
            ),
            foot,
            (x, -0.3),
            {"ha": "center", "va": "top", "color": "#5f6b7a"},
        ),
        (
            f"printed bound: 'nothing of\nthe run within {printed:.2f}'",
            None,
            (x - 0.86 * printed - 0.2, y + 0.55 * printed),
            {"ha": "right", "color": "#c1121f"},
        ),
        (
            f"mended bound:\n{mended:.2f}",
            None,
            (x + 0.8 * mended, y + 0.45),
            {"ha": "right", "color": "#1d6f42"},
        ),
    ):
        axes.annotate(text, place if at is None else at, xytext=place, fontsize=9, **more)
    axes.set_aspect("equal")
    axes.set(xlim=(x - 5.4, x + 5.0), ylim=(-0.9, y + printed + 0.25))
    axes.axis("off")
    save(figure, path)
