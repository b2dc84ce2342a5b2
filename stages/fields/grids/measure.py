"""A data set's cells measured on the same kept tasks, beside the exact laws (or, where none is
known, the rivals) and the prior.

A number is a mean over targets, then over tasks, with its 90 % interval over tasks (of real hours
over their unbroken stretches, of the whole globe over blocks of latitude of a strip, whose tasks
go together): the log-density in nats a target; `gap`,
how far it lies below the exact law's that reads both sources; in the set's unit the continuous
ranked probability score, the root of the mean squared error of a task, and that of tasks with few
and with many points; coverage; the mean square of z-scores. Of a globe also the spread over land,
and over that at sea.
Written: metrics.json; items.npz, what claims compare of each task (stages/scores/items.py); and
picture.npz, what the cells say of one task everywhere. Shapes: S tasks, T targets, P places drawn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from stages import arrays, files, seeds
from stages.contracts import FieldModel
from stages.errors import DivergedError
from stages.fields.grids import kept, stale
from stages.fields.grids.fresh import CHUNK
from stages.fields.grids.kept import Law
from stages.fields.grids.layout import COMPANIONS, HOURS, MAP, PICTURE, PRIOR, TASKS
from stages.fields.grids.settings import FAMILY, Grids, Stale, Told, Whole
from stages.fields.problems.coupled.globe import Earth
from stages.scores import groups, items, shell
from stages.scores.items import Items
from stages.scores.scores import covered, crps, log_likelihood

NATS = "nats"
ROWS, PLACES, SIDE = 36, 161, 41  # of the map, with twice as many columns; of line and plane
LEAST_POINTS = 16  # of the task that is drawn


@dataclass(frozen=True)
class Data:
    """A prepared set and what is asked of it."""

    test: kept.KeptTasks
    coupled: Told
    about: dict[str, Any]
    resamples: int
    seed: int
    prepared: Path

    @classmethod
    def open(cls, prepared: Path, coupled: Told, told: Grids, seed: int) -> "Data":
        """That of a prepared folder."""
        about = kept.about(prepared)
        test = kept.read(prepared, "test")
        if isinstance(coupled, Stale):
            test = replace(test, group=stretches(prepared, coupled))
        return cls(test, coupled, about, told.resamples, seed, prepared)

    @property
    def y(self) -> np.ndarray:
        """What was measured at the targets (S, T)."""
        assert self.test.batch.target_y is not None
        found: np.ndarray = self.test.batch.target_y[..., 0].double().numpy()
        return found

    def mean(
        self, values: np.ndarray, unit: str, some: np.ndarray | slice = slice(None)
    ) -> dict[str, Any]:
        """The mean of values (S,), one a task, of all or some tasks; every cell's intervals come
        from the same draws."""
        rng = seeds.stream(self.seed, FAMILY, "resamples")
        return groups.mean_of(values[some], self.test.group[some], unit, self.resamples, rng)


def stretches(prepared: Path, told: Stale) -> np.ndarray:
    """Which stretch of test each task's hour lies in (S,). Runs of train, val and test follow each
    other with gaps; weather that spans midnight makes the days of one stretch go together."""
    begun = load_file(prepared / HOURS)["hour"][0]
    round_h = told.train_h + told.val_h + told.test_h + 3 * told.gap_h
    found: np.ndarray = (load_file(prepared / TASKS)["test.now"] - begun) // round_h
    return found


@torch.no_grad()
def said(model: FieldModel, data: Data) -> Law:
    """Means and standard deviations (S, T). DivergedError for a number that is none."""
    found = []
    for start in range(0, len(data.y), CHUNK):
        law = model(data.test.some(slice(start, start + CHUNK)))
        found.append(
            (law.mean[..., 0].double().cpu().numpy(), law.scale[..., 0].double().cpu().numpy())
        )
    mean, sd = (np.concatenate(part) for part in zip(*found, strict=True))
    if not (np.isfinite(mean).all() and np.isfinite(sd).all()):
        raise DivergedError("a prediction is not a finite number", where=type(model).__name__)
    return mean, sd


@dataclass(frozen=True)
class Answer:
    """What is measured of a law: its entry in metrics.json, what claims compare of each task (S,),
    and what it says of the task that is drawn, where that is shown."""

    entry: dict[str, Any]
    items: dict[str, np.ndarray]
    drawn: Law | None = None


def by_task(law: Law, data: Data) -> dict[str, np.ndarray]:
    """Of every task (S,) its log-density in nats a target and the root of its mean squared error,
    in the set's unit; that error of tasks with few points, and with many, NaN of the others."""
    (mean, sd), scale = law, data.about["unit"][0]
    error = scale * np.sqrt(np.square(mean - data.y).mean(1))
    found = {"log_likelihood": log_likelihood(mean, sd, data.y).mean(1), "rmse": error}
    many = data.test.batch.context_mask.sum(1).numpy() > data.coupled.context / 2
    found["crps"] = scale * crps(mean, sd, data.y).mean(1)
    found["rmse_few"] = np.where(many, np.nan, error)
    found["rmse_many"] = np.where(many, error, np.nan)
    return found


def scored(law: Law, data: Data) -> Answer:
    """What is measured of the laws at all test targets."""
    (mean, sd), y = law, data.y
    scale, unit = data.about["unit"]
    tasks = by_task(law, data)
    reached = tasks["log_likelihood"]
    found = {"log_likelihood": data.mean(reached, NATS)}
    if "both" in data.test.laws:
        best = log_likelihood(*data.test.laws["both"], y).mean(1)
        found["gap"] = data.mean(best - reached, NATS)
    found |= {
        "rmse": data.mean(tasks["rmse"], unit),
        "crps": data.mean(tasks["crps"], unit),
        "z_square": data.mean(np.square((y - mean) / sd).mean(1), "1"),
    }
    for level in (0.5, 0.9):
        share = covered(mean, sd, y, level).mean(1)
        found[f"coverage_{100 * level:.0f}"] = data.mean(share, "1")
    if data.coupled.process == "globe":
        height = Earth(data.coupled.seed).height(data.test.batch.target_x.double().numpy())
        land, sea = ((sd * part).sum(1) / np.maximum(part.sum(1), 1)
                     for part in (height > 0, height <= 0))  # fmt: skip
        both = ((height > 0).any(1)) & ((height <= 0).any(1))
        found["sd_land"] = data.mean(scale * land[both], unit)
        found["land_over_sea"] = data.mean(land[both] / sea[both], "1")
    for name in ("rmse_few", "rmse_many"):
        if (its := np.isfinite(tasks[name])).any():
            found[name] = data.mean(tasks[name], unit, its)
    return Answer({"metrics": found}, tasks)


def companions(data: Data) -> dict[str, Answer]:
    """The laws that are kept, and the law of a value of which nothing is known."""
    mean, sd = data.about["prior"]["mean"], data.about["prior"]["sd"]
    one = np.ones_like(data.y)
    found = {name: data.test.laws[law] for name, law in COMPANIONS.items() if law in data.test.laws}
    found[PRIOR] = (mean * one, sd * one)
    return {name: scored(law, data) for name, law in found.items()}


def network(run: Path, data: Data, threads: int) -> Answer:
    """What is measured of a trained cell, and what it says of the task that is drawn."""
    from stages.training import store

    torch.set_num_threads(threads)
    model, _ = store.load(str(run / shell.WEIGHTS))
    assert isinstance(model, FieldModel)
    answer = scored(said(model, data), data)
    entry = answer.entry | {
        "weights": sum(one.numel() for one in model.parameters()),
        "history": shell.validation_losses(run),
    }
    return Answer(entry, answer.items, everywhere(model, data))


def drawn_task(data: Data) -> int:
    """The first task whose context has LEAST_POINTS and not many more; else the first of all."""
    counts = data.test.batch.context_mask.sum(1)
    fits = torch.nonzero((counts >= LEAST_POINTS) & (counts <= 2 * LEAST_POINTS))
    return int(fits[0]) if len(fits) else 0


def places(data: Data) -> np.ndarray:
    """Where the picture is drawn (P, X): a map's middles row by row, all nodes of real fields, the
    targets of the whole globe's task (its nodes: full_map.py), a plane row by row, or a line along
    the first axis."""
    if isinstance(data.coupled, Stale):
        return np.array(data.about["nodes"])
    if isinstance(data.coupled, Whole):
        return data.test.batch.target_x[drawn_task(data)].double().numpy()
    if data.coupled.process == "globe":
        step = 180.0 / ROWS
        north = -90.0 + step * (np.arange(ROWS) + 0.5)
        east = -180.0 + step * (np.arange(2 * ROWS) + 0.5)
        return np.stack(np.meshgrid(north, east, indexing="ij"), -1).reshape(-1, 2)
    ends = data.coupled.range or 1.0
    if data.coupled.axes == 2:
        side = np.linspace(-ends, ends, SIDE)
        return np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    found = np.zeros((PLACES, data.coupled.axes))
    found[:, 0] = np.linspace(-ends, ends, PLACES)
    return found


@torch.no_grad()
def everywhere(model: FieldModel, data: Data) -> Law:
    """Mean and standard deviation (P,) of the task that is drawn."""
    row = drawn_task(data)
    x = torch.from_numpy(places(data)).float()[None]
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    batch = replace(
        data.test.some(slice(row, row + 1)), target_x=x, target_mask=mask, target_y=None
    )
    law = model(batch)
    return law.mean[0, :, 0].double().numpy(), law.scale[0, :, 0].double().numpy()


def picture(data: Data, drawn: Mapping[str, Law]) -> dict[str, np.ndarray]:
    """The task that is drawn and what is said of it, in the set's unit but for places."""
    row = drawn_task(data)
    batch, x = data.test.some(slice(row, row + 1)), places(data)
    assert batch.grid is not None and batch.target_y is not None
    real = batch.context_mask[0]
    found = {
        "places": x,
        "cells": batch.grid.places().double().numpy(),
        "grid_y": batch.grid.values.flatten().double().numpy(),
        "context_x": batch.context_x[0, real].double().numpy(),
        "context_y": batch.context_y[0, real, 0].double().numpy(),
        "target_x": batch.target_x[0].double().numpy(),
        "target_y": batch.target_y[0, :, 0].double().numpy(),
    }
    if data.coupled.process == "globe":
        found["height"] = Earth(data.coupled.seed).height(x)
    if isinstance(data.coupled, Stale):
        found |= stale.truth(data.prepared, row, data.about)
    for name, (mean, sd) in drawn.items():
        found |= {f"{name}.mean": mean, f"{name}.sd": sd}
    return {name: array.astype(np.float32) for name, array in found.items()}


def write(
    answers: Mapping[str, Answer],
    data: Data,
    final: Path,
    told: Mapping[str, Any] | None = None,
    full: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write an evaluated folder, whole; of a map of all nodes what is `told` of it, and its arrays
    (full_map.py)."""
    about = {
        "made": data.coupled.model_dump(mode="json"),
        "bound": data.about["bound"].get("test", {}),
        "tasks": len(data.y),
        "unit": data.about["unit"],
    }
    if isinstance(data.coupled, Stale):
        about |= {key: data.about[key] for key in ("origin", "shape", "hours")}
    if isinstance(data.coupled, Whole):
        about |= {key: data.about[key] for key in ("origin", "shape")}
    if told is not None:
        about["map"] = dict(told)
    cells = {name: one.entry for name, one in answers.items()}
    drawn = {name: one.drawn for name, one in answers.items() if one.drawn is not None}
    kept_items = Items(data.test.group, {name: one.items for name, one in answers.items()})
    with files.atomic_folder(final) as folder:
        files.write_json(folder / "metrics.json", {"cells": cells, "about": about})
        items.write(folder, kept_items)
        arrays.save(folder / PICTURE, picture(data, drawn))
        if full is not None:
            arrays.save(folder / MAP, dict(full))
