"""A data set's cells measured on the same kept tasks, beside the exact law and the prior.

A number is a mean over targets, then over tasks, with its 90 % interval over tasks: the log-density
in nats a target; `gap`, how far it lies below the exact law's on the same targets; the same of the
tasks shifted, and of a plane's turned, where the exact law turns with them; score and coverage; in
one dimension also of several targets together, by a chain (chain.py) or by the law's own functions.
Written: metrics.json; items.npz, what claims compare of each task (stages/scores/items.py); and
bands.json, what every cell says of one task (drawn.py).
Shapes: S tasks, T targets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stages import files, seeds
from stages.batches import Batch, single
from stages.contracts import FieldModel
from stages.errors import DivergedError
from stages.fields.models.neural_process import Coherent
from stages.fields.processes import chain, drawn, kept, laws
from stages.fields.processes.fresh import CHUNK
from stages.fields.processes.layout import BANDS, EXACT, PRIOR
from stages.fields.processes.settings import FAMILY, Asked, Functions, Processes
from stages.layers.heads import Gaussian, Predictive
from stages.layers.relative import RelativeAttention
from stages.scores import groups, items, shell
from stages.scores.items import Items
from stages.scores.scores import log_likelihood

NATS = "nats"
TOGETHER = (64, 8)  # tasks, and targets of each, whose joint density is measured
Law = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Data:
    """A prepared set and what is asked of it."""

    test: kept.KeptTasks
    functions: Functions
    about: dict[str, Any]
    asked: Asked
    seed: int

    @classmethod
    def open(cls, prepared: Path, functions: Functions, told: Processes, seed: int) -> "Data":
        """That of a prepared folder."""
        assert told.asked is not None
        about = kept.about(prepared)
        return cls(kept.read(prepared, "test"), functions, about, told.asked, seed)

    @property
    def y(self) -> np.ndarray:
        """What was measured at the targets (S, T)."""
        found: np.ndarray = self.test.batch.target_y[..., 0].double().numpy()
        return found

    @property
    def exact(self) -> Law:
        """The exact law, as a mixture of one."""
        mean, sd = self.test.exact_mean.numpy()[..., None], self.test.exact_sd.numpy()[..., None]
        return np.ones_like(mean), mean, sd

    def mean(self, values: np.ndarray, unit: str) -> dict[str, Any]:
        """The mean of values (S,), one a task; every cell's intervals come from the same draws."""
        rng = seeds.stream(self.seed, FAMILY, "resamples")
        return groups.mean_of(values, np.arange(len(values)), unit, self.asked.resamples, rng)


@dataclass(frozen=True)
class Answer:
    """What is measured of a law: its entry in metrics.json, what claims compare of each task (S,),
    and its bands, where it is a model's."""

    entry: dict[str, Any]
    items: dict[str, np.ndarray]
    drawn: dict[str, Any] | None = None


def turned(batch: Batch, degrees: float) -> Batch:
    """The same task of a plane, turned about 0."""
    angle = torch.tensor(np.radians(degrees), dtype=batch.context_x.dtype)
    matrix = torch.stack(
        (torch.stack((angle.cos(), angle.sin())), torch.stack((-angle.sin(), angle.cos())))
    )
    return replace(batch, context_x=batch.context_x @ matrix, target_x=batch.target_x @ matrix)


@torch.no_grad()
def said(model: FieldModel, data: Data, moved: Callable[[Batch], Batch] = lambda one: one) -> Law:
    """The laws at all test targets, of tasks that were `moved`. DivergedError for a number that is
    none."""
    found = []
    for start in range(0, len(data.test.exact_mean), CHUNK):
        batch = moved(data.test.some(slice(start, start + CHUNK)))
        found.append(laws.members(model(batch)))
    law = tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
    if not all(np.isfinite(part).all() for part in law):
        raise DivergedError("a prediction is not a finite number", where=type(model).__name__)
    return law  # type: ignore[return-value]  # of three


def density(law: Law, y: np.ndarray) -> np.ndarray:
    """The log-density of y (S, T)."""
    weights, means, sds = law
    each = np.log(np.maximum(weights, 1e-300)) + log_likelihood(means, sds, y[..., None])
    found: np.ndarray = np.logaddexp.reduce(each, axis=-1)
    return found


def scored(law: Law, data: Data) -> dict[str, Any]:
    """What is measured of the laws at all test targets."""
    y, reached = data.y, density(law, data.y)
    near = (np.abs(data.test.batch.target_x.numpy()) <= data.functions.reach).all(2)
    best = density(data.exact, y)
    found = {
        "log_likelihood": data.mean(reached.mean(1), NATS),
        "gap": data.mean((best - reached).mean(1), NATS),
        "crps": data.mean(laws.crps(law, y).mean(1), "1"),
    }
    for name, there in (("near", near), ("far", ~near)):
        if there.any():  # where contexts lie, and beyond
            mean = (reached * there).sum(1) / np.maximum(there.sum(1), 1)
            found[f"log_likelihood_{name}"] = data.mean(mean[there.any(1)], NATS)
    for level in (0.5, 0.9):
        share = laws.covered(law, y, level).mean(1)
        found[f"coverage_{100 * level:.0f}"] = data.mean(share, "1")
    return found


def companions(data: Data) -> dict[str, Answer]:
    """The exact law, and the law of a value of which nothing is known."""
    mean, sd = data.about["prior"]["mean"], data.about["prior"]["sd"]
    one = np.ones((*data.y.shape, 1))
    function = {key: value[: TOGETHER[0]].numpy() for key, value in data.test.function.items()}

    def exact(batch: Batch) -> Gaussian:
        x, y, targets = (
            part.double().numpy()
            for part in (batch.context_x, batch.context_y[..., 0], batch.target_x)
        )
        known = batch.context_mask.numpy()
        law = data.functions.made().exact(function, x, y, known, targets)
        return Gaussian(*(torch.from_numpy(part)[..., None] for part in law))

    def prior(batch: Batch) -> Gaussian:
        zero = torch.zeros_like(batch.target_x[:, :, :1])
        return Gaussian(zero + mean, zero + sd)

    found = {EXACT: (data.exact, exact), PRIOR: ((one, mean * one, sd * one), prior)}
    return {
        name: Answer(
            {"metrics": scored(law, data) | together(model, data)},
            {"log_likelihood": density(law, data.y).mean(1)},
        )
        for name, (law, model) in found.items()
    }


@torch.no_grad()
def together(model: Callable[[Batch], Predictive], data: Data) -> dict[str, Any]:
    """The density of several targets together, in nats a target, and how much lower it is where the
    law takes each for itself; {} but in one dimension."""
    tasks, targets = TOGETHER
    if data.functions.axes != 1:
        return {}
    batch = data.test.some(slice(0, tasks))
    batch = replace(
        batch,
        target_x=batch.target_x[:, :targets],
        target_mask=batch.target_mask[:, :targets],
        target_y=batch.target_y[:, :targets],
    )
    law, y = model(batch), batch.target_y
    each = law.log_prob(y).double().mean((1, 2)).numpy()
    joint = law.joint(y) if isinstance(law, Coherent) else chain.joint(model, batch)
    whole = (joint / targets).numpy()
    return {
        "log_likelihood_joint": data.mean(whole, NATS),
        "lost_apart": data.mean(whole - each, NATS),
    }


def memory(model: FieldModel, data: Data, whole: bool = False) -> dict[str, Any]:
    """Bytes that an answer takes, by numbers of points; `whole`: of all pairs at once, as the
    document's attention makes them. {} where a model has no pairs to make at once."""
    pairs = [part for part in model.modules() if isinstance(part, RelativeAttention)]
    if whole and not pairs:
        return {}
    for part in pairs:
        part.pairs = 1 << 62 if whole else RelativeAttention.pairs
    found = {}
    for contexts in data.asked.contexts:
        for targets in data.asked.targets:
            rng = seeds.stream(data.seed, FAMILY, "memory", contexts, targets)
            reach, ends = data.functions.reach, data.functions.range

            def points(*shape: int, by: float, rng: np.random.Generator = rng) -> Tensor:
                return torch.from_numpy(rng.uniform(-by, by, shape)).float()

            axes = data.functions.axes
            batch = single(
                points(contexts, axes, by=reach), points(contexts, 1, by=1.0),
                points(targets, axes, by=ends),
            )  # fmt: skip
            with torch.no_grad(), laws.Peak() as peak:
                model(batch)
            name = f"{'memory_whole' if whole else 'memory'}_{contexts}_{targets}"
            found[name] = {"value": peak.most / 1e6, "unit": "MB", "n": 1}
    for part in pairs:
        part.pairs = RelativeAttention.pairs
    return found


def answered(model: FieldModel, data: Data) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """All metrics of a model, and its log-density by task; `lost_...`: how much lower the same
    targets' density is where all points are moved."""
    law = said(model, data)
    found, plain = scored(law, data), density(law, data.y)
    tasks = {"log_likelihood": plain.mean(1)}
    moves = {"shifted": lambda batch: drawn.shifted(batch, data.asked.shift)}
    if data.functions.axes == 2:
        moves["turned"] = lambda batch: turned(batch, data.asked.turn_deg)
    for name, move in moves.items():
        elsewhere = density(said(model, data, move), data.y)
        tasks[f"log_likelihood_{name}"] = elsewhere.mean(1)
        found[f"log_likelihood_{name}"] = data.mean(elsewhere.mean(1), NATS)
        found[f"lost_{name}"] = data.mean((plain - elsewhere).mean(1), NATS)
    return found | together(model, data), tasks


def network(run: Path, data: Data, threads: int) -> Answer:
    """What is measured of a trained cell, and its bands."""
    from stages.training import store

    torch.set_num_threads(threads)
    model, _ = store.load(str(run / shell.WEIGHTS))
    assert isinstance(model, FieldModel)
    metrics, tasks = answered(model, data)
    entry = {
        "metrics": metrics | memory(model, data) | memory(model, data, whole=True),
        "weights": sum(one.numel() for one in model.parameters()),
        "history": shell.validation_losses(run),
    }
    return Answer(entry, tasks, drawn.bands(model, data))


def write(answers: Mapping[str, Answer], data: Data, final: Path) -> None:
    """Write an evaluated folder, whole."""
    about = {
        "made": data.functions.model_dump(mode="json"),
        "asked": data.asked.model_dump(mode="json"),
        "bound": data.about["bound"]["test"],
        "tasks": len(data.y),
    }
    cells = {name: one.entry for name, one in answers.items()}
    shown = {name: one.drawn for name, one in answers.items() if one.drawn is not None}
    kept_items = Items(np.arange(len(data.y)), {name: one.items for name, one in answers.items()})
    with files.atomic_folder(final) as folder:
        files.write_json(folder / "metrics.json", {"cells": cells, "about": about})
        items.write(folder, kept_items)
        files.write_json(folder / BANDS, {"truth": drawn.truth(data), "cells": shown})
