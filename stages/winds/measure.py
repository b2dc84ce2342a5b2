"""The trained cells of winds, measured on the held-out minutes (thesis 1.3, C.7).

Every cell is read from its checkpoint and asked for the same targets; the standardised answers are
turned back into m/s with the scaler. slices.parquet holds each slice's squared error, so that
claims can compare models minute by minute without the models; field-CELL.parquet is one minute's
nowcast of a whole level, to look at. Shapes: N target points, S slices.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from stages import files
from stages.scores import pool, shell
from stages.training import store
from stages.winds import forecasts as field
from stages.winds import metrics
from stages.winds.contexts.nearby import KINDS
from stages.winds.evaluation_data import EvaluationData, Settings, lead_name
from stages.winds.recalibration import MINUTES, Recalibration

ERRORS = {  # columns of slices.parquet
    "by": pl.String,
    "bin": pl.String,
    "slice": pl.Int32,
    "n": pl.Int32,
    "squared_error_m2_s2": pl.Float64,
}
JUDGED = ("rmse_component", "rmse_permuted_component")  # also of the validation minutes


def points_of(data: EvaluationData, given: field.Forecast) -> metrics.Points:
    """A forecast, and what it would be from permuted values, beside what was measured and what
    is known of it."""
    place = data.places(given.row)
    rows = data.rows[place]
    truth = (
        rows.select("u_true_m_s", "v_true_m_s")
        .fill_null(float("nan"))
        .to_numpy()
        .astype(np.float64)
    )
    return metrics.Points(
        rows["slice"].to_numpy(),
        given.mean,
        rows.select("u_m_s", "v_m_s").to_numpy().astype(np.float64),
        given.scale,
        truth if np.isfinite(truth).any() else None,
        data.track[place],
        given.outside,
        given.outside_measured,
        given.permuted,
        np.asarray(data.pairs.meta["scaler"]["y_std"], np.float64),
    )


def grouped(
    points: metrics.Points, labels: np.ndarray
) -> tuple[dict[Any, Any], list[tuple[Any, ...]]]:
    """Metrics of each bin, and each bin's squared error by slice as rows (bin, slice, n, squared
    error)."""
    found, rows = {}, []
    for label in np.unique(labels):
        numbers, sums = summed(points.take(labels == label))
        found[str(label)] = metrics.summarise(numbers, sums, metrics.GROUP_METRICS)[0]
        rows += [(str(label), *row) for row in slice_rows(numbers, sums)]
    return found, rows


def summed(points: metrics.Points) -> tuple[np.ndarray, metrics.Sums]:
    """Slice numbers (S,) and the sums of each."""
    return metrics.by_slice(metrics.columns(points), points.slice)


def slice_rows(numbers: np.ndarray, sums: metrics.Sums) -> list[tuple[Any, ...]]:
    """(slice, n, squared error over both components in m²/s²) of each slice."""
    return list(
        zip(
            numbers.tolist(),
            sums["n"].astype(int).tolist(),
            (sums["se_east"] + sums["se_north"]).tolist(),
            strict=True,
        )
    )


def measure(
    model: torch.nn.Module, data: EvaluationData, settings: Settings
) -> tuple[dict[Any, Any], pl.DataFrame, pl.DataFrame]:
    """Everything about one model: its entry of metrics.json, its predictions, its squared errors
    by slice."""
    main = data.pairs.meta["lead_s"]
    model = model.to(settings.device).eval()
    told = field.forecasts(
        model,
        data.contexts,
        field.due(model, data.reached, main),
        settings.device,
        main,
        settings.seed,
    )
    given = told[main]
    points = points_of(data, given)
    place = data.places(given.row)
    validated, recalibration = validation(model, data.validation, settings)
    if recalibration is not None:
        points = replace(points, spread=recalibration.spread(points.scale, data.distance[place]))
    numbers, sums = summed(points)
    values, undefined = metrics.summarise(numbers, sums)
    entry = {"metrics": values | validated, "undefined": undefined, "slices": len(numbers)}
    if recalibration is not None:
        entry["recalibration"] = recalibration.entry(points.scale is not None)
    errors = [("all", "all", *row) for row in slice_rows(numbers, sums)]
    for name, labels in (
        ("altitude", data.bands[place]),
        ("day", data.days[place]),
        ("distance", data.distance[place]),
    ):
        entry[f"by_{name}"], rows = grouped(points, labels)
        errors += [(name, *row) for row in rows]
    entry["by_lead"] = {}
    for lead, slices in data.reached.items():
        if not slices:
            continue
        if lead not in told:
            told = field.forecasts(model, data.contexts, {lead: slices}, settings.device)
        there = points if lead == main else points_of(data, told[lead])
        found, rows = grouped(there, np.full(len(there.slice), lead_name(lead)))
        entry["by_lead"] |= found
        errors += [("lead", *row) for row in rows]
    return (entry, predictions(data, given), pl.DataFrame(errors, orient="row", schema=ERRORS))


def validation(
    model: torch.nn.Module, data: EvaluationData | None, settings: Settings
) -> tuple[dict[str, Any], Recalibration | None]:
    """Its errors on the validation minutes, by which a model is chosen, as NAME_val_UNIT, and what
    its spread is multiplied with; nothing where there are no such minutes, or too few."""
    if data is None:
        return {}, None
    main = data.pairs.meta["lead_s"]
    told = field.forecasts(
        model, data.contexts, {main: data.reached[main]}, settings.device, main, settings.seed
    )
    points = points_of(data, told[main])
    names = [f"{stem}_{unit}" for stem in JUDGED for unit in ("m_s", "kn")]
    values, _ = metrics.summarise(*summed(points), names)
    found = {
        f"{stem}_val_{unit}": values[f"{stem}_{unit}"]
        for stem in JUDGED
        for unit in ("m_s", "kn")
        if f"{stem}_{unit}" in values
    }
    if len(data.reached[main]) < MINUTES:
        return found, None
    distance = data.distance[data.places(told[main].row)]
    return found, Recalibration.fit(points.predicted, points.measured, points.scale, distance)


def predictions(data: EvaluationData, given: field.Forecast) -> pl.DataFrame:
    """One line a target: where it came from, where it is, predicted, spread (null without one),
    measured, truth."""
    rows = data.rows[data.places(given.row)]
    empty = np.full(given.mean.shape, np.nan)
    scale = empty if given.scale is None else given.scale
    new = {
        f"{name}_m_s": pl.Series(values.astype(np.float32)).fill_nan(None)
        for name, values in (
            ("u_pred", given.mean[:, 0]),
            ("v_pred", given.mean[:, 1]),
            ("u_scale", scale[:, 0]),
            ("v_scale", scale[:, 1]),
        )
    }
    return (
        rows.with_columns(**new)
        .select(
            "row",
            "slice",
            "file",
            "record",
            "flight",
            "t_s",
            "lat_deg",
            "lon_deg",
            "alt_ft",
            *new,
            "u_m_s",
            "v_m_s",
            "u_true_m_s",
            "v_true_m_s",
        )
        .sort("row")
    )


def look(model: torch.nn.Module, data: EvaluationData) -> pl.DataFrame:
    """The nowcast of a level in the test minute whose context holds most winds (the first of
    several), with its slice number."""
    pairs = data.pairs
    main = pairs.meta["lead_s"]
    chosen = max(
        data.reached[main], key=lambda j: (len(pairs.pair(j, "slice", main).context_rows), -j)
    )
    pair = pairs.pair(chosen, "slice", main)
    if model.context in KINDS:
        middle_s = pairs.issue_s(chosen, main) + main + pairs.meta["slice_s"] / 2
        answer = field.local(
            model, data.contexts.nearby, pairs.meta["scaler"], middle_s, pairs.issue_s(chosen, main)
        )
    else:
        y_mean, y_std, x_mean, x_std = (
            np.asarray(pairs.meta["scaler"][name], np.float64)
            for name in ("y_mean", "y_std", "x_mean", "x_std")
        )
        context = pl.DataFrame(
            np.hstack([pair.context_x * x_std + x_mean, pair.context_y * y_std + y_mean]),
            schema=[*field.PLACE, "u_m_s", "v_m_s"],
        )
        answer = partial(field.ask, model, context, scaler=pairs.meta["scaler"])
    targets = data.rows[data.places(pair.target_rows)]
    return field.level(answer, targets, pairs.meta).with_columns(slice=pl.lit(chosen, pl.Int32))


def cost(run: Path) -> int:
    """Larger for a cell that takes longer: the longest come first, so that no core waits at the
    end."""
    context = load(run).context
    return KINDS.index(context) + 1 if context in KINDS else 0


def load(run: Path) -> torch.nn.Module:
    """The model of a cell's folder, ready to be asked."""
    return store.load(str(run / shell.WEIGHTS))[0]


def cell(run: Path, prepared: Path, settings: Settings) -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    return measure(load(run), EvaluationData.open(prepared, settings), settings)[0]


def write(
    data: EvaluationData, run: Path, folder: Path, settings: Settings
) -> tuple[dict[Any, Any], pl.DataFrame]:
    """Measure one cell: its tables into the folder; returns its entry of metrics.json and its
    squared errors."""
    model = load(run)
    entry, table, squared = measure(model, data, settings)
    table.write_parquet(
        folder / f"predictions-{run.name}.parquet", compression="zstd", statistics=False
    )
    if model.context in ("slice", *KINDS):
        look(model.cpu(), data).write_parquet(
            folder / f"field-{run.name}.parquet", compression="zstd", statistics=False
        )
    return entry, squared


def evaluate(cells: list[Path], prepared: Path, final: Path, settings: Settings) -> None:
    """Measure the cells (their folders) and put metrics.json, predictions-CELL.parquet and
    slices.parquet into `final`."""
    data = EvaluationData.open(prepared, settings)
    entries, errors = {}, []
    with files.atomic_folder(final) as folder:
        how = pool.Measuring(
            partial(EvaluationData.open, prepared, settings),
            partial(write, folder=folder, settings=settings),
            settings.device,
            cost,
        )
        for run, (entry, squared) in pool.results_by_cell(cells, data, how):
            entries[run.name] = entry
            errors.append(squared.insert_column(0, pl.lit(run.name).alias("cell")))
        pl.concat(errors).write_parquet(
            folder / "slices.parquet", compression="zstd", statistics=False
        )
        leads = {lead_name(lead): len(slices) for lead, slices in data.reached.items()}
        rows = {
            "test": data.offered,
            "predicted": len(data.rows),
            "dropped": {"no_context": data.offered - len(data.rows)},
        }
        files.write_json(
            folder / "metrics.json",
            {
                "cells": entries,
                "lead_s": data.pairs.meta["lead_s"],
                "slices_reached_by_lead": leads,
                "leads_not_causal": data.not_causal,
                "rows": rows,
            },
        )
