"""The trained cells of one problem on sets, measured (thesis 3.4, 3.5): test, validation and some
training sets, trivial companions, probes.

A model is asked as many targets at a time as when it was trained (its checkpoint's `targets`):
where targets see each other, an answer depends on what else is asked. Beside the cells stand
`mean`, which always answers the training targets' mean, and `nearest`, which answers with the
nearest context point's value where context and targets are one quantity. predictions.safetensors
holds a few test sets and what every cell says of them, in the problem's units. Shapes: S sets, C
context points, T targets, O components.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor, nn

from stages import files, seeds
from stages.errors import DataError
from stages.fields import failures, probes, scores
from stages.fields.evaluation_data import EvaluationData, Settings, finite, shuffled
from stages.fields.failures import spread
from stages.layers import distances
from stages.scores import groups, pool, shell
from stages.splits import SPLITS
from stages.training import store

SHOWN = 4  # test sets in predictions.safetensors
MEAN, NEAREST = "mean", "nearest"  # companions
TABLES = {"context_x": "x", "context_y": "i", "target_x": "x", "target_y": "o"}


def scored(
    data: EvaluationData, predicted: dict[str, Tensor], permuted: Tensor | None = None
) -> dict[Any, Any]:
    """Metrics of standardised predictions (S, T, O) by split: of the test sets (and their
    permuted contexts) by plain names, of others with `_split`."""
    sets, settings, test = data.sets, data.settings, predicted["test"]
    found: dict[str, dict[Any, Any]] = {"metrics": {}, "undefined": {}}
    for split, values in predicted.items():
        suffix = "" if split == "test" else f"_{split}"
        told = data.answers(data.numbers(split), values, None if suffix else permuted)
        rng = seeds.stream(settings.seed, "bootstrap")
        for key, part in zip(
            found,
            scores.summarise(told, settings.batch, data.unit, settings.resamples, rng, suffix),
            strict=True,
        ):
            found[key] |= part
    if data.shared is not None and test.shape[2] <= 2:
        numbers = sets.split("test")
        group, known = sets.group[numbers].cpu().numpy(), data.known(numbers)
        for name, values in (("hull_share", test), ("hull_share_measured", sets.target_y[numbers])):
            out = probes.outside(known, data.real("o", values))
            found["metrics"][name] = groups.mean_of(
                out.sum(1),
                group,
                "1",
                settings.resamples,
                seeds.stream(settings.seed, "bootstrap"),
                np.full(len(out), out.shape[1]),
            )
    return found


def measure(
    model: nn.Module, meta: dict[Any, Any], data: EvaluationData, where: str
) -> tuple[dict[Any, Any], np.ndarray]:
    """A cell's entry of metrics.json, without its history, and its predictions (n, T, O) of the
    shown sets, in the problem's units."""
    sets, settings = data.sets, data.settings
    for key, width in sets.dimensions.items():
        if meta[key] != width:
            raise DataError(
                "a cell was trained on other sets",
                where=where,
                expected=f"{key} {width}",
                found=str(meta[key]),
                remedy="run `dvc repro`, which trains it again",
            )
    model = model.to(settings.device).eval()
    asked = min(meta.get("targets") or sets.target_y.shape[1], sets.target_y.shape[1])
    numbers = sets.split("test")
    predicted = {
        split: finite(sets.predict(model, data.numbers(split), asked), f"{where}, {split} sets")
        for split in ("test", "val", "train")
    }
    permuted = finite(
        sets.predict(model, numbers, asked, shuffled(sets, numbers, settings.seed)),
        f"{where}, permuted contexts",
    )
    found = scored(data, predicted, permuted) | {
        "parameters": sum(value.numel() for value in model.parameters())
    }
    if settings.probed:
        found["probes"] = failures.probe(
            failures.Probed(
                model,
                meta["model"],
                sets,
                numbers,
                asked,
                data.unit,
                data.scale,
                settings.resamples,
                settings.seed,
                settings.most,
            )
        )
    places = torch.searchsorted(numbers, spread(numbers, SHOWN))
    return found, data.real("o", predicted["test"][places]).astype(np.float32)


def companions(data: EvaluationData) -> Iterator[tuple[str, dict[Any, Any], np.ndarray]]:
    """Name, entry and shown predictions of what needs no training."""
    sets = data.sets
    mean = sets.target_y[sets.split("train")].double().mean((0, 1))
    found = {
        MEAN: [
            mean.float().expand_as(sets.target_y[sets.split(split)]) for split in ("test", "val")
        ]
    }
    if data.shared is not None:
        found[NEAREST] = [nearest(data, sets.split(split)) for split in ("test", "val")]
    numbers = sets.split("test")
    places = torch.searchsorted(numbers, spread(numbers, SHOWN))
    for name, (test, val) in found.items():
        split = scored(data, {"test": test, "val": val})
        whole = split | {"parameters": 0, "history": {"val": []}}
        yield name, whole, data.real("o", test[places]).astype(np.float32)


def nearest(data: EvaluationData, numbers: Tensor) -> Tensor:
    """The value of each target's nearest context point (S, T, O), standardised as targets are;
    distances in the problem's units of position, of equally near points the first."""
    scaler = data.sets.meta["scaler"]
    scale = torch.tensor(scaler["x_std"], dtype=torch.float32, device=numbers.device)
    o_mean, o_std = (
        torch.tensor(scaler[f"o_{part}"], dtype=torch.float64, device=numbers.device)
        for part in ("mean", "std")
    )
    parts = []
    for some in numbers.split(64):
        context, asked = data.sets.context_x[some] * scale, data.sets.target_x[some] * scale
        known = torch.from_numpy(data.known(some)).to(numbers.device)
        parts.append(torch.take_along_dim(known, distances.nearest(asked, context, 1).index, 1))
    return ((torch.cat(parts) - o_mean) / o_std).float()


def entry(data: EvaluationData, run: Path) -> tuple[dict[Any, Any], np.ndarray]:
    """A cell's entry of metrics.json and its predictions (n, T, O) of the shown sets."""
    model, meta = store.load(str(run / shell.WEIGHTS))
    found, shown = measure(model, meta, data, run.name)
    return found | {"history": shell.validation_losses(run)}, shown


def cell(run: Path, prepared: Path, settings: Settings) -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    return entry(EvaluationData.open(prepared, settings), run)[0]


def untrained(prepared: Path, settings: Settings) -> dict[str, dict[Any, Any]]:
    """The companions' entries of metrics.json, by name."""
    data = EvaluationData.open(prepared, settings)
    return {name: found for name, found, _ in companions(data)}


def evaluate(cells: list[Path], prepared: Path, final: Path, settings: Settings) -> None:
    """Measure the cells (their folders) and put metrics.json and predictions.safetensors into
    `final`."""
    data = EvaluationData.open(prepared, settings)
    numbers = spread(data.sets.split("test"), SHOWN)
    tensors = {
        name: data.real(key, getattr(data.sets, name)[numbers]).astype(np.float32)
        for name, key in TABLES.items()
    }
    entries = {}
    for name, found, shown in companions(data):
        entries[name], tensors[name] = found, shown
    how = pool.Measuring(partial(EvaluationData.open, prepared, settings), entry, settings.device)
    with files.atomic_folder(final) as folder:
        for run, (found, shown) in pool.results_by_cell(cells, data, how):
            entries[run.name], tensors[run.name] = found, shown
        (folder / "predictions.safetensors").write_bytes(save(dict(sorted(tensors.items()))))
        counts = {split: len(data.sets.split(split)) for split in SPLITS}
        grouped = {split: len(data.sets.group[data.sets.split(split)].unique()) for split in SPLITS}
        files.write_json(
            folder / "metrics.json",
            {"cells": entries, "sets": counts, "groups": grouped, "shown": numbers.tolist()},
        )
