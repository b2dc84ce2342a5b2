"""A capture scored with a trained cell of winds: its forecasts of every slice that it can forecast,
at the lead that it was trained at.

The capture is read as a nowcast reads it (nowcast/capture.py); slices, contexts, forecasts and
metrics are those of the evaluation, the scaler is the one kept with the weights. Targets outside
the area that the cell was trained in are no part of the score, as a nowcast refuses them; as winds
of a context they stay. Shapes: N rows of the capture, T targets. Units: seconds, degrees, feet,
m/s towards east and north.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import torch

from stages.errors import InputError
from stages.scores import lone
from stages.winds import forecasts, measure, metrics
from stages.winds.contexts.given import Contexts
from stages.winds.forecasts import PLACE
from stages.winds.nowcast import capture, doubtful, nowcast, refusals, spread
from stages.winds.nowcast.refusals import iso
from stages.winds.pairs import Pairs
from stages.winds.slices import context_window

WIND = ("u_m_s", "v_m_s")
KEY = ("t_s", *PLACE, *WIND)
SHOWN = (
    "rmse_component_kn",
    "rmse_component_m_s",
    "rmse_east_kn",
    "rmse_north_kn",
    "rmse_vector_kn",
    "rmse_permuted_component_kn",
    "norm_mae_kn",
    "angle_mae_deg",
    "coverage_90",
    "coverage_90_recalibrated",
)
FITTED = (0, 1)  # codes of train and val in rows.parquet


def score(asked: lone.Asked) -> lone.Scored:
    """RMSE and what else the evaluation measures of winds. InputError for a capture that is none,
    that the cell's lead does not reach, that lies elsewhere, or that the cell was trained on."""
    machine, settings = asked.machine, asked.parameters
    torch.set_num_threads(machine.threads)
    model: Any
    model, meta = nowcast.load(asked.run)
    prepared = meta["prepared"]
    try:
        usual_m_s = doubtful.usual(prepared["scaler"])
        known, dropped = capture.read(asked.file, settings.decode, usual_m_s=usual_m_s)
    except InputError as error:
        raise asked.refuse(error.what, error.expected, error.found, error.remedy) from None
    rows = known.select(
        pl.col("ts_s").alias("t_s"), *(pl.col(name).cast(pl.Float32) for name in (*PLACE, *WIND))
    )
    slices = reached(asked, rows["t_s"].to_numpy(), prepared, dropped)
    pairs, lead = pairs_of(rows, prepared), prepared["lead_s"]
    inside = within(rows, prepared["area"])
    targets = np.concatenate([np.arange(*pairs.rows_of(j)) for j in slices])
    refuse_elsewhere(asked, rows[targets], inside[targets], prepared["area"])
    chosen = targets[inside[targets]]
    seen = trained_on(asked, rows[chosen])
    asked.refuse_seen(seen, f"{seen:,} of {len(chosen):,} winds to forecast")
    given = forecasts.forecasts(
        model.to(machine.device).eval(),
        Contexts(pairs, settings.contexts),
        {lead: slices},
        machine.device,
        lead,
        machine.seed,
    )[lead]
    every = recalibrated(asked, points_of(rows, given, prepared), given.row, pairs, rows)
    points = every.take(inside[given.row])
    numbers, sums = measure.summed(points)
    found, undefined = metrics.summarise(numbers, sums)
    more = {
        "without a wind one lead before": len(rows) - len(targets),
        "outside the area that the cell was trained in": len(targets) - len(chosen),
    }
    return lone.Scored(
        metrics=found,
        shown=tuple(name for name in SHOWN if name in found or "coverage" not in name),
        counts={"winds": len(rows), "scored": len(chosen), "slices": len(numbers)}
        | ({lone.TRAINED_ON: seen} if seen else {}),
        dropped=dropped | more,
        undefined=undefined,
        notes=(
            f"lead {lead / 60:g} min; winds from {iso(rows['t_s'][0])} to {iso(rows['t_s'][-1])}",
            *([undefined["intervals"]] if "intervals" in undefined else []),
        ),
    )


def recalibrated(
    asked: lone.Asked, points: metrics.Points, row: np.ndarray, pairs: Pairs, rows: pl.DataFrame
) -> metrics.Points:
    """The points (T) of `row` (T,) with the spread that a nowcast tells of them, where the cell's
    evaluation recalibrated it."""
    if "recalibration" not in spread.evaluated(asked.run):
        return points
    km, lead = np.empty(len(row)), pairs.meta["lead_s"]
    for j in np.unique(points.slice):
        here = points.slice == j
        known = rows[pairs.pair(int(j), "slice", lead).context_rows]
        km[here] = nowcast.nearest(rows[row[here]].select(PLACE).to_numpy(), known)
    told = spread.of_cell(asked.run, own=points.scale is not None)
    return replace(points, spread=np.array(told.of(points.scale, km)[0]))


def reached(
    asked: lone.Asked, t_s: np.ndarray, prepared: dict[Any, Any], dropped: dict[str, int]
) -> list[int]:
    """Slices, counted from 1970, that hold a row and have one in their slice context at the lead;
    `t_s` (N,) ascending. InputError where there is none."""
    if not len(t_s):
        raise asked.refuse(
            "the capture holds no usable wind",
            "winds, or what they are decoded from",
            f"rows dropped: {lone.listed(dropped)}" if any(dropped.values()) else "no rows",
            refusals.LONGER if any(dropped.values()) else "give a capture that holds winds",
        )
    w, lead = prepared["slice_s"], prepared["lead_s"]
    filled = np.unique(np.floor(t_s / w)).astype(np.int64)
    windows = [context_window(0.0, int(j), w, lead, "slice") for j in filled]
    low, high = np.searchsorted(t_s, np.array(windows).T)
    if not (high > low).any():
        raise asked.refuse(
            "no wind of the capture can be forecast from another one",
            f"winds of a slice of {w:g} s and of the slice {lead / 60:g} min before it, the cell's "
            "lead",
            f"{len(t_s):,} winds from {iso(t_s[0])} to {iso(t_s[-1])}",
            "give a longer capture, or a cell of a shorter lead",
        )
    return filled[high > low].tolist()


def pairs_of(rows: pl.DataFrame, prepared: dict[Any, Any]) -> Pairs:
    """The rows as prepared data, standardised as those that the cell was trained on."""
    kept = {name: prepared[name] for name in ("scaler", "slice_s", "lead_s", "area")}
    meta = kept | {"t0_s": 0.0, "columns_x": list(PLACE), "truth": False}
    return Pairs(
        meta, rows["t_s"].to_numpy(), {name: rows[name].to_numpy() for name in (*PLACE, *WIND)}
    )


def within(rows: pl.DataFrame, area: dict[Any, Any]) -> np.ndarray:
    """Whether each row (N,) lies in the box of the training rows."""
    every = pl.all_horizontal(pl.col(name).is_between(*area[name]) for name in PLACE)
    return rows.select(every.alias("inside"))["inside"].to_numpy()


def refuse_elsewhere(
    asked: lone.Asked, rows: pl.DataFrame, inside: np.ndarray, area: dict[Any, Any]
) -> None:
    """InputError where no target lies in the area that the cell was trained in."""
    if inside.any():
        return
    spans = [(name, *rows.select(pl.min(name), pl.max(name).alias("max")).row(0)) for name in PLACE]
    raise asked.refuse(
        "the capture lies outside the area that the cell was trained in",
        ", ".join(f"{name} {area[name][0]:g} to {area[name][1]:g}" for name in PLACE),
        ", ".join(f"{name} {low:g} to {high:g}" for name, low, high in spans),
        refusals.exchanged(rows, area)
        or "give a capture of that area, or a cell that was trained in this one",
    )


def trained_on(asked: lone.Asked, rows: pl.DataFrame) -> int:
    """How many of the rows (T targets) are, value by value, targets of training or validation.
    InputError where the prepared rows are not here to be compared with."""
    path = asked.prepared / "rows.parquet"
    if not path.is_file():
        if asked.even_if_trained_on:
            return 0
        raise asked.refuse(
            "whether the cell was trained on this file cannot be told",
            f"the prepared rows, {path}",
            "no such file",
            "run `dvc pull`, or give --even-if-trained-on",
        )
    held = (
        pl.scan_parquet(path)
        .filter(pl.col("split").is_in(FITTED), pl.col("t_s").is_between(*_ends(rows)))
        .select(KEY)
    )
    return len(rows.lazy().join(held, on=KEY, how="semi").collect())


def _ends(rows: pl.DataFrame) -> tuple[float, float]:
    return float(rows["t_s"][0]), float(rows["t_s"][-1])


def points_of(
    rows: pl.DataFrame, given: forecasts.Forecast, prepared: dict[Any, Any]
) -> metrics.Points:
    """A forecast of T targets beside what was measured."""
    there = rows[given.row]
    return metrics.Points(
        np.floor(there["t_s"].to_numpy() / prepared["slice_s"]).astype(np.int64),
        given.mean,
        there.select(WIND).to_numpy().astype(np.float64),
        given.scale,
        outside=given.outside,
        outside_measured=given.outside_measured,
        permuted=given.permuted,
        y_std=np.asarray(prepared["scaler"]["y_std"], np.float64),
    )
