"""The trained cells of one data set of sequences, measured (thesis 4.3, D.4): likelihood, samples
of every sampler, learned densities.

samples.safetensors holds some samples of each cell and companion, and the order they came in, to
look at. Shapes: N sequences, T tokens, P prompt, V vocabulary.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from stages import files
from stages.contracts import SequenceModel
from stages.errors import DataError
from stages.scores import pool, shell
from stages.sequences.evaluation import (
    bias,
    bounds,
    chains,
    generations,
    infill,
    maze,
    memory,
    passes,
    posteriors,
    vertical,
)
from stages.sequences.evaluation.checkpoint import load
from stages.sequences.evaluation.companions import companions
from stages.sequences.evaluation.data import EvaluationData, Settings
from stages.sequences.evaluation.densities import densities, learned, uncertain
from stages.sequences.evaluation.likelihood import likelihood, losses
from stages.sequences.evaluation.samples import EVERY, SHOWN, sampled, strict
from stages.splits import SPLITS

BOUND_RUNS = 200
Shown = dict[str, np.ndarray]


def measure(
    model: SequenceModel, meta: dict[Any, Any], data: EvaluationData, where: str
) -> tuple[dict[Any, Any], Shown]:
    """A cell's entry of metrics.json, without its history, and its shown samples."""
    for key in ("vocabulary", "length"):
        if meta[key] != data.meta[key]:
            raise DataError(
                "a cell was trained on other sequences",
                where=where,
                expected=f"{key} {data.meta[key]}",
                found=str(meta[key]),
                remedy="run `dvc repro`, which trains it again",
            )
    model, plan = model.to(data.settings.device).eval(), data.settings.plan
    found = strict(likelihood(model, meta["order"], data))
    draws = passes.samplers(
        model, meta["order"], plan.orders, plan.diffusion, data.meta["kind"] in passes.ANSWERED
    )
    found["samplers"], shown = sampled(data, draws, where)
    if memory.asked(data):
        told_by = partial(losses, model, batch=plan.batch) if model.ordered else None
        found["memorised"] = memory.remembered(data, draws, meta["order"], told_by)
    # other models do not answer everywhere
    anywhere = meta["order"] in passes.ANY and model.ordered
    found |= densities(data, learned(model, data)) if anywhere else {"posteriors": {}}
    if anywhere and data.meta["kind"] == "maze":
        shown["density"] = path_density(model, data)
    # only the random order was trained to answer after any given tokens
    if anywhere and meta["order"] == "random" and not memory.asked(data):
        found["infilled"], more = infill.infill_metrics(model, data, data.sampled(), SHOWN)
        shown |= more
    return found | {"parameters": sum(value.numel() for value in model.parameters())}, shown


def path_density(model: SequenceModel, data: EvaluationData) -> np.ndarray:
    """The chance (n, T - P), float32, that the path of each shown maze passes each cell."""
    tokens, prompt = data.tokens[data.sampled()[:SHOWN]], data.meta["prompt"]
    known = np.broadcast_to(np.arange(tokens.shape[1]) < prompt, tokens.shape).copy()
    return learned(model, data)(tokens, known)[:, prompt:, maze.PATH].astype(np.float32)


def entry(data: EvaluationData, run: Path) -> tuple[dict[Any, Any], Shown]:
    """A cell's entry of metrics.json, and its shown samples."""
    model, meta = load(run)
    found, shown = measure(model, meta, data, run.name)
    return found | {"history": shell.validation_losses(run)}, shown


def cell(run: Path, prepared: Path, settings: Settings) -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    return entry(EvaluationData.open(prepared, settings), run)[0]


def untrained(prepared: Path, settings: Settings) -> dict[str, dict[Any, Any]]:
    """The companions' entries of metrics.json, by name."""
    data = EvaluationData.open(prepared, settings)
    return {name: found for name, found, _ in companions(data)}


def habits_of(data: EvaluationData) -> dict[str, Any]:
    """Prompt -> what the sampled flights themselves do: vertical.py."""
    numbers = data.sampled()
    return {
        prompt: vertical.habits(
            data.tokens[numbers],
            known,
            data.meta["law"],
            data.group[numbers],
            data.rng("bootstrap"),
            data.settings.plan.bootstrap,
        )
        for prompt, known in data.prompts(numbers).items()
    }


def known_of(data: EvaluationData) -> dict[Any, Any]:
    """What is known of the law without a model: its entropy in nats a token, the fewest passes by
    the number of orders tried, and how many cells of a maze have an exact chance between 0 and
    1."""
    kind, law = data.meta["kind"], data.meta["law"] | {"length": data.meta["length"]}
    found: dict[str, Any] = (
        {"entropy": posteriors.entropy(kind, law, data.meta["length"])}
        if kind == "permutation" or kind in chains.CHAINS
        else {}
    )
    if kind in bounds.KINDS:
        found["bounds"] = {
            str(orders): bounds.bound(
                kind, law, orders, BOUND_RUNS, data.rng("bounds", str(orders))
            )
            for orders in data.settings.plan.orders
        }
    if kind == "maze":
        found["uncertain"] = uncertain(data)
    if kind == "climb":
        found["habits"] = habits_of(data)
    if kind == "step":  # of laws of its own: once is enough
        found["bias"] = bias.bias_by_law(data.settings.seed)
    return found


def evaluate(cells: list[Path], prepared: Path, final: Path, settings: Settings) -> None:
    """Measure the cells (their folders) and put metrics.json, passes.json and samples.safetensors
    into `final`."""
    data = EvaluationData.open(prepared, settings)
    entries: dict[str, dict[Any, Any]] = {}
    tensors: Shown = {}
    numbers = data.sampled()[:SHOWN]
    tensors["truth"] = data.tokens[numbers].astype(np.int32)
    how = pool.Measuring(partial(EvaluationData.open, prepared, settings), entry, settings.device)
    named = [(run.name, *made) for run, made in pool.results_by_cell(cells, data, how)]
    for name, found, shown in (*companions(data), *named):
        entries[name] = found
        tensors |= {f"{name}/{key}": array for key, array in shown.items()}
    every = {
        name.removesuffix(EVERY): tensors.pop(name) for name in [*tensors] if name.endswith(EVERY)
    }
    together, maps = (
        generations.generations(data.reader, every, data.rng("generations")) if every else ({}, {})
    )
    tensors |= maps
    counts = {split: len(data.split(split)) for split in SPLITS}
    whole = {
        "cells": entries,
        "kind": data.meta["kind"],
        "prompt": data.meta["prompt"],
        "sequences": counts,
        "shown": numbers.tolist(),
        **known_of(data),
        **memory.named(data),
    } | ({"generations": together} if together else {})
    with files.atomic_folder(final) as folder:
        (folder / "samples.safetensors").write_bytes(
            save({name: np.ascontiguousarray(array) for name, array in sorted(tensors.items())})
        )
        files.write_json(folder / "metrics.json", whole)
        files.write_json(folder / "passes.json", {"rows": passes.table(entries)})
