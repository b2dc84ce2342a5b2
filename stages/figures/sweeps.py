"""The figure of a data set's sweeps: of each its history, the best expected of k draws, what the
error depends on, and error by argument.

Error: RMSE per component on validation slices, knots. Expected validation performance is that of
Dodge et al. (2019, "Show Your Work"), for the least of k errors: of draws made independently from
the empirical distribution. Those of `tpe` are not; there the curve describes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RMSE = "rmse_component_kn"
ROW_IN, WIDTH_IN = 2.5, 11.5
TICKS = 5  # at most, on a logarithmic axis
SPREAD = 0.85  # the share of the errors that an axis shows; draws beyond it are clipped to its end
DEPENDENT = "draws of tpe are not independent:\na description, no expectation"


def expected_best(values: np.ndarray) -> np.ndarray:
    """E[least of k draws with replacement], k = 1 ... n, of n errors (n,) -> (n,).

    With v ascending, the least of k is at least v_i with probability ((n - i + 1) / n)^k, i = 1 ...
    n; it is v_i with that less the next.
    """
    ascending, n = np.sort(np.asarray(values, dtype=float)), len(values)
    beyond = np.arange(n, -1, -1) / n
    return np.array(
        [(ascending * (beyond[:-1] ** k - beyond[1:] ** k)).sum() for k in range(1, n + 1)]
    )


def importances_of(folder: Path) -> dict[str, pl.DataFrame]:
    """Model -> argument, scale (log, linear or words), importance, by; from `folder` =
    PROFILE/sweeps/DATASET."""
    return {
        file.parent.name: pl.read_csv(file, infer_schema_length=0).with_columns(
            pl.col("importance").cast(float)
        )
        for file in sorted(folder.glob("[!.]*/importance.csv"))
    }


def drawn(
    trials: dict[str, pl.DataFrame],
    importances: dict[str, pl.DataFrame],
    samplers: dict[str, str],
    colour: Callable[[str], str],
) -> Figure:
    """Two rows of panels a sweep. `trials` and `importances` by model, as in trials.csv and
    importance.csv; `samplers` as in best.yaml."""
    figure: Any = plt.figure(figsize=(WIDTH_IN, 2 * ROW_IN * len(trials)))
    for part, (model, table) in zip(
        np.atleast_1d(figure.subfigures(len(trials), 1)), trials.items(), strict=True
    ):
        known = table.filter(pl.col(RMSE).is_not_null()).sort("draw")
        without = table.height - known.height
        missing = f", {without} of them without an error (pruned or not finite)" if without else ""
        part.suptitle(
            f"{model}: {table.height} draws by {samplers[model]}{missing}",
            fontsize=11,
            fontweight="bold",
        )
        arguments = importances[model]
        above = [
            part.add_subplot(place)
            for place in part.add_gridspec(
                1, 3, left=0.06, right=0.99, bottom=0.59, top=0.86, wspace=0.36
            )
        ]
        limits = reach(known[RMSE].to_numpy())
        history(above[0], table, known, limits, colour(model))
        expectation(above[1], known, samplers[model] == "tpe", colour(model))
        dependence(above[2], arguments, colour(model))
        below = part.add_gridspec(
            1, max(3, arguments.height), left=0.06, right=0.99, bottom=0.12, top=0.42, wspace=0.22
        )
        for place, row in enumerate(arguments.iter_rows(named=True)):
            panel = part.add_subplot(below[place])
            cut(panel, known, row["argument"], row["scale"], limits, colour(model))
            panel.set_ylabel("RMSE [kn]" if place == 0 else "")
    return figure


def reach(errors: np.ndarray) -> tuple[float, float]:
    """The axis of errors: from the least to the SPREAD quantile, with a margin."""
    low, high = errors.min(), np.quantile(errors, SPREAD)
    margin = 0.06 * (high - low) or 0.01 * abs(low) or 1.0
    return low - margin, high + margin


def history(
    panel: "Axes",
    table: pl.DataFrame,
    known: pl.DataFrame,
    limits: tuple[float, float],
    colour: str,
) -> None:
    """Each draw's error and the least so far; ticks at the foot are draws without an error."""
    number, errors = known["draw"].to_numpy() + 1, known[RMSE].to_numpy()
    panel.plot(
        number, np.minimum(errors, limits[1]), "o", ms=3, color=colour, alpha=0.45, clip_on=False
    )
    panel.step(
        [*number, table.height],
        [*np.minimum.accumulate(errors), errors.min()],
        where="post",
        lw=1.8,
        color=colour,
    )
    lost = table.filter(pl.col(RMSE).is_null())["draw"].to_numpy() + 1
    panel.plot(lost, np.full(len(lost), limits[0]), "|", ms=9, color="black", clip_on=False)
    panel.set(xlabel="draws", ylabel="RMSE [kn]", ylim=limits, title="error, and the least so far")
    # of MaxNLocator, which an axis has from the start
    panel.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]


def expectation(panel: "Axes", known: pl.DataFrame, dependent: bool, colour: str) -> None:
    """The best to be expected of k draws, and the least of all found."""
    errors = known[RMSE].to_numpy()
    panel.plot(np.arange(1, len(errors) + 1), expected_best(errors), lw=1.8, color=colour)
    panel.axhline(errors.min(), lw=1, ls=":", color="black")
    panel.set(xlabel="k draws", title="expected best of k draws")
    panel.margins(x=0.02)
    # of MaxNLocator, which an axis has from the start
    panel.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if dependent:
        panel.text(
            0.97,
            0.95,
            DEPENDENT,
            transform=panel.transAxes,
            ha="right",
            va="top",
            fontsize=7.5,
            color="#555555",
        )


def dependence(panel: "Axes", arguments: pl.DataFrame, colour: str) -> None:
    """A bar an argument; where nothing was computed, why."""
    panel.set_title("importance")
    if arguments["importance"].null_count():
        panel.text(
            0.5,
            0.5,
            arguments["by"][0].replace(": ", ":\n"),
            transform=panel.transAxes,
            ha="center",
            va="center",
            fontsize=8,
        )
        panel.set_axis_off()
        return
    places = np.arange(arguments.height)
    panel.barh(places, arguments["importance"].to_numpy(), color=colour, alpha=0.85)
    panel.set_yticks(places, arguments["argument"].to_list(), fontsize=9)
    panel.invert_yaxis()
    panel.grid(axis="y", visible=False)
    panel.set(xlabel=f"share ({arguments['by'][0]})", xlim=(0, 1))


def cut(
    panel: "Axes",
    known: pl.DataFrame,
    argument: str,
    scale: str,
    limits: tuple[float, float],
    colour: str,
) -> None:
    """Error against one argument, whatever the others; the best draw is ringed."""
    values, errors = known[argument].to_list(), known[RMSE].to_numpy()
    if scale == "words":
        words = sorted(set(values))
        places = np.array([words.index(value) for value in values], dtype=float)
        panel.set_xticks(range(len(words)), words, fontsize=8)
        panel.margins(x=0.25)
    else:
        places = np.array(values, dtype=float)
        if scale == "log":
            panel.set_xscale("log")
            panel.set_xticks(ticks(places.min(), places.max()), minor=False)
            panel.xaxis.set_major_formatter("{x:g}")
            panel.minorticks_off()
    panel.plot(
        places, np.minimum(errors, limits[1]), "o", ms=3.5, color=colour, alpha=0.55, clip_on=False
    )
    panel.plot(places[errors.argmin()], errors.min(), "o", ms=8, mfc="none", mec="black", mew=1.2)
    panel.set(xlabel=argument, ylim=limits)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends of a logarithmic axis: 1, 2 and 5 in each decade, or less,
    so that there are at most TICKS."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    inside: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        inside = [
            step * 10.0**decade
            for decade in decades
            for step in steps
            if low <= step * 10.0**decade <= high
        ]
        if len(inside) <= TICKS:
            break
    return inside[:: -(-len(inside) // TICKS) or 1]
