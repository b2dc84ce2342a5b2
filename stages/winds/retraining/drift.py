"""Drift: how far the rows that came lie from those the champion was trained on, column by column.

The training rows F are kept as a summary of fixed length (quantiles, mean, standard deviation,
shares of ten bins); the new rows G are whole. Three statistics, each with a threshold of its own in
params.yaml (retraining.drift): `kolmogorov_smirnov` sup |F - G|, 0 to 1; `wasserstein_sd` the area
between F and G in standard deviations of F (1 where F has none: then in the column's own unit);
`stability_index` the sum of (g - f) ln(g / f) over the shares of F's deciles, shares below FLOOR
counted as FLOOR (so at most 8.3). There are no p-values: rows of one minute share aircraft and
weather and are not independent draws, so a test at its nominal level would call nearly every hour
drifted. Units: m/s, degrees, feet, winds a minute.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stages import params
from stages.errors import ParamsError

QUANTILES = 201  # of a summary: F is known to half a percent
BINS = 10
FLOOR = 1e-4
STRIPS = 10_000  # of the area between two distributions
STATES = ("steady", "drifted", "broken")  # worse and worse
Columns = dict[str, np.ndarray]


def columns(t_s: np.ndarray, table: Columns, slice_s: float) -> Columns:
    """What is watched of rows (N,) with times in Unix seconds: u, v, speed, place, and the winds
    a minute of slices that hold any."""
    found = {name: np.asarray(table[name], np.float64) for name in ("u_m_s", "v_m_s")}
    found["speed_m_s"] = np.hypot(found["u_m_s"], found["v_m_s"])
    found |= {
        name: np.asarray(table[name], np.float64) for name in ("lat_deg", "lon_deg", "alt_ft")
    }
    counts = np.unique(np.floor(np.asarray(t_s) / slice_s), return_counts=True)[1]
    return found | {"winds_per_min": counts * (60.0 / slice_s)}


def summary(values: np.ndarray) -> dict[str, Any]:
    """A column (N,) as quantiles, mean, standard deviation (population), inner edges of ten bins
    of equal share, and their shares."""
    quantiles = np.quantile(values, np.linspace(0, 1, QUANTILES))
    edges = np.unique(
        np.quantile(values, np.arange(1, BINS) / BINS)
    )  # equal values may leave fewer bins
    return {
        "n": len(values),
        "mean": float(values.mean()),
        "sd": float(values.std()),
        "quantiles": quantiles.tolist(),
        "edges": edges.tolist(),
        "shares": shares(values, edges).tolist(),
    }


def reference(watched: Columns) -> dict[str, dict[str, Any]]:
    """The summaries of all columns: what a champion keeps of its training rows."""
    return {name: summary(values) for name, values in watched.items()}


def shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Which part of the values lies in each bin; a value on an edge belongs to the bin below it."""
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1) / len(
        values
    )


def kolmogorov_smirnov(known: Mapping[str, Any], values: np.ndarray) -> float:
    """sup |F - G|. F is a straight line between its quantiles and jumps where several of them
    are equal: right to 1/200 + 1/n."""
    grid, level = np.asarray(known["quantiles"]), np.linspace(0, 1, QUANTILES)
    there, n = np.union1d(grid, values), len(values)
    # np.interp takes the last of equal quantiles, so F at a jump is its upper end; its lower end is
    # the upper one of F mirrored
    at = np.interp(there, grid, level, left=0.0, right=1.0)
    before = 1.0 - np.interp(-there, -grid[::-1], 1.0 - level[::-1], left=0.0, right=1.0)
    ordered = np.sort(values)
    gaps = (
        at - np.searchsorted(ordered, there, side="right") / n,
        before - np.searchsorted(ordered, there, side="left") / n,
    )
    return float(max(np.abs(gap).max() for gap in gaps))


def wasserstein_sd(known: Mapping[str, Any], values: np.ndarray) -> float:
    """The mean distance between values of equal rank, in standard deviations of F: right to its
    range / 200."""
    rank = (np.arange(STRIPS) + 0.5) / STRIPS
    ours = np.interp(rank, np.linspace(0, 1, QUANTILES), known["quantiles"])
    theirs = np.sort(values)[(rank * len(values)).astype(int)]
    return float(np.abs(ours - theirs).mean() / (known["sd"] if known["sd"] > 1e-9 else 1.0))


def stability_index(known: Mapping[str, Any], values: np.ndarray) -> float:
    """The population stability index over the reference's deciles; an empty bin counts as FLOOR."""
    f = np.maximum(known["shares"], FLOOR)
    g = np.maximum(shares(values, np.asarray(known["edges"])), FLOOR)
    return float(((g - f) * np.log(g / f)).sum())


STATISTICS: dict[str, Callable[[Mapping[str, Any], np.ndarray], float]] = {
    "kolmogorov_smirnov": kolmogorov_smirnov,
    "wasserstein_sd": wasserstein_sd,
    "stability_index": stability_index,
}


def check(thresholds: Mapping[str, params.Drift]) -> None:
    """ParamsError naming every threshold whose statistic does not exist."""
    problems = [
        f"retraining.drift.{name}: no such statistic{params.nearest(name, STATISTICS)}"
        for name in thresholds
        if name not in STATISTICS
    ]
    if problems:
        raise ParamsError(
            "a statistic of drift is unknown",
            where="params.yaml",
            found="; ".join(problems),
            remedy=f"use {', '.join(STATISTICS)}, or none",
        )


def state(value: float, threshold: params.Drift) -> str:
    """`steady`, `drifted` above `warn`, `broken` above `refuse`."""
    return STATES[(value > threshold.warn) + (value > threshold.refuse)]


def compare(
    known: Mapping[str, Mapping[str, Any]], watched: Columns, thresholds: Mapping[str, params.Drift]
) -> dict[str, Any]:
    """Every (column, statistic) with its value and state, the worst state, and in words what is
    not steady."""
    found, told = {}, {name: [] for name in STATES}
    for column, values in watched.items():
        found[column] = {}
        for name, threshold in thresholds.items():
            value = round(STATISTICS[name](known[column], values), 6)
            found[column][name] = {"value": value, "state": state(value, threshold)}
            told[state(value, threshold)].append(f"{column} {name} {value:.3g}")
    worst = max((name for name in STATES if told[name]), key=STATES.index, default=STATES[0])
    return {
        "state": worst,
        "drifted": told["drifted"],
        "broken": told["broken"],
        "columns": found,
        "rows": {"reference": known["u_m_s"]["n"], "new": len(watched["u_m_s"])},
        "thresholds": {
            name: threshold.model_dump(mode="json") for name, threshold in thresholds.items()
        },
    }
