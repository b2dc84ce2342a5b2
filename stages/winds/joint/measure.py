"""What the joint nowcast measures of a law of every target: the error of its mean against the true
wind (m/s a component, the root of the mean square over targets and tasks) and over the optimum's,
the log-density of what an aircraft would measure there and what that lacks to the optimum's, its
continuous ranked probability score (CRPS, m/s a component), the shares within its 50 % and 90 %
intervals; error and CRPS by lead time, altitude and distance to data, and by the age of the grid.
Intervals are the central 90 % over tasks where each has a sky of its own; over blocks of places
where the sky is real. No optimum is known of a real sky: kriging of the increments stands in its
place (`over_increments`, `gain`).

Companions: the laws that preparation kept, the prior; and a Kalman filter
(stages/fields/models/kalman.py) on the increments, with the numbers that kriging learned of them.
Written: metrics.json; items.npz, what claims compare of each task (stages/scores/items.py); of a
real sky picture.npz, what is said of a plane of places. Shapes: S tasks, T targets, O components.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import arrays, files, seeds
from stages.contracts import FieldModel
from stages.errors import DivergedError
from stages.fields.models.kalman import Kalman
from stages.scores import bootstrap, groups, items, shell
from stages.scores.items import Items
from stages.scores.scores import covered, crps, log_likelihood
from stages.winds.joint import bands, kept, rivals
from stages.winds.joint.batches import Batches
from stages.winds.joint.fresh import CHUNK
from stages.winds.joint.law import Answer
from stages.winds.joint.layout import COMPANIONS, INCREMENTS, KALMAN, LINEAR, PICTURE, PRIOR
from stages.winds.joint.settings import FAMILY, Joint, Real, Told
from stages.winds.joint.tasks import Tasks

NATS, SPEED, SQUARE = "nats", "m/s", "m2/s2"


@dataclass(frozen=True)
class Data:
    """A prepared set and what is asked of it; `bins`: by breakdown each target's label (S, T);
    `group`: which tasks go together (S,); `plane`: of a real sky what is drawn (real.py)."""

    test: kept.KeptTasks
    made: Told
    about: dict[str, Any]
    bins: dict[str, np.ndarray]
    group: np.ndarray
    plane: dict[str, np.ndarray]
    resamples: int
    seed: int

    @classmethod
    def open(cls, prepared: Path, made: Told, told: Joint, seed: int) -> "Data":
        """That of a prepared folder."""
        test = kept.read(prepared, "test")
        bins, group = bands.of(test.tasks, made), kept.together(test, made)
        plane = kept.plane(prepared) if isinstance(made, Real) else {}
        return cls(test, made, kept.about(prepared), bins, group, plane, told.resamples, seed)

    @property
    def scale(self) -> float:
        """What a value of 1 is, m/s."""
        return float(self.about["unit"][0])

    @property
    def y(self) -> np.ndarray:
        """What an aircraft would measure at the targets (S, T, O)."""
        return self.test.tasks.target_y

    def squares(self, law: Answer) -> np.ndarray:
        """Squared errors of a law's means against the true wind, m²/s² a component (S, T)."""
        error = self.scale * (law[0] - self.test.tasks.target_true)
        found: np.ndarray = np.square(error).mean(2)
        return found

    def mean(self, values: np.ndarray, unit: str) -> dict[str, Any]:
        """The mean of values (S,), one a task; every cell's intervals come from the same draws."""
        rng = seeds.stream(self.seed, FAMILY, "resamples")
        return groups.mean_of(values, self.group, unit, self.resamples, rng)

    def root(
        self, squares: np.ndarray, some: np.ndarray, over: np.ndarray | None = None
    ) -> dict[str, Any]:
        """The root of the mean of squares (S, T) over some targets (S, T), m/s; `over`: that of
        others, no unit."""
        return self.pooled(squares, some, over, np.sqrt)

    def pooled(
        self,
        values: np.ndarray,
        some: np.ndarray,
        over: np.ndarray | None = None,
        form: Callable[[Any], Any] = np.asarray,
    ) -> dict[str, Any]:
        """What `form` makes of the mean of values (S, T) over some targets, each of them once."""
        sums = {"sum": (values * some).sum(1), "n": some.sum(1).astype(np.float64)}
        sums |= {} if over is None else {"over": (over * some).sum(1)}
        rng = seeds.stream(self.seed, FAMILY, "resamples")
        drawn = groups.drawn(groups.grouped(sums, self.group), self.resamples, rng)

        def pooled_mean(one: Mapping[str, Any]) -> Any:
            return form(one["sum"] / np.maximum(one["n" if over is None else "over"], 1e-12))

        low, high = bootstrap.interval(pooled_mean(drawn))
        value = float(pooled_mean({name: column.sum() for name, column in sums.items()}))
        unit = SPEED if over is None else "1"
        return {"value": value, "unit": unit, "n": int(sums["n"].sum()), "low": low, "high": high}


@dataclass(frozen=True)
class Scored:
    """What is measured of a law: its entry in metrics.json, what claims compare (S,), and what it
    says of the plane that is drawn."""

    entry: dict[str, Any]
    items: dict[str, np.ndarray]
    plane: Answer | None = None


def scored(law: Answer, data: Data) -> Scored:
    """What is measured of a law at all test targets."""
    (mean, sd), y = law, data.y
    spread = np.broadcast_to(sd.reshape(*mean.shape[:2], -1), mean.shape)
    squares, real = data.squares(law), not data.about["bound"]["test"]
    best = data.test.laws["increments" if real else "both"]
    everywhere = np.ones(squares.shape, dtype=bool)
    reached = log_likelihood(mean, spread, y).mean((1, 2))
    gap = log_likelihood(best[0], best[1][..., None], y).mean((1, 2)) - reached
    over, beside = ("over_increments", "gain") if real else ("over_optimum", "gap")
    ranked = data.scale * crps(mean, spread, y).mean(2)
    tasks = {"mse": squares.mean(1), "log_likelihood": reached, beside: -gap if real else gap,
             "crps": ranked.mean(1)}  # fmt: skip
    found = {
        "rmse": data.root(squares, everywhere),
        over: data.root(squares, everywhere, data.squares(best)),
        "mse": data.mean(tasks["mse"], SQUARE),
        "log_likelihood": data.mean(reached, NATS),
        beside: data.mean(tasks[beside], NATS),
        "crps": data.mean(tasks["crps"], SPEED),
    }
    for level in (0.5, 0.9):
        share = covered(mean, spread, y, level).mean((1, 2))
        found[f"coverage_{100 * level:.0f}"] = data.mean(share, "1")
    parts = {
        f"by_{name}": {
            str(label): {"rmse": data.root(squares, labels == label),
                         "crps": data.pooled(ranked, labels == label)}
            for label in np.unique(labels)
        }
        for name, labels in data.bins.items()
    }  # fmt: skip
    return Scored({"metrics": found, **parts}, tasks)


def filtered(data: Data) -> Answer:
    """The increments of the grid, through a Kalman filter on nodes, to the targets."""
    told, tasks, axes = data.about["fitted"], data.test.tasks, data.made.axes
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
    batch = Batches.of(data.made).batch(replace(tasks, context_y=known))
    law = model(batch)
    mean = rivals.relaxed(tasks, axes, tasks.target_x, told["relaxes"])
    return mean + law.mean.double().numpy(), law.scale[..., 0].double().numpy()


def companions(data: Data) -> dict[str, Scored]:
    """The laws that are kept, the filter, and the law of a wind of which nothing is known."""
    laws = data.test.laws
    found = {name: laws[law] for name, law in COMPANIONS.items() if law in laws}
    found[KALMAN] = filtered(data)
    spread = float(np.hypot(1.0, data.made.noise_m_s / data.scale))
    found[PRIOR] = np.zeros_like(data.y), np.full(data.y.shape[:2], spread)
    return {name: scored(law, data) for name, law in found.items()}


@torch.no_grad()
def said(model: FieldModel, parts: Sequence[Tasks], made: Told) -> Answer:
    """Means and standard deviations (S, T, O). DivergedError for a number that is none."""
    batches, found = Batches.of(made), []
    for part in parts:
        law = model(batches.batch(part))
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
    starts = range(0, len(data.test), CHUNK)
    parts = [data.test.some(slice(start, start + CHUNK)) for start in starts]
    answer = scored(said(model, parts, data.made), data)
    plane = said(model, [data.test.over(data.plane)], data.made) if data.plane else None
    weights = sum(one.numel() for one in model.parameters())
    told = {"weights": weights, "history": shell.validation_losses(run)}
    return Scored(answer.entry | told, answer.items, plane)


def write(answers: Mapping[str, Scored], data: Data, final: Path) -> None:
    """Write an evaluated folder, whole."""
    about = {
        "made": data.made.model_dump(mode="json"),
        "bound": data.about["bound"]["test"],
        "fitted": data.about["fitted"],
        "tasks": len(data.test),
        "unit": data.about["unit"],
    }
    if isinstance(data.made, Real):
        hours = len(data.about["sky"]["hour"])
        about |= {"groups": len(np.unique(data.group)), "hours": hours}
    told = Items(data.group, {name: one.items for name, one in answers.items()})
    with files.atomic_folder(final) as folder:
        cells = {name: one.entry for name, one in answers.items()}
        files.write_json(folder / "metrics.json", {"cells": cells, "about": about})
        items.write(folder, told)
        if data.plane:
            arrays.save(folder / PICTURE, picture(answers, data))


def picture(answers: Mapping[str, Scored], data: Data) -> dict[str, np.ndarray]:
    """What is drawn: the plane (N, 4) with the wind there, who has reported (C, 4), the hour that
    is now and the grid's age, and what each answer says (N, O), m/s."""
    plane, row = data.plane, data.plane["row"].item()
    mean = np.array(data.about["mean_m_s"])
    tasks = data.test.tasks
    said_of = {name: (one.plane[0][0], one.plane[1][0])
               for name, one in answers.items() if one.plane is not None}  # fmt: skip
    for name in (LINEAR, INCREMENTS):
        law = COMPANIONS[name]
        said_of[name] = plane[f"{law}_mean"], plane[f"{law}_sd"]
    found = {
        "x": plane["x"],
        "true": mean + data.scale * plane["true"],
        "where": plane["where"],
        "age": tasks.age[row],
        "reports": tasks.context_x[row][tasks.real[row]],
    }
    for name, (answer, sd) in said_of.items():
        spread = np.broadcast_to(sd.reshape(len(answer), -1), answer.shape)
        found |= {f"{name}.mean": mean + data.scale * answer, f"{name}.sd": data.scale * spread}
    return found
