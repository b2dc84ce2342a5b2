"""Cells of winds measured as forecasts that tell a law, beside what is measured of every forecast
(stages/winds/measure.py): the share of winds within the central 50 % interval, how their winds of
whole levels flow (levels.py), and the weights.

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
from stages.winds import measure
from stages.winds.contexts.nearby import KINDS
from stages.winds.evaluation_data import EvaluationData, Settings
from stages.winds.laws import flow, levels
from stages.winds.laws.coverage import covered
from stages.winds.laws.layout import COVERAGE, LEVELS

Truth = levels.Truth | None


def evaluate(
    cells: list[Path], prepared: Path, final: Path, settings: Settings, truth: Truth
) -> None:
    """Measure the cells (their folders) and write `final` as the evaluation of winds does."""
    measure.evaluate(cells, prepared, final, settings)
    told, data = files.read_json(final / "metrics.json"), EvaluationData.open(prepared, settings)
    for run in cells:
        table = pl.read_parquet(final / f"predictions-{run.name}.parquet")
        entry, fields = completed(told["cells"][run.name], table, run, data, truth)
        told["cells"][run.name] = entry
        if fields is not None:
            file = final / f"{LEVELS}-{run.name}.parquet"
            fields.write_parquet(file, compression="zstd", statistics=False)
    files.write_json(final / "metrics.json", told)


def cell(run: Path, prepared: Path, settings: Settings, truth: Truth) -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    data = EvaluationData.open(prepared, settings)
    entry, table, _ = measure.measure(measure.load(run), data, settings)
    return completed(entry, table, run, data, truth)[0]


def completed(
    entry: dict[Any, Any], table: pl.DataFrame, run: Path, data: EvaluationData, truth: Truth
) -> tuple[dict[Any, Any], pl.DataFrame | None]:
    """A cell's entry with its weights, with its coverage where its predictions (`table`, a line a
    target) have a spread, and with how its levels flow; and these levels. Averages of an hour or a
    day have none."""
    model = measure.load(run).eval()
    metrics, inside, fields = dict(entry["metrics"]), covered(table), None
    if inside is not None:
        metrics[COVERAGE] = share_of(inside, table["slice"].to_numpy())
    if model.context in ("slice", *KINDS):
        fields = levels.kept(model, data, truth)
        metrics |= flow.told(fields) | levels.exact(model, data)
    weights = sum(one.numel() for one in model.parameters())
    return entry | {"metrics": metrics, "weights": weights}, fields


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
