"""What the joint nowcast measures of a law of every target: the error of its mean against the true
wind (m/s a component, the root of the mean square over targets and tasks) and over the optimum's,
the log-density of what an aircraft would measure there and what that lacks to the optimum's, the
shares within its 50 % and 90 % intervals; the error by lead time, altitude and distance to data,
and by the age of the grid. Intervals are the central 90 % over tasks: each has a sky of its own.

Companions: the exact laws, the rivals that preparation asked, the prior; and a Kalman filter
(stages/fields/models/kalman.py) on the increments, with the numbers that kriging learned of them.
Written: metrics.json; items.npz, what claims compare of each task (stages/scores/items.py).
Shapes: S tasks, T targets, O components.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import files, seeds
from stages.contracts import FieldModel
from stages.errors import DivergedError
from stages.fields.models.kalman import Kalman
from stages.scores import bootstrap, groups, items, shell
from stages.scores.items import Items
from stages.scores.scores import covered, log_likelihood
from stages.winds.joint import bands, kept, rivals
from stages.winds.joint.fresh import CHUNK
from stages.winds.joint.law import Answer
from stages.winds.joint.layout import COMPANIONS, KALMAN, PRIOR
from stages.winds.joint.settings import FAMILY, Joint, Made

NATS, SPEED, SQUARE = "nats", "m/s", "m2/s2"


@dataclass(frozen=True)
class Data:
    """A prepared set and what is asked of it; `bins`: by breakdown each target's label (S, T)."""

    test: kept.KeptTasks
    made: Made
    about: dict[str, Any]
    bins: dict[str, np.ndarray]
    resamples: int
    seed: int

    @classmethod
    def open(cls, prepared: Path, made: Made, told: Joint, seed: int) -> "Data":
        """That of a prepared folder."""
        test = kept.read(prepared, "test")
        bins = bands.of(test.tasks, made)
        return cls(test, made, kept.about(prepared), bins, told.resamples, seed)

    @property
    def y(self) -> np.ndarray:
        """What an aircraft would measure at the targets (S, T, O)."""
        return self.test.tasks.target_y

    def squares(self, law: Answer) -> np.ndarray:
        """Squared errors of a law's means against the true wind, m²/s² a component (S, T)."""
        error = self.made.sd_m_s * (law[0] - self.test.tasks.target_true)
        found: np.ndarray = np.square(error).mean(2)
        return found

    def mean(self, values: np.ndarray, unit: str) -> dict[str, Any]:
        """The mean of values (S,), one a task; every cell's intervals come from the same draws."""
        rng = seeds.stream(self.seed, FAMILY, "resamples")
        return groups.mean_of(values, np.arange(len(values)), unit, self.resamples, rng)

    def root(
        self, squares: np.ndarray, some: np.ndarray, over: np.ndarray | None = None
    ) -> dict[str, Any]:
        """The root of the mean of squares (S, T) over some targets (S, T), m/s; `over`: that of
        others, no unit."""
        sums = {"se": (squares * some).sum(1), "n": some.sum(1).astype(np.float64)}
        sums |= {} if over is None else {"over": (over * some).sum(1)}
        rng = seeds.stream(self.seed, FAMILY, "resamples")
        drawn = groups.drawn(sums, self.resamples, rng)

        def told(one: Mapping[str, Any]) -> Any:
            return np.sqrt(one["se"] / np.maximum(one["n" if over is None else "over"], 1e-12))

        low, high = bootstrap.interval(told(drawn))
        value = float(told({name: column.sum() for name, column in sums.items()}))
        unit = SPEED if over is None else "1"
        return {"value": value, "unit": unit, "n": int(sums["n"].sum()), "low": low, "high": high}


@dataclass(frozen=True)
class Scored:
    """What is measured of a law: its entry in metrics.json, and what claims compare (S,)."""

    entry: dict[str, Any]
    items: dict[str, np.ndarray]


def scored(law: Answer, data: Data) -> Scored:
    """What is measured of a law at all test targets."""
    (mean, sd), y = law, data.y
    spread = np.broadcast_to(sd.reshape(*mean.shape[:2], -1), mean.shape)
    squares, best = data.squares(law), data.test.laws["both"]
    everywhere = np.ones(squares.shape, dtype=bool)
    reached = log_likelihood(mean, spread, y).mean((1, 2))
    gap = log_likelihood(best[0], best[1][..., None], y).mean((1, 2)) - reached
    tasks = {"mse": squares.mean(1), "log_likelihood": reached, "gap": gap}
    found = {
        "rmse": data.root(squares, everywhere),
        "over_optimum": data.root(squares, everywhere, data.squares(best)),
        "mse": data.mean(tasks["mse"], SQUARE),
        "log_likelihood": data.mean(reached, NATS),
        "gap": data.mean(gap, NATS),
    }
    for level in (0.5, 0.9):
        share = covered(mean, spread, y, level).mean((1, 2))
        found[f"coverage_{100 * level:.0f}"] = data.mean(share, "1")
    parts = {
        f"by_{name}": {
            str(label): {"rmse": data.root(squares, labels == label)} for label in np.unique(labels)
        }
        for name, labels in data.bins.items()
    }
    return Scored({"metrics": found, **parts}, tasks)


def filtered(data: Data) -> Answer:
    """The increments of the grid, through a Kalman filter on nodes, to the targets."""
    told, tasks, axes = data.about["fitted"], data.test.tasks, data.made.law.axes
    wide = max(data.made.extent_km) / 2
    high = (data.made.altitude_km[1] - data.made.altitude_km[0]) / 2
    model = Kalman(
        4, 2, 2, horizontal_km=told["increments_horizontal"],
        vertical_km=told["increments_vertical"], time_min=told["increments_time"],
        noise=told["nugget"], sd=told["increments_sd"], mean_sd=told["level"], nodes_east=5,
        nodes_north=5, nodes_up=4, half_extent_km=wide, down_km=high, up_km=high,
        step_s=60 * data.made.every_min,
    )  # fmt: skip
    known = rivals.increments(tasks, axes, told["relaxes"])
    batch = kept.Batches.of(data.made).batch(replace(tasks, context_y=known))
    law = model(batch)
    mean = rivals.relaxed(tasks, axes, tasks.target_x, told["relaxes"])
    return mean + law.mean.double().numpy(), law.scale[..., 0].double().numpy()


def companions(data: Data) -> dict[str, Scored]:
    """The laws that are kept, the filter, and the law of a wind of which nothing is known."""
    found = {name: data.test.laws[law] for name, law in COMPANIONS.items()}
    found[KALMAN] = filtered(data)
    spread = float(np.hypot(1.0, data.made.law.noise))
    found[PRIOR] = np.zeros_like(data.y), np.full(data.y.shape[:2], spread)
    return {name: scored(law, data) for name, law in found.items()}


@torch.no_grad()
def said(model: FieldModel, data: Data) -> Answer:
    """Means and standard deviations (S, T, O). DivergedError for a number that is none."""
    batches, found = kept.Batches.of(data.made), []
    for start in range(0, len(data.test), CHUNK):
        law = model(batches.batch(data.test.some(slice(start, start + CHUNK))))
        found.append((law.mean.double().cpu().numpy(), law.scale.double().cpu().numpy()))
    mean, sd = (np.concatenate(part) for part in zip(*found, strict=True))
    if not (np.isfinite(mean).all() and np.isfinite(sd).all()):
        raise DivergedError("a prediction is not a finite number", where=type(model).__name__)
    return mean, sd


def network(run: Path, data: Data, threads: int) -> Scored:
    """What is measured of a trained cell."""
    from stages.training import store

    torch.set_num_threads(threads)
    model, _ = store.load(str(run / shell.WEIGHTS))
    assert isinstance(model, FieldModel)
    answer = scored(said(model, data), data)
    weights = sum(one.numel() for one in model.parameters())
    told = {"weights": weights, "history": shell.validation_losses(run)}
    return Scored(answer.entry | told, answer.items)


def write(answers: Mapping[str, Scored], data: Data, final: Path) -> None:
    """Write an evaluated folder, whole."""
    about = {
        "made": data.made.model_dump(mode="json"),
        "bound": data.about["bound"]["test"],
        "fitted": data.about["fitted"],
        "tasks": len(data.test),
        "unit": data.about["unit"],
    }
    told = Items(np.arange(len(data.test)), {name: one.items for name, one in answers.items()})
    with files.atomic_folder(final) as folder:
        cells = {name: one.entry for name, one in answers.items()}
        files.write_json(folder / "metrics.json", {"cells": cells, "about": about})
        items.write(folder, told)
