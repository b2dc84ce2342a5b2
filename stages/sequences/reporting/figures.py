"""Figures of models of sequences in numbers: quality against passes, learning, densities (thesis
4.3, D.1).

PNGs with fixed metadata (drawing.save): the same numbers give the same bytes. Units: nats a token;
passes of a burst are rounds, as the thesis counts them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from stages.figures.curves import curves
from stages.figures.drawing import numbered, plt, save
from stages.sequences import comparisons
from stages.sequences.reporting.arms import (
    RANKS,
    SHOWN,
    Cells,
    at,
    first,
    rank_of,
    ranked,
    shares_of,
    short,
)
from stages.sequences.reporting.canvas import DPI, MARKS, SAMPLERS, colour

Points = dict[str, tuple[float, ...]]  # sampler -> passes, quality, low, high


def costs(
    cells: Cells, about: dict[str, Any], dataset: str, arm: str, key: str, scale: float
) -> Points:
    """What each sampler of an arm costs and what its samples are worth."""
    points: Points = {}
    for sampler in sorted(first(cells, dataset, arm).get("samplers", {}), key=rank_of):
        where = ("samplers", sampler, comparisons.prompt_of(about["kind"]), "metrics")
        cost, worth = (at(cells, dataset, arm, *where, name) for name in ("rounds", key))
        if cost and worth:
            ends = (scale * worth.get(end, worth["mean"]) for end in ("low", "high"))
            points[sampler] = (cost["mean"], scale * worth["mean"], *ends)
    return points


def marked(axes: Axes, arm: str, points: Points) -> int:
    """An arm's samplers, a mark a kind; how many kinds were drawn."""
    drawn = 0
    for kind, mark in MARKS.items():
        some = [
            (sampler, one)
            for sampler, one in points.items()
            if sampler.startswith(kind) and one[0] > 0
        ]
        if not some:
            continue
        x, y, low, high = np.array([one for _, one in some]).T
        axes.plot(
            x,
            y,
            mark,
            ls="-" if len(some) > 1 else "",
            lw=0.9,
            ms=6,
            color=colour(arm),
            mec="white",
            mew=0.5,
            label=f"{short(arm)}: {SAMPLERS[kind]}",
        )
        axes.vlines(x, low, high, color=colour(arm), lw=1.1)
        for (sampler, _), across, up in zip(some, x, y, strict=True):
            if kind in ("burst", "window", "diffusion"):
                axes.annotate(
                    sampler.rpartition("_")[2],
                    (across, up),
                    xytext=(0, 7 if kind == "burst" else -13),
                    ha="center",
                    textcoords="offset points",
                    fontsize=8,
                    color=colour(arm),
                )
        drawn += 1
    return drawn


def fewest(axes: Axes, law: dict[str, dict[str, float]]) -> None:
    """The fewest passes there can be, of the thesis' number of orders, else of the most."""
    told = comparisons.TRIED.removeprefix("burst_")
    for orders, one in law.items():
        if orders == (told if told in law else list(law)[-1]):
            axes.axvline(
                one["mean"], color="black", lw=0.9, ls="--", label="the fewest passes there can be"
            )


def passes(cells: Cells, about: dict[str, Any], dataset: str, path: Path) -> bool:
    """Figure 4.6: quality of the samples against passes, a mark a sampler; the fewest passes
    there can be; what trivial samplers reach."""
    if not SHOWN[about["kind"]]:
        return False
    key, title, scale = SHOWN[about["kind"]][0]
    figure, axes = plt.subplots(figsize=(8.4, 4.0), layout="constrained")
    drawn, spread = 0, {}
    for arm in ranked(cells, dataset):
        points = costs(cells, about, dataset, arm, key, scale)
        if arm not in RANKS[:4]:
            drawn += marked(axes, arm, points)
            continue
        for one in points.values():
            if one[1] > 0 or about["kind"] != "climb":  # no 0 on a logarithmic axis
                spread.setdefault(one[1], []).append(short(arm))
    fewest(axes, about.get("bounds", {}))
    for value, names in spread.items():
        axes.axhline(value, color="#8a929c", lw=0.8, ls=":")
        axes.annotate(
            ", ".join(names),
            (0.01, value),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=8,
            color="#5f6b7a",
        )
    axes.set(xlabel="passes (of bursts: draft and check together)", ylabel=title, xscale="log")
    if about["kind"] == "climb":
        axes.set_yscale("log")
        numbered(axes.yaxis)
    numbered(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return bool(drawn)


def learning(cells: Cells, about: dict[str, Any], dataset: str, path: Path) -> bool:
    """Validation loss against steps, a line an arm in its own order; the entropy of the law.
    False where there is no history."""
    found = curves(cells, dataset)
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for arm in (arm for arm in ranked(cells, dataset) if arm in found):
        steps, losses = found[arm]
        axes.plot(steps, losses.mean(0), lw=1.6, color=colour(arm), label=short(arm))
        axes.fill_between(steps, losses.min(0), losses.max(0), color=colour(arm), alpha=0.15, lw=0)
    if "entropy" in about:
        axes.axhline(about["entropy"], color="black", lw=0.9, ls="--", label="entropy of the law")
    axes.set(xlabel="step", ylabel="validation loss [nats a token]", xscale="log")
    numbered(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return True


def densities(cells: Cells, about: dict[str, Any], dataset: str, path: Path) -> bool:
    """Distance of learned densities from exact ones, of mazes a path cell, by the share of tokens
    known; companions grey. False where none was compared."""
    judged = comparisons.apart_of(about["kind"])
    shares, arms = shares_of(cells, dataset, judged), ranked(cells, dataset)
    arms = [arm for arm in arms if shares and at(cells, dataset, arm, judged, shares[0])]
    if not arms:
        return False
    figure, axes = plt.subplots(figsize=(6.6, 3.2), layout="constrained")
    width = 0.8 / len(arms)
    for k, arm in enumerate(arms):
        found = [at(cells, dataset, arm, judged, share) for share in shares]
        places = np.arange(len(shares)) + (k - (len(arms) - 1) / 2) * width
        heights = [one["mean"] for one in found]
        ends = np.array([[one.get(end, one["mean"]) for one in found] for end in ("low", "high")])
        axes.bar(
            places,
            heights,
            0.92 * width,
            color=colour(arm),
            alpha=0.55 if arm == "uniform" else 1,
            label=short(arm),
        )
        axes.vlines(places, *ends, color="black", lw=1)
    axes.axhline(comparisons.CLOSE, color="black", lw=0.9, ls="--", label="read as a match below")
    axes.set_xticks(range(len(shares)), [f"{share} % known" for share in shares])
    apart = "total variation from the exact density"
    axes.set(ylabel=f"{apart},\na path cell" if judged != "posteriors" else apart)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return True
