"""Figures C.7 and C.4 of the thesis: the error by layers, width and GeoFNO's width, and what a step
costs by the context's size.

PNGs with fixed metadata (figures.save): the same numbers give the same bytes. C.7, all axes
logarithmic: above, MSE of test sets with 90 % intervals, each size at its best learning rate, the
count of parameters beside it; below, the least validation loss against the rate. C.4: ms and MiB of
a training step against the context's points, both axes logarithmic; in the legend the exponents
fitted to the larger sizes.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from stages.fields import costs, sensitivity
from stages.figures.colours import colour
from stages.figures.drawing import MARKS, numbered, plt, save
from stages.tables.table import datasets_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

DPI = 80
LINES = {
    "hypermixer": (colour("hypermixer"), "o", "-"),
    "msa": (colour("msa"), "s", "-"),
    "torch": ("#1c2430", "D", "-"),
    "layer ours": (colour("msa"), "^", ":"),
    "layer flash": ("#1c2430", "v", ":"),
    "layer efficient": ("#5f6b7a", "P", ":"),
    "layer math": ("#8c510a", "X", ":"),
}


def sensitive(
    arms: dict[str, Any], cells: dict[str, Any], dataset: str, rates: dict[str, float], path: Path
) -> bool:
    """Figure C.7: a panel a varied argument, and where there are several learning rates one of them
    below (beside it, of one argument alone). False where nothing was varied."""
    found = sensitivity.scans(arms, cells, dataset, rates)
    if not found:
        return False
    rows = 2 if any(scan.lines() for scan in found) else 1
    down, across = (rows, len(found)) if len(found) > 1 else (1, rows)
    figure, axes = plt.subplots(
        down,
        across,
        figsize=(3.9 * across, 3.5 * down),
        sharey="row" if len(found) > 1 else False,
        squeeze=False,
        layout="constrained",
    )
    axes = axes.reshape(rows, len(found))
    for column, scan in zip(axes.T, found, strict=True):
        by_size(column[0], scan)
        if rows > 1:
            by_rate(column[1], scan)
    unit = found[0].points[0].mse.get("unit", "1")
    for panel, title in zip(
        axes[:, 0],
        ("MSE, test sets" + ("" if unit == "1" else f" [{unit}]"), "least validation loss"),
        strict=False,
    ):
        numbered(panel.yaxis)
        panel.set_ylabel(title)
    save(figure, path, dpi=DPI)
    return True


def by_size(panel: Any, scan: sensitivity.Scan) -> None:
    """The test error of each size at its best rate, with its interval and count of parameters."""
    values, means = (
        [get(point) for point in scan.points]
        for get in (lambda p: p.value, lambda p: p.mse["mean"])
    )
    shade = colour(scan.model.lower())
    panel.plot(values, means, "o-", color=shade, lw=1.5, ms=5)
    panel.vlines(
        values,
        *([point.end(name) for point in scan.points] for name in ("low", "high")),
        color=shade,
        lw=2,
        alpha=0.6,
    )
    for point in scan.points:
        panel.annotate(
            point.parameters,
            (point.value, point.end("high")),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    panel.set(
        xlabel=f"{scan.argument} of {scan.model}", title=scan.figure, xscale="log", yscale="log"
    )
    marked(panel.xaxis, values)
    panel.margins(x=0.18, y=0.12)


def by_rate(panel: "Axes", scan: sensitivity.Scan) -> None:
    """The least validation loss against the learning rate, a line a size: the larger, the
    darker."""
    lines, shade = scan.lines(), colour(scan.model.lower())
    for number, (value, points) in enumerate(lines.items()):
        panel.plot(
            [point.rate for point in points],
            [point.loss for point in points],
            color=shade,
            marker=MARKS[number % len(MARKS)],
            lw=1.5,
            ms=5,
            alpha=0.35 + 0.65 * (number + 1) / len(lines),
            label=str(value),
        )
    panel.set(xlabel=f"learning rate of {scan.model}", title=scan.rated, xscale="log", yscale="log")
    marked(panel.xaxis, sorted({point.rate for points in lines.values() for point in points}))
    panel.margins(x=0.12, y=0.12)
    if lines:
        panel.legend(title=scan.argument, fontsize=8, title_fontsize=8)


def marked(axis: "Axis", values: list[float]) -> None:
    """Ticks at these values alone."""
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def grown(times: dict[str, Any], path: Path) -> bool:
    """Figure C.4: time left, memory right. False where nothing was measured."""
    found = costs.rows_of(times)
    if not found:
        return False
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.8), layout="constrained")
    for panel, (key, title, *_) in zip(axes, costs.QUANTITIES, strict=True):
        for name, mine in found.items():
            shade, mark, line = LINES[name]
            panel.plot(
                list(mine),
                [row[key] for row in mine.values()],
                mark,
                ls=line,
                lw=1.5,
                ms=5,
                color=shade,
                label=named(times, name),
            )
        panel.set(
            xlabel="points of the context",
            ylabel=title[0].lower() + title[1:],
            xscale="log",
            yscale="log",
        )
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        numbered(panel.yaxis)
    axes[1].legend(
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=8,
        title="exponents of time and memory",
        title_fontsize=8,
    )
    save(figure, path, dpi=DPI)
    return True


def named(times: dict[str, Any], name: str) -> str:
    """A contender with its exponents, without where it ran at too few sizes."""
    fit = costs.growth(times, name)
    return costs.CONTENDERS[name] + (f": {fit['time']:.2f}, {fit['memory']:.2f}" if fit else "")


def draw(home: Path, arms: dict[str, Any], cells: dict[str, Any], folder: Path) -> None:
    """Both figures, as far as there is something to draw, into `folder`; `home` holds what was
    timed."""
    grown(costs.read(home), folder / "costs.png")
    rates = sensitivity.rates(home, cells)
    for dataset in datasets_of(arms):
        sensitive(arms, cells, dataset, rates, folder / f"{dataset}-sensitivity.png")
