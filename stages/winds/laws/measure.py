"""Cells of winds measured as forecasts that tell a law, beside what is measured of every forecast
(stages/winds/measure.py): the share of winds within the central 50 % interval, and the weights.

A law is the normal one of a prediction's mean and standard deviation, as all scores of winds have
it. It is a Gaussian head's own; of a latent process, whose law is a mixture, it has the same first
two moments. The share is derived from the predictions that are kept, so that a judge can derive it
again (agree.py). Shapes: N targets, S slices. Units: m/s.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages import files
from stages.scores import groups, runs
from stages.training import store
from stages.winds import measure
from stages.winds.evaluation_data import EvaluationData, Settings
from stages.winds.laws.coverage import covered
from stages.winds.laws.layout import COVERAGE


def evaluate(cells: list[Path], prepared: Path, final: Path, settings: Settings) -> None:
    """Measure the cells (their folders) and write `final` as the evaluation of winds does."""
    measure.evaluate(cells, prepared, final, settings)
    told = files.read_json(final / "metrics.json")
    for run in cells:
        table = pl.read_parquet(final / f"predictions-{run.name}.parquet")
        told["cells"][run.name] = completed(told["cells"][run.name], table, run, settings)
    files.write_json(final / "metrics.json", told)


def cell(run: Path, prepared: Path, settings: Settings) -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    data = EvaluationData.open(prepared, settings)
    entry, table, _ = measure.measure(measure.load(run), data, settings)
    return completed(entry, table, run, settings)


def completed(
    entry: dict[Any, Any], table: pl.DataFrame, run: Path, settings: Settings
) -> dict[Any, Any]:
    """A cell's entry with its weights, and with its coverage where its predictions (`table`, a
    line a target) have a spread."""
    model, _ = store.load(str(run / measure.shell.WEIGHTS))
    weights = sum(one.numel() for one in model.parameters())
    inside = covered(table)
    if inside is None:
        return entry | {"weights": weights}
    share = share_of(inside, table["slice"].to_numpy())
    return entry | {"metrics": entry["metrics"] | {COVERAGE: share}, "weights": weights}


def share_of(inside: np.ndarray, slices: np.ndarray) -> dict[str, Any]:
    """The mean of N values with its 90 % interval over runs of slices; without one where the test
    is too short."""
    sums = groups.grouped({"inside": inside, "n": np.ones(len(inside))}, slices)
    found: dict[str, Any] = {"value": float(inside.mean()), "unit": "1", "n": len(inside)}
    if not runs.too_short(np.unique(slices)):
        without = runs.without_each(np.stack([sums["inside"], sums["n"]], 1))
        low, high = runs.interval(found["value"], without[:, 0] / without[:, 1])
        found["low"], found["high"] = max(low, 0.0), min(high, 1.0)
    return found
