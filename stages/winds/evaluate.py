"""Evaluate the trained cells of one data set on its held-out minutes, and write metrics and
predictions.

Every cell is read from its checkpoint and asked for the same targets; the standardised answers are
turned back into m/s with the scaler. The curve over leads gives the same targets from older or
newer contexts to the same model, which was trained at the profile's lead and is not told the lead;
a lead at which the weights were fitted on targets newer than the context is left out and named
(`causal_lead_s`), so that no point of the curve knows what its forecaster could not. slices.parquet
holds each slice's squared error, so that claims can compare models minute by minute without the
models; field-CELL.parquet is one minute's nowcast of a whole level, to look at. Shapes: N target
points, S slices.
"""

import math
import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
import torch
from tqdm import tqdm

from stages import files, seeds
from stages.errors import DataError, InputError
from stages.params import Contexts as ContextSettings
from stages.params import Params, Profile
from stages.training import store
from stages.winds import breakdown, metrics
from stages.winds import forecasts as field
from stages.winds.contexts.given import Contexts
from stages.winds.contexts.nearby import KINDS
from stages.winds.pairs import Pairs

CODE = (
    "stages/batches.py",
    "stages/winds/contexts",
    "stages/seeds.py",
    "stages/winds/pairs.py",
    "stages/winds/slices.py",
    "stages/fields/models",
    "stages/layers",
    "stages/training/store.py",
    "stages/neighbours",
    *(
        f"stages/evaluation/{name}.py"
        for name in ("__main__", "bootstrap", "breakdown", "evaluate", "field", "metrics", "scores")
    ),
)
NO_SIZE = "none"  # of a model without sizes, in its checkpoint
COLUMNS = (
    "t_s",
    "lat_deg",
    "lon_deg",
    "alt_ft",
    "u_m_s",
    "v_m_s",
    "u_true_m_s",
    "v_true_m_s",
    "slice",
    "flight",
    "file",
    "record",
)


@dataclass(frozen=True)
class Settings:
    """Leads of the horizon curve (minutes), bootstrap resamples and its seed, how neighbours are
    found, torch threads, device."""

    leads_min: tuple[float, ...]
    resamples: int
    seed: int
    contexts: ContextSettings
    threads: int = 1
    device: str = "cpu"


@dataclass(frozen=True)
class Held:
    """What all cells of a data set share: their contexts, the test rows and where they lie."""

    contexts: Contexts
    rows: pl.DataFrame  # test rows, with their number `row` in rows.parquet
    track: np.ndarray  # (rows, 2)
    bands: np.ndarray  # (rows,) str
    days: np.ndarray  # (rows,) str, UTC
    distance: np.ndarray  # (rows,) str
    reached: dict[
        float, list[int]
    ]  # lead_s -> test slices whose slice context at that lead holds a point
    offered: int  # rows in the test intervals, including those whose slice has no context
    not_causal: dict[str, str]  # leads left out of the curve -> why

    @property
    def pairs(self) -> Pairs:
        """The prepared data."""
        return self.contexts.pairs

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Positions in `rows` of row numbers."""
        return np.searchsorted(self.rows["row"].to_numpy(), numbers)


def lead_name(lead_s: float) -> str:
    """Minutes as text that sorts: 300 s is '005', 450 s is '007.5'."""
    whole, dot, part = f"{lead_s / 60:g}".partition(".")
    return whole.zfill(3) + dot + part


def causal_lead_s(meta: dict) -> float:
    """The oldest context, in s before a test target, that still ends after all the train and val
    targets that precede the target.

    Training data after the test (the thesis' week 4) count for nothing here; without any before it
    every lead is causal.
    """
    fitted = np.array(sorted({*meta["slices"]["train"], *meta["slices"]["val"]}))
    test = np.array(meta["slices"]["test"])
    before = np.searchsorted(fitted, test)
    ends = np.concatenate(([-np.inf], fitted + 1.0))[before]
    return float(((test - ends) * meta["slice_s"]).min())


def hold(prepared: Path, leads_min: tuple[float, ...], nearby: ContextSettings) -> Held:
    """Open the prepared data and find what does not depend on a model."""
    contexts = Contexts.open(prepared, nearby)
    contexts.nearby = field.Shared(contexts.nearby.measured, nearby)
    pairs = contexts.pairs
    targets = pairs.targets("test")
    if not targets:
        raise DataError(
            "the test split holds no pair of context and target",
            where=str(prepared),
            remedy="widen `split.test` in params.yaml",
        )
    main, w = pairs.meta["lead_s"], pairs.meta["slice_s"]
    inside = [
        pl.col("slice").is_between(math.ceil(start / w), math.floor(end / w) - 1)
        for start, end in pairs.meta["split"]["test"]
    ]
    table = pl.scan_parquet(prepared / "rows.parquet").select(COLUMNS).with_row_index("row")
    every = table.filter(pl.any_horizontal(inside)).collect()
    rows = every.filter(pl.col("slice").is_in(targets))
    least, reached, not_causal = causal_lead_s(pairs.meta), {}, {}
    for lead in sorted({main, *(60.0 * minutes for minutes in leads_min)}):
        if lead > least and lead != main:
            not_causal[lead_name(lead)] = (
                f"the weights were fitted on targets up to {least / 60:g} min before a test "
                "target: newer than this lead's context"
            )
            continue
        reached[lead] = [j for j in targets if len(pairs.pair(j, "slice", lead).context_x)]
    mean, std = (np.asarray(pairs.meta["scaler"][name], np.float64) for name in ("x_mean", "x_std"))
    km = np.empty(len(rows))
    numbers = rows["row"].to_numpy()
    for j in targets:
        pair = pairs.pair(j, "slice", main)
        km[np.searchsorted(numbers, pair.target_rows)] = breakdown.nearest_km(
            pair.target_x * std + mean, pair.context_x * std + mean
        )
    column = {
        name: rows[name].to_numpy()
        for name in ("slice", "flight", "t_s", "lat_deg", "lon_deg", "alt_ft")
    }
    track = breakdown.tracks(
        *(column[name] for name in ("slice", "flight", "t_s", "lat_deg", "lon_deg"))
    )
    days = (column["t_s"] * 1e6).astype("datetime64[us]").astype("datetime64[D]").astype(str)
    return Held(
        contexts,
        rows,
        track,
        breakdown.altitude_bands(column["alt_ft"]),
        days,
        breakdown.distance_bins(km),
        reached,
        len(every),
        not_causal,
    )


def points_of(held: Held, given: field.Forecast) -> metrics.Points:
    """A forecast, and what it would be from permuted values, beside what was measured and what
    is known of it."""
    place = held.places(given.row)
    rows = held.rows[place]
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
        held.track[place],
        given.outside,
        given.outside_measured,
        given.permuted,
        np.asarray(held.pairs.meta["scaler"]["y_std"], np.float64),
    )


def grouped(
    points: metrics.Points, labels: np.ndarray, settings: Settings
) -> tuple[dict, list[tuple]]:
    """Metrics of each bin, and each bin's squared error by slice as rows (bin, slice, n, squared
    error)."""
    found, rows = {}, []
    for label in np.unique(labels):
        numbers, sums = summed(points.take(labels == label))
        found[str(label)] = metrics.summarise(
            sums,
            settings.resamples,
            seeds.stream(settings.seed, "bootstrap"),
            metrics.GROUP_METRICS,
        )[0]
        rows += [(str(label), *row) for row in slice_rows(numbers, sums)]
    return found, rows


def summed(points: metrics.Points) -> tuple[np.ndarray, metrics.Sums]:
    """Slice numbers (S,) and the sums of each."""
    return metrics.by_slice(metrics.columns(points), points.slice)


def slice_rows(numbers: np.ndarray, sums: metrics.Sums) -> list[tuple]:
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
    model: torch.nn.Module, held: Held, settings: Settings
) -> tuple[dict, pl.DataFrame, pl.DataFrame]:
    """Everything about one model: its entry of metrics.json, its predictions, its squared errors
    by slice."""
    main = held.pairs.meta["lead_s"]
    model = model.to(settings.device).eval()
    told = field.forecasts(
        model,
        held.contexts,
        field.due(model, held.reached, main),
        settings.device,
        main,
        settings.seed,
    )
    given = told[main]
    points = points_of(held, given)
    numbers, sums = summed(points)
    values, undefined = metrics.summarise(
        sums, settings.resamples, seeds.stream(settings.seed, "bootstrap")
    )
    entry = {"metrics": values, "undefined": undefined, "slices": len(numbers)}
    errors = [("all", "all", *row) for row in slice_rows(numbers, sums)]
    place = held.places(given.row)
    for name, labels in (
        ("altitude", held.bands[place]),
        ("day", held.days[place]),
        ("distance", held.distance[place]),
    ):
        entry[f"by_{name}"], rows = grouped(points, labels, settings)
        errors += [(name, *row) for row in rows]
    entry["by_lead"] = {}
    for lead, slices in held.reached.items():
        if not slices:
            continue
        if lead not in told:
            told = field.forecasts(model, held.contexts, {lead: slices}, settings.device)
        there = points if lead == main else points_of(held, told[lead])
        found, rows = grouped(there, np.full(len(there.slice), lead_name(lead)), settings)
        entry["by_lead"] |= found
        errors += [("lead", *row) for row in rows]
    return (
        entry,
        predictions(held, given),
        pl.DataFrame(
            errors,
            orient="row",
            schema={
                "by": pl.String,
                "bin": pl.String,
                "slice": pl.Int32,
                "n": pl.Int32,
                "squared_error_m2_s2": pl.Float64,
            },
        ),
    )


def predictions(held: Held, given: field.Forecast) -> pl.DataFrame:
    """One line a target: where it came from, where it is, predicted, spread (null without one),
    measured, truth."""
    rows = held.rows[held.places(given.row)]
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


def look(model: torch.nn.Module, held: Held) -> pl.DataFrame:
    """The nowcast of a level in the test minute whose context holds most winds (the first of
    several), with its slice number."""
    pairs = held.pairs
    main = pairs.meta["lead_s"]
    chosen = max(
        held.reached[main], key=lambda j: (len(pairs.pair(j, "slice", main).context_rows), -j)
    )
    pair = pairs.pair(chosen, "slice", main)
    if model.context in KINDS:
        middle_s = pairs.issue_s(chosen, main) + main + pairs.meta["slice_s"] / 2
        answer = field.local(
            model, held.contexts.nearby, pairs.meta["scaler"], middle_s, pairs.issue_s(chosen, main)
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
    targets = held.rows[held.places(pair.target_rows)]
    return field.level(answer, targets, pairs.meta).with_columns(slice=pl.lit(chosen, pl.Int32))


def load(run: Path) -> torch.nn.Module:
    """The model of a cell's folder, ready to be asked."""
    return store.load(str(run / "weights.safetensors"))[0]


def cell(run: Path, prepared: Path, settings: Settings) -> dict:
    """One cell's entry of metrics.json, recomputed from its checkpoint (what `audit --verify
    eval` compares)."""
    torch.set_num_threads(settings.threads)
    return measure(load(run), hold(prepared, settings.leads_min, settings.contexts), settings)[0]


def cells_of(runs: Path) -> list[Path]:
    """The folders of trained cells; what a killed training leaves has a dot and is none."""
    return sorted(p.parent for p in runs.glob("[!.]*/weights.safetensors"))


def refuse_strays(runs: Path, parameters: Params, profile: Profile) -> None:
    """DataError naming every folder under `runs` whose model is none of those that params.yaml now
    asks for in this profile.

    Such a folder is left from earlier settings, or was copied here; its numbers would stand in the
    table as if we had run it.
    """
    problems = [
        f"{run}: {why}" for run in cells_of(runs) if (why := stray(run, parameters, profile))
    ]
    if problems:
        raise DataError(
            "a trained cell does not belong to the current parameters",
            where=str(runs),
            found="; ".join(problems),
            expected="models, arms, sizes and seeds of params.yaml for the profile "
            f"{profile.profile}",
            remedy="delete the folders named above, or put their settings back into params.yaml",
        )


def stray(run: Path, parameters: Params, profile: Profile) -> str:
    """Why a cell's folder does not belong to the parameters; '' if it does. Models without sizes
    are fitted once, with any seed."""
    model = run.name.partition("-")[0]
    if (
        model not in parameters.models
    ):  # asked of the name first: a model that is gone cannot be built, nor its metadata trusted
        return f"the model {model} is not in params.yaml"
    meta, known = store.load(str(run / "weights.safetensors"))[1], parameters.models[model]
    variants = (
        *profile.rivals,
        *profile.field_variants,
        *profile.failure_variants,
        *profile.region_variants,
        *profile.sensitivity,
    )
    asked = [one for one in variants if one.model == model]
    sizes = (*profile.sizes, *(one.size for one in asked)) if known.sizes else (NO_SIZE,)
    seeds_known = (
        (*profile.seeds, *profile.arm_seeds, *profile.field_seeds)
        if known.sizes
        else (meta["seed"],)
    )
    for key, allowed in (
        ("model", (model,)),
        ("arm", tuple(known.arms)),
        ("size", sizes),
        ("seed", seeds_known),
    ):
        if meta[key] not in allowed:
            return f"{key} {meta[key]} is not of {', '.join(map(str, sorted(set(allowed))))}"
    name = "{model}-{arm}-{size}-s{seed}".format_map(meta)
    return (
        ""
        if run.name in (name, *([] if known.sizes else [model]))
        else f"its checkpoint is that of {name}"
    )


def cost(run: Path) -> int:
    """Larger for a cell that takes longer: the longest come first, so that no core waits at the
    end."""
    context = load(run).context
    return KINDS.index(context) + 1 if context in KINDS else 0


def written(
    cells: list[Path], folder: Path, prepared: Path, settings: Settings
) -> Iterator[tuple[dict, pl.DataFrame]]:
    """Each cell's entry and squared errors, its tables in the folder: one process a core, as
    cells are known to no other; one on a GPU."""
    count = min(len(cells), len(os.sched_getaffinity(0))) if settings.device == "cpu" else 1
    with ProcessPoolExecutor(
        count, get_context("spawn"), begin, (os.getpid(), prepared, settings)
    ) as pool:
        asked: dict[Path, Future] = {}
        try:
            asked |= {
                run: pool.submit(write, run, folder, settings)
                for run in sorted(cells, key=cost, reverse=True)
            }
            for run in tqdm(cells, desc="evaluate", unit="cell", disable=None):
                yield asked[run].result()
        except BrokenProcessPool:
            raise DataError(
                "a process that evaluated a cell was killed",
                where=str(cells[0].parent),
                found="likely by want of memory",
                remedy="free memory, or run fewer stages at once (JOBS=1); nothing was written",
            ) from None
        finally:
            for one in asked.values():
                one.cancel()


_held: Held | None = None  # of a process that evaluates cells


def begin(parent: int, prepared: Path, settings: Settings) -> None:
    """Make this process one that evaluates cells, for as long as its parent lives."""
    global _held
    files.die_with(parent)
    torch.set_num_threads(settings.threads)
    _held = hold(prepared, settings.leads_min, settings.contexts)


def write(run: Path, folder: Path, settings: Settings) -> tuple[dict, pl.DataFrame]:
    """Evaluate one cell: its tables into the folder; returns its entry of metrics.json and its
    squared errors."""
    model = load(run)
    entry, table, squared = measure(model, _held, settings)
    table.write_parquet(
        folder / f"predictions-{run.name}.parquet", compression="zstd", statistics=False
    )
    if model.context in ("slice", *KINDS):
        look(model.cpu(), _held).write_parquet(
            folder / f"field-{run.name}.parquet", compression="zstd", statistics=False
        )
    return entry, squared


def evaluate(runs: Path, prepared: Path, final: Path, settings: Settings) -> None:
    """Evaluate every cell under `runs` and put metrics.json, predictions-CELL.parquet and
    slices.parquet into `final`."""
    cells = cells_of(runs)
    if not cells:
        raise InputError(
            "there is no trained cell to evaluate",
            where=str(runs),
            remedy="run `dvc repro`, which trains before it evaluates",
        )
    held = hold(prepared, settings.leads_min, settings.contexts)
    entries, errors = {}, []
    with files.atomic_folder(final) as folder:
        for run, (entry, squared) in zip(
            cells, written(cells, folder, prepared, settings), strict=True
        ):
            entries[run.name] = entry
            errors.append(squared.insert_column(0, pl.lit(run.name).alias("cell")))
        pl.concat(errors).write_parquet(
            folder / "slices.parquet", compression="zstd", statistics=False
        )
        leads = {lead_name(lead): len(slices) for lead, slices in held.reached.items()}
        rows = {
            "test": held.offered,
            "predicted": len(held.rows),
            "dropped": {"no_context": held.offered - len(held.rows)},
        }
        files.write_json(
            folder / "metrics.json",
            {
                "cells": entries,
                "lead_s": held.pairs.meta["lead_s"],
                "slices_reached_by_lead": leads,
                "leads_not_causal": held.not_causal,
                "rows": rows,
            },
        )
