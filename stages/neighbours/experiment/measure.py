"""How many points each search looks at, and whether it finds the right ones (thesis tables 1.3 and
A.1-A.3, figure 1.4).

Every method answers the same queries; its answer is compared bit by bit with a brute force of its
own, done here in NumPy, one query at a time, rounded as stages/neighbours/contract.py says.
Comparisons are points whose distance to a query was computed; their share is of those that the
query sees, which is what linear search computes. Times are measured elsewhere (`make
bench-neighbours`): here all is reproducible. Queries are drawn independently from the set, so the
intervals (90 %) come from a plain bootstrap over them.
Shapes: N points, M queries, k neighbours, R resamples.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
import torch
from tqdm import tqdm

from stages import seeds
from stages.errors import DataError
from stages.neighbours import methods
from stages.neighbours.experiment import sets
from stages.params import Search
from stages.scores import bootstrap

SCALES = {
    "iso": (1.0, 1.0, 1.0, 1.0),
    "aniso": (1.0, 1.0, 4.0, 9.0),
}  # weights of squared differences in x, y, z, t
KDTREES = {
    "plain": ("iso", False),
    "scaled": ("aniso", False),
    "masked": ("aniso", True),
}  # appendix A: variant -> scale, causal?
BOUNDS = (
    "segment",
    "box",
)  # of TNN: from the line AB and the deviation from it, or from the box of the points
Truth = tuple[np.ndarray, np.ndarray]  # square distances and indices, (M, k) each
Build = Callable[..., object]


@dataclass(frozen=True)
class Settings:
    """What to search with (params.yaml), bootstrap resamples, torch threads."""

    search: Search
    resamples: int
    threads: int = 1


@dataclass(frozen=True)
class Cell:
    """One way to ask: a method with its options, the number of neighbours, the scale, and
    whether later points are masked."""

    name: str
    method: str
    k: int
    arm: str
    masked: bool = True
    options: dict[str, int | str] = field(default_factory=dict)


def plan(search: Search, name: str) -> list[Cell]:
    """Every method at every k and scale; at the largest k the KD-tree's leaves, TNN by either
    bound, and over K and F (figure 1.4).

    The last only where there are trajectories: a search in which every segment must be fetched one
    by one takes an hour and tells nothing.
    """
    most = max(search.neighbours)
    cells = [
        Cell(f"{method}-{arm}-k{k}", method, k, arm)
        for method in methods.METHODS
        for arm in SCALES
        for k in search.neighbours
    ]
    cells += [
        Cell(f"kdtree-{variant}-leaf{leaf}-k{most}", "kdtree", most, arm, masked, {"leaf": leaf})
        for leaf in search.leaves
        for variant, (arm, masked) in KDTREES.items()
    ]
    cells += [
        Cell(f"trajectory-{bound}_bound-k{most}", "trajectory", most, "iso", True, {"bound": bound})
        for bound in BOUNDS
    ]
    surface = [
        Cell(
            f"trajectory-K{segment}-F{fetch}",
            "trajectory",
            most,
            "iso",
            True,
            {"segment": segment, "fetch": fetch},
        )
        for segment in search.segments
        for fetch in search.fetch
    ]
    return cells + (surface if name not in (sets.RANDOM, sets.SIMULTANEOUS) else [])


def brute_force(
    points: np.ndarray, queries: np.ndarray, k: int, scale: np.ndarray, window: float | None
) -> Truth:
    """The k nearest points (N, 4) of queries (M, 4) at least `window` older (None: of all), ties by
    lowest index; inf and -1 beyond them.

    scale (4,) or (M, 4) in the points' dtype. Independent of stages/neighbours: the oracle of every
    method.
    """
    order = np.argsort(points[:, 3], kind="stable")
    columns, times = np.ascontiguousarray(points[order].T), points[order, 3].astype(np.float64)
    distances = np.full((len(queries), k), np.inf, points.dtype)
    indices = np.full((len(queries), k), -1, np.int64)
    for row, (query, weight) in enumerate(
        zip(queries, np.broadcast_to(scale, queries.shape), strict=True)
    ):
        seen = (
            len(points)
            if window is None
            else np.searchsorted(times, np.float64(query[3]) - window, side="right")
        )
        square = weight[0] * np.square(query[0] - columns[0, :seen])
        for axis in (1, 2, 3):
            square += weight[axis] * np.square(query[axis] - columns[axis, :seen])
        near = (
            np.flatnonzero(square <= np.partition(square, k - 1)[k - 1])
            if seen > k
            else np.arange(seen)
        )
        found = near[np.lexsort((order[near], square[near]))[:k]]
        distances[row, : len(found)], indices[row, : len(found)] = square[found], order[found]
    return distances, indices


def wrong_rows(answer: Any, truth: Truth) -> np.ndarray:
    """(M,) True where an answer's distances, indices or mask differ from the first k columns of
    the truth in any bit."""
    distances, indices, mask = (
        part.numpy(force=True) for part in (answer.square_distance, answer.index, answer.mask)
    )
    k = distances.shape[1]
    right = (
        (distances == truth[0][:, :k])
        & (indices == truth[1][:, :k])
        & (mask == (truth[1][:, :k] >= 0))
    )
    return ~right.all(1)


def truths(points: sets.PointSet, cells: list[Cell]) -> dict[tuple[str, bool], Truth]:
    """The brute force of each scale and mask that the cells ask for, at the largest of their k."""
    array, queries = points.points.numpy(), points.asked.numpy()
    most: dict[tuple[str, bool], int] = {}
    for cell in cells:
        most[cell.arm, cell.masked] = max(cell.k, most.get((cell.arm, cell.masked), 0))
    return {
        (arm, masked): brute_force(
            array, queries, k, np.array(SCALES[arm], array.dtype), points.window if masked else None
        )
        for (arm, masked), k in most.items()
    }


def making_of(cell: Cell) -> tuple[str, list[Any]]:
    """The method and its options: cells that share them share an index."""
    return cell.method, sorted(cell.options.items())


def answers(points: sets.PointSet, cells: list[Cell], build: Build) -> pl.DataFrame:
    """What every cell did for every query: cell, row of the query in the set, comparisons,
    points seen, whether the answer is wrong."""
    known, tables = truths(points, cells), []
    everything = np.full(len(points.queries), len(points.points))
    progress = tqdm(total=len(cells), desc=f"search {points.name}", unit="cell", disable=None)
    group: Any
    for _, group in groupby(
        sorted(cells, key=making_of), key=making_of
    ):  # one index serves all its cells
        group = list(group)
        index: Any = build(group[0].method, points.points, points.trajectory, **group[0].options)
        for cell in group:
            found = index.query(
                points.asked,
                cell.k,
                window=points.window if cell.masked else None,
                scale=torch.tensor(SCALES[cell.arm]),
            )
            tables.append(
                pl.DataFrame(
                    {
                        "cell": [cell.name] * len(points.queries),
                        "query": points.queries.numpy(),
                        "comparisons": found.comparisons.numpy(),
                        "seen": points.seen() if cell.masked else everything,
                        "wrong": wrong_rows(found, known[cell.arm, cell.masked]),
                    }
                )
            )
            progress.update()
    progress.close()
    order = {cell.name: place for place, cell in enumerate(cells)}
    return pl.concat(tables).sort(pl.col("cell").replace_strict(order), maintain_order=True)


def drawn(queries: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """How often each query stands in each resample, (R, M): drawn one by one with replacement."""
    return rng.multinomial(queries, np.full(queries, 1 / queries), size=resamples)


def summarise(table: pl.DataFrame, counts: np.ndarray) -> dict[str, dict[Any, Any]]:
    """The metrics of one cell with their 90 % intervals, from its rows (M) and the resamples'
    counts (R, M)."""
    sums = table.select("comparisons", "seen", "wrong").to_numpy().astype(np.float64)
    total, draws = (
        sums.sum(0),
        np.einsum("rm,mc->rc", counts.astype(np.float64), sums),
    )  # not BLAS: the same bits for any threads
    if not total[1]:
        raise DataError(
            "no query sees any point",
            where=str(table["cell"][0]),
            remedy="choose a shorter window, or more queries",
        )
    n = len(table)
    draws = draws[draws[:, 1] > 0]
    found = {
        "comparisons": (total[0] / n, draws[:, 0] / n, "points"),
        "seen": (total[1] / n, draws[:, 1] / n, "points"),
        "comparisons_share": (total[0] / total[1], draws[:, 0] / draws[:, 1], "1"),
        "wrong_rows": (total[2], draws[:, 2], "queries"),
    }
    return {
        name: {"value": float(value), "unit": unit, "n": n}
        | dict(zip(("low", "high"), bootstrap.interval(values), strict=True))
        for name, (value, values, unit) in found.items()
    }


def measure(
    points: sets.PointSet, settings: Settings, build: Build = methods.build
) -> tuple[dict[Any, Any], pl.DataFrame]:
    """The content of metrics.json for one point set, and what each query took."""
    cells = plan(settings.search, points.name)
    table = answers(points, cells, build)
    counts = drawn(
        len(points.queries),
        settings.resamples,
        seeds.stream(settings.search.seed, "bootstrap", points.name),
    )
    entries = {
        cell.name: {
            "metrics": summarise(table.filter(pl.col("cell") == cell.name), counts),
            "queries": len(points.queries),
        }
        for cell in cells
    }
    return {
        "cells": entries,
        "points": len(points.points),
        "trajectories": int(points.trajectory.unique().numel()),
        "window": points.window,
    }, table
