"""The map of the whole globe at full resolution: of a set that is one global field (world.py) the
trained model that selects best reads the coarse grid and the map's points and answers at every
node, CHUNK at a time, so that memory grows with the cells and a chunk alone.

Errors are over the area of the nodes of the strips that test, but for the points; intervals over
blocks of latitude of those strips. The rivals' answers at the same nodes are globe.safetensors'.
Of models only those of nearest cells are asked: linear interpolation between scattered points lies
in the plane of latitude and longitude, which the date line cuts.
Shapes: N nodes, p latitudes, q longitudes, P points.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import seeds
from stages.contracts import FieldModel
from stages.errors import DivergedError
from stages.fields.grids import kept, world
from stages.fields.grids.kept import Law
from stages.fields.grids.layout import GLOBE, INVERSE_DISTANCE, KRIGING, PERSISTENCE, WORLD
from stages.fields.grids.measure import Answer, Data
from stages.fields.grids.settings import FAMILY, Whole
from stages.fields.grids.world import Arrays
from stages.fields.problems.coupled.tasks import Tasks
from stages.fields.problems.stale.world import blocks
from stages.scores import bootstrap, groups, shell
from stages.scores.scores import covered, log_likelihood

CHUNK = 8192  # nodes that are asked at once
POLE = 1e-9  # a node's area, the cosine of its latitude, is more than that but at a pole
ASKED = "grid_tnp"  # the model whose cells may draw the map
RIVALS = (PERSISTENCE, INVERSE_DISTANCE, KRIGING)


@dataclass(frozen=True)
class FullMap:
    """What is told of the map in metrics.json, and what is drawn of it: `field`, `mean` and `sd`
    (p, q) standardised, `points` (P,)."""

    entry: dict[str, Any]
    arrays: Arrays


def chosen(answers: Mapping[str, Answer]) -> str | None:
    """The cell of least validation loss; None where none may draw."""
    lowest = {
        name: min(loss for _, loss in one.entry["history"]["val"])
        for name, one in answers.items()
        if name.startswith(f"{ASKED}-") and "history" in one.entry
    }
    return min(lowest, key=lambda name: lowest[name]) if lowest else None


@torch.no_grad()
def streamed(model: FieldModel, tasks: Tasks, about: dict[str, Any], chunk: int = CHUNK) -> Law:
    """Means and standard deviations (N,) at all targets of one task, `chunk` at once.
    DivergedError for a number that is none."""
    axes, found, count = kept.axes_of(about), [], tasks.target_x.shape[1]
    for start in range(0, count, chunk):
        part = slice(start, start + chunk)
        asked = tasks.target_x[:, part], tasks.target_y[:, part]
        some = Tasks(tasks.context_x, tasks.context_y, tasks.real, *asked, tasks.grid_y, {})
        law = model(kept.batched(some, axes, about["sphere"]))
        found.append((law.mean[0, :, 0].numpy(), law.scale[0, :, 0].numpy()))
    mean, sd = (np.concatenate(part) for part in zip(*found, strict=True))
    if not (np.isfinite(mean).all() and np.isfinite(sd).all()):
        raise DivergedError("a prediction is not a finite number", where=type(model).__name__)
    return mean, sd


def task(globe: Arrays, cells: np.ndarray, about: dict[str, Any]) -> Tasks:
    """The map's points, and every node asked."""
    nodes, flat = world.places(np.array(about["lat"]), np.array(about["lon"])), globe["field"]
    flat, points = flat.reshape(-1), globe["points"]
    real = np.ones((1, len(points)), dtype=bool)
    return Tasks(nodes[points][None], flat[points][None, :, None], real, nodes[None],
                 flat[None, :, None], cells[None], {})  # fmt: skip


def drawn(runs: Mapping[str, Path], answers: Mapping[str, Answer], data: Data) -> FullMap | None:
    """The map by the best cell, measured beside the rivals; None where no cell may draw it."""
    from stages.training import store

    name = chosen(answers)
    if name is None:
        return None
    model, _ = store.load(str(runs[name] / shell.WEIGHTS))
    assert isinstance(model, FieldModel)
    globe = world.loaded(data.prepared / GLOBE)
    whole = task(globe, world.loaded(data.prepared / WORLD)["cells"], data.about)
    mean, sd = streamed(model, whole, data.about)
    asked = globe["nodes"]
    laws = {name: (mean[asked], sd[asked])}
    laws |= {one: (globe[f"{one}_mean"], globe[f"{one}_sd"]) for one in RIVALS}
    shape = tuple(data.about["shape"])
    return FullMap(
        {"cell": name, "points": len(globe["points"]), "nodes": len(mean),
         "measured": measured(laws, whole, globe, data)},
        {"mean": mean.reshape(shape), "sd": sd.reshape(shape), "field": globe["field"],
         "points": globe["points"]},
    )  # fmt: skip


def measured(
    laws: Mapping[str, Law], whole: Tasks, globe: Arrays, data: Data
) -> dict[str, dict[str, Any]]:
    """Of each law over the area of the nodes of the test strips that are no points: the root mean
    square error, that over the grid's, the log-density and the share within the 90 % interval."""
    assert isinstance(data.coupled, Whole)
    told, asked = data.coupled, globe["nodes"]
    x = whole.target_x[0, asked]
    area = np.maximum(np.cos(np.radians(x[:, 0])), 0.0) * ~np.isin(asked, globe["points"])
    group = blocks(x, told.strips_deg.test, told.window_deg)
    y, (scale, unit) = whole.target_y[0, asked, 0].astype(np.float64), data.about["unit"]
    squares = {name: np.square(scale * (mean - y)) * area for name, (mean, _) in laws.items()}
    found: dict[str, dict[str, Any]] = {}
    for name, law in laws.items():
        mean, sd = (part.astype(np.float64) for part in law)
        error, by = squares[name], squares[PERSISTENCE]
        entry = {"rmse": root(error, area, group, unit, data)}
        if name != PERSISTENCE:
            entry["over_grid"] = root(error, by, group, "1", data)
        values = {
            "log_likelihood": (log_likelihood(mean, sd, y), "nats"),
            "coverage_90": (covered(mean, sd, y, 0.9).astype(np.float64), "1"),
        }
        for what, (one, its) in values.items():
            rng = seeds.stream(data.seed, FAMILY, "resamples")
            entry[what] = groups.mean_of(one * area, group, its, data.resamples, rng, area)
        for metric in entry.values():
            metric["n"] = int((area > POLE).sum())
        found[name] = entry
    return found


def root(
    total: np.ndarray, by: np.ndarray, group: np.ndarray, unit: str, data: Data
) -> dict[str, Any]:
    """The root of a sum over another (N,), with its interval over groups."""
    sums = groups.grouped({"total": total, "by": by}, group)
    rng = seeds.stream(data.seed, FAMILY, "resamples")
    again = groups.drawn(sums, data.resamples, rng)
    low, high = bootstrap.interval(np.sqrt(again["total"] / again["by"]))
    value = float(np.sqrt(total.sum() / by.sum()))
    return {"value": value, "unit": unit, "n": len(total), "low": low, "high": high}
