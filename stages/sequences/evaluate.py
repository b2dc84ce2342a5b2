"""Evaluate the trained cells of one data set of sequences (thesis 4.3, D.4): likelihood, samples of
every sampler, learned densities.

Likelihood is cross-entropy in nats a token, of the tokens after the prompt, in the arm's own order
and from left to right; of diffusion its variational bound. Samples continue test prompts and are
judged by the rules of their kind (judges.py; climbs: vertical.py). Learned densities are compared
with exact ones (posteriors.py) by total variation, with a share of the tokens known. Beside the
cells stand companions: `uniform` tokens, the training `marginals` of each place, and for climbs
`persistence` and `constant_rate`. samples.safetensors holds some samples of each, and the order
they came in, to look at.
Shapes: N sequences, T tokens, P prompt, V vocabulary.
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save
from torch import Tensor, nn
from tqdm import tqdm

from stages import files, seeds
from stages.errors import DataError, DivergedError, InputError
from stages.fields import scores as set_scores
from stages.params.orders import OrderEvaluation
from stages.sequences.evaluation import (
    bias,
    bounds,
    chains,
    generations,
    infill,
    judges,
    maze,
    memory,
    passes,
    perplexity,
    posteriors,
    spread,
    vertical,
)
from stages.sequences.models import build
from stages.sequences.sampling.sequential import density
from stages.training import store

KEYS = (
    "model",
    "arm",
    "size",
    "seed",
    "arguments",
    "order",
    "vocabulary",
    "length",
)  # of a checkpoint's metadata
SPLITS = ("train", "val", "test")
SHOWN = 8  # samples of each sampler in samples.safetensors
# ends the names of all samples of texts and grammars, which are read together and not kept
EVERY = "/every"
BOUND_RUNS = 200
KNOWN = (
    0.0,
    0.1,
    0.5,
)  # shares of the tokens after the prompt that are known where densities are compared
UNIFORM, MARGINALS, PERSISTENCE, CONSTANT = (
    "uniform",
    "marginals",
    "persistence",
    "constant_rate",
)  # companions
BOUND_ROWS = 8  # sequences of one draw of diffusion's bound
CODE = (
    "stages/batches.py",
    "stages/sequences/models",
    "stages/layers/kernels/attention_code.py",
    "stages/training/store.py",
    "stages/layers/kernels/search_code.py",
    "stages/seeds.py",
    "stages/sequences/evaluation",
    *(f"stages/evaluation/{name}.py" for name in ("bootstrap", "set_scores")),
)


@dataclass(frozen=True)
class Settings:
    """What is sampled and how much, the seed of all draws, torch threads and device."""

    plan: OrderEvaluation
    seed: int
    threads: int = 1
    device: str = "cpu"


@dataclass(frozen=True)
class Held:
    """What all cells of a data set share."""

    tokens: np.ndarray  # N T, int64
    placed: np.ndarray  # N, index into SPLITS
    group: np.ndarray  # N, sequences with the same number are not independent
    meta: dict[str, Any]
    settings: Settings

    @classmethod
    def open(cls, prepared: Path, settings: Settings) -> "Held":
        """Read the prepared sequences. DataError when they are missing or not what preparation
        writes."""
        torch.set_num_threads(settings.threads)
        file = prepared / "sequences.safetensors"
        if not file.is_file():
            raise DataError(
                "the prepared sequences are missing", where=str(prepared), remedy="run `dvc repro`"
            )
        try:
            found = load_file(file)
            tokens, placed, group = found["tokens"].astype(np.int64), found["split"], found["group"]
        except (SafetensorError, KeyError) as error:
            raise DataError(
                "not prepared sequences",
                where=str(file),
                found=f"{type(error).__name__}: {error}",
                remedy="run `dvc repro`",
            ) from None
        meta = files.read_json(prepared / "sequences.json")
        if (
            meta["kind"] != "climb" and meta["kind"] != "text"
        ):  # drawn one by one by a simulator: independent, whatever file they lie in
            group = np.arange(len(tokens))
        return cls(tokens, placed, group, meta, settings)

    def split(self, name: str) -> np.ndarray:
        """The numbers of a split's sequences."""
        return np.flatnonzero(self.placed == SPLITS.index(name))

    def sampled(self) -> np.ndarray:
        """The test sequences whose prompts are continued: evenly spread."""
        return spread(self.split("test"), self.settings.plan.samples)

    def prompts(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """How many tokens (N,) of each sequence are given, by the prompt's name: of climbs those
        of vertical.py, else the data set's."""
        if self.meta["kind"] == "climb":
            return {
                name: vertical.given(self.tokens[numbers], self.meta["law"], name)
                for name in vertical.PROMPTS
            }
        return {"prompt": np.full(len(numbers), self.meta["prompt"])}

    @cached_property
    def reader(self) -> generations.Reader:
        """What samples of texts and grammars are compared with; learned once a process."""
        splits = {name: self.tokens[self.split(name)] for name in SPLITS}
        return generations.Reader.of(
            splits, self.meta["vocabulary"], self.meta["prompt"], self.settings.plan.samples
        )

    def stream(self, *names: str) -> torch.Generator:
        """A torch stream of these names on the device: the same for all cells."""
        return seeds.torch_stream(
            self.settings.seed, "evaluation", *names, device=self.settings.device
        )

    def rng(self, *names: str) -> np.random.Generator:
        """A NumPy stream of these names."""
        return seeds.stream(self.settings.seed, "evaluation", *names)


def strict(found: dict) -> dict:
    """{"metrics", "undefined"}: metrics without what is null, and why a metric is missing."""
    metrics = {
        name: {key: value for key, value in one.items() if value is not None}
        for name, one in found.items()
        if one["value"] is not None and np.isfinite(one["value"])
    }
    return {
        "metrics": metrics,
        "undefined": {name: "no sample to measure it on" for name in found if name not in metrics},
    }


@torch.inference_mode()
def losses(model: nn.Module, tokens: Tensor, order: Tensor, first: int, batch: int) -> np.ndarray:
    """Nats (N, T - first) float64 of each step after the first ones, in the orders' steps.
    DivergedError where one is not finite."""
    found = []
    for some, steps in zip(tokens.split(batch), order.split(batch), strict=True):
        guess = model(some, steps)[:, first:].double().log_softmax(2)
        found.append(
            -torch.take_along_dim(guess, torch.take_along_dim(some, steps, 1)[:, first:, None], 2)[
                ..., 0
            ]
        )
    made = torch.cat(found).cpu().numpy()
    if not np.isfinite(made).all():
        raise DivergedError(
            "a prediction is not a finite number",
            found=f"{int((~np.isfinite(made)).sum())} of {made.size} tokens",
        )
    return made


def told(held: Held, split: str, values: np.ndarray, suffix: str) -> dict:
    """Metrics of nats (N, K) of a split's sequences: nats and perplexity a token; of text also
    those of perplexity.py."""
    rng, plan = held.rng("bootstrap"), held.settings.plan
    if held.meta["kind"] in ("text", "grammar"):
        found = perplexity.metrics(values, held.meta["law"], split, rng, plan.bootstrap)
    else:
        group, weight = held.group[held.split(split)], np.full(len(values), values.shape[1])
        nats = set_scores.mean_of(values.sum(1), group, "nats/token", plan.bootstrap, rng, weight)
        raised = {key: float(np.exp(nats[key])) for key in ("value", "low", "high") if key in nats}
        found = {"nats": nats, "perplexity": nats | raised | {"unit": "1/token"}}
    return {
        f"{name}{suffix}{'' if split == 'test' else '_' + split}": one
        for name, one in found.items()
    }


def likelihood(model: nn.Module, kind: str, held: Held) -> dict:
    """Metrics of the test and validation sequences: in the own order, and with the suffix
    _left_to_right; of diffusion `nats_bound`."""
    found, first, plan = {}, held.meta["prompt"], held.settings.plan
    for split in ("val", "test"):
        tokens = torch.from_numpy(held.tokens[held.split(split)]).to(held.settings.device)
        if hasattr(model, "bound"):
            values = bound(model, tokens, first, max(plan.diffusion), held.stream("bound", split))
            found |= {
                name: one
                for name, one in told(held, split, values, "_bound").items()
                if name.startswith("nats")
            }
            continue
        for suffix, one in {"": passes.own(kind), "_left_to_right": "left_to_right"}.items():
            order = passes.ordered(one, *tokens.shape, first, held.stream("orders", split))
            found |= told(held, split, losses(model, tokens, order, first, plan.batch), suffix)
    return found


@torch.inference_mode()
def bound(
    model: nn.Module, tokens: Tensor, first: int, steps: int, generator: torch.Generator
) -> np.ndarray:
    """Draws of diffusion's variational bound (N, 1) in nats a token that is not given; sequences
    of one draw share its value."""
    given = torch.arange(tokens.shape[1], device=tokens.device) < first
    values = [
        model.bound(some, generator, steps, given.expand_as(some)).expand(len(some))
        for some in tokens.split(BOUND_ROWS)
    ]
    return torch.cat(values).double().cpu().numpy()[:, None]


def judged(held: Held, numbers: np.ndarray, known: np.ndarray, samples: np.ndarray) -> dict:
    """Metrics of samples (N, T) that continue the first `known` (N,) tokens of the sequences
    `numbers`; of text only those of generations.py."""
    kind, law = held.meta["kind"], held.meta["law"]
    if kind == "climb":
        return vertical.judge(
            samples,
            held.tokens[numbers],
            known,
            law,
            held.group[numbers],
            held.rng("bootstrap"),
            held.settings.plan.bootstrap,
        )
    found = (
        judges.judge(kind, samples, held.tokens[numbers, : known[0]], law)
        if kind in judges.JUDGES
        else {}
    )
    return found | (
        held.reader.compare(samples, held.rng("generations")) if kind in generations.KINDS else {}
    )


def sampled(
    held: Held, draws: dict[str, passes.Sampler], name: str
) -> tuple[dict, dict[str, np.ndarray]]:
    """sampler -> prompt -> {metrics, undefined}, and the shown samples by
    SAMPLER/PROMPT/{tokens,order}."""
    numbers, vocabulary, entries, shown = held.sampled(), held.meta["vocabulary"], {}, {}
    for sampler, one in draws.items():
        entries[sampler] = {}
        for prompt, known in held.prompts(numbers).items():
            stream = held.stream("sample", sampler, prompt)
            made = passes.drawn(
                one, held.tokens[numbers], known, vocabulary, held.settings.plan.batch, stream
            )
            if made.tokens.min() < 0 or made.tokens.max() >= vocabulary:
                raise DataError(
                    "a sample holds tokens that there are not",
                    where=f"{name}, {sampler}",
                    expected=f"0 to {vocabulary - 1}",
                    found=f"{made.tokens.min()} to {made.tokens.max()}",
                )
            entries[sampler][prompt] = strict(
                judged(held, numbers, known, made.tokens) | passes.costs(made)
            )
            parts = {"tokens": made.tokens, "order": made.order} | (
                {} if made.when is None else {"round": made.when}
            )
            shown |= {
                f"{sampler}/{prompt}/{part}": array[:SHOWN].astype(np.int32)
                for part, array in parts.items()
            }
            shown |= (
                {f"{sampler}{EVERY}": made.tokens} if held.meta["kind"] in generations.KINDS else {}
            )
    return entries, shown


Density = Callable[[np.ndarray, np.ndarray], np.ndarray]  # tokens (N, T), known (N, T) -> (N, T, V)


def densities(held: Held, learned: Density) -> dict:
    """Total variation of learned from exact densities at unknown positions, by the share of tokens
    known beside the prompt; {} where no exact one is known."""
    kind, law, count = held.meta["kind"], held.meta["law"], held.settings.plan.posteriors
    if kind not in posteriors.KINDS or not count:
        return {}
    numbers, prompt, found = held.split("test")[:count], held.meta["prompt"], {}
    tokens = held.tokens[numbers]
    for share in KNOWN:
        known = held.rng("known", f"{share:g}").random(tokens.shape) < share
        known[:, :prompt] = True
        exact, guess = posteriors.conditionals(kind, tokens, known, law), learned(tokens, known)
        apart = np.abs(exact - guess).sum(2) / 2 * ~known
        asked = (~known).sum(1)
        found[f"{100 * share:g}"] = set_scores.mean_of(
            apart.sum(1),
            np.arange(len(tokens)),
            "1",
            held.settings.plan.bootstrap,
            held.rng("bootstrap"),
            asked,
        )
    return found


def learned(model: nn.Module, held: Held) -> Density:
    """A model's densities, in batches."""

    def asked(tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
        place, size = held.settings.device, held.settings.plan.batch
        parts = [
            density(model, torch.from_numpy(t).to(place), torch.from_numpy(k).to(place))
            .double()
            .cpu()
            .numpy()
            for t, k in (
                (tokens[i : i + size], known[i : i + size]) for i in range(0, len(tokens), size)
            )
        ]
        return np.concatenate(parts)

    return asked


def measure(
    model: nn.Module, meta: dict, held: Held, where: str
) -> tuple[dict, dict[str, np.ndarray]]:
    """A cell's entry of metrics.json, without its history, and its shown samples."""
    for key in ("vocabulary", "length"):
        if meta[key] != held.meta[key]:
            raise DataError(
                "a cell was trained on other sequences",
                where=where,
                expected=f"{key} {held.meta[key]}",
                found=str(meta[key]),
                remedy="run `dvc repro`, which trains it again",
            )
    model, plan = model.to(held.settings.device).eval(), held.settings.plan
    entry = strict(likelihood(model, meta["order"], held))
    draws = passes.samplers(
        model, meta["order"], plan.orders, plan.diffusion, held.meta["kind"] in passes.ANSWERED
    )
    entry["samplers"], shown = sampled(held, draws, where)
    if memory.asked(held):
        told_by = None if hasattr(model, "bound") else partial(losses, model, batch=plan.batch)
        entry["memorised"] = memory.remembered(held, draws, meta["order"], told_by)
    anywhere = meta["order"] in passes.ANY and not hasattr(
        model, "bound"
    )  # other models do not answer everywhere
    entry["posteriors"] = densities(held, learned(model, held)) if anywhere else {}
    if (
        anywhere and held.meta["kind"] == "maze"
    ):  # of the shown mazes: the chance that the path passes each cell
        tokens, prompt = held.tokens[held.sampled()[:SHOWN]], held.meta["prompt"]
        known = np.broadcast_to(np.arange(tokens.shape[1]) < prompt, tokens.shape).copy()
        shown["density"] = learned(model, held)(tokens, known)[:, prompt:, maze.PATH].astype(
            np.float32
        )
    if (
        anywhere and meta["order"] == "random" and not memory.asked(held)
    ):  # trained to answer after any given tokens
        entry["infilled"], more = infill.measured(model, held, held.sampled(), SHOWN)
        shown |= more
    return entry | {"parameters": sum(value.numel() for value in model.parameters())}, shown


def companions(held: Held) -> Iterator[tuple[str, dict, dict[str, np.ndarray]]]:
    """Name, entry and shown samples of what needs no training."""
    length, vocabulary, train = (
        held.meta["length"],
        held.meta["vocabulary"],
        held.tokens[held.split("train")],
    )
    prompt, rules = held.meta["prompt"], {}
    counted = np.stack([np.bincount(place, minlength=vocabulary) for place in train.T]) + 1.0
    laws = {
        UNIFORM: np.full((length, vocabulary), 1 / vocabulary),
        MARGINALS: counted / counted.sum(1, keepdims=True),
    }
    if held.meta["kind"] == "climb":
        rules[PERSISTENCE] = partial(vertical.persistence, law=held.meta["law"])
        rules[CONSTANT] = partial(
            vertical.constant_rate,
            law=held.meta["law"],
            usual=vertical.rates(train, held.meta["law"]),
        )
    for name, law in laws.items():
        found = {}
        for split in ("val", "test"):
            asked = held.tokens[held.split(split)][:, prompt:]
            found |= told(held, split, -np.log(law[np.arange(prompt, length), asked]), "")
        entry = strict(found)
        entry["posteriors"] = densities(
            held, lambda tokens, known, law=law: np.broadcast_to(law, (*tokens.shape, vocabulary))
        )
        entry["samplers"], shown = sampled(held, {name: passes.trivial(law)}, name)
        yield name, entry | {"parameters": 0, "history": {"val": []}}, shown
    for name, rule in rules.items():
        entry = {
            "metrics": {},
            "undefined": {},
            "posteriors": {},
            "parameters": 0,
            "history": {"val": []},
        }
        entry["samplers"], shown = sampled(held, {name: passes.fixed(rule)}, name)
        yield name, entry, shown


def load(run: Path) -> tuple[nn.Module, dict]:
    """A cell's model in evaluation mode on the CPU, and its metadata. DataError for anything
    that training did not write."""
    path = run / "weights.safetensors"
    refuse = lambda found: DataError(
        "not a model that we wrote",
        where=str(path),
        expected="safetensors with our metadata",  # noqa: E731
        found=found,
        remedy="train it again: `dvc repro`; never load a checkpoint from elsewhere",
    )
    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            meta = json.loads((file.metadata() or {}).get(store.ENTRY) or "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        missing = [key for key in KEYS if key not in meta]
        if missing:
            raise refuse(f"no {', '.join(missing)} in the metadata")
        made = lambda: build(
            meta["model"], meta["arguments"], None, meta["vocabulary"], meta["length"]
        )  # noqa: E731
        with torch.device(
            "meta"
        ):  # only shapes: nothing is allocated before the file's tensors are known to fit
            expected = {
                name: (value.shape, value.dtype) for name, value in made().state_dict().items()
            }
        if expected != {name: (value.shape, value.dtype) for name, value in tensors.items()}:
            raise refuse("other tensors than the model's")
        if not all(torch.isfinite(value).all() for value in tensors.values()):
            raise refuse("numbers that are not finite")
        model = made()  # for good: tables of positions are computed, not stored
    except (SafetensorError, OSError, TypeError, ValueError, AttributeError, InputError) as error:
        raise refuse(f"{type(error).__name__}: {error}") from None
    model.load_state_dict(tensors)
    return model.eval(), meta


def cell(run: Path, prepared: Path, settings: Settings) -> dict:
    """One cell's entry of metrics.json, recomputed from its checkpoint (what `audit --verify
    eval` compares)."""
    return _entry(Held.open(prepared, settings), run)[0]


def _entry(held: Held, run: Path) -> tuple[dict, dict[str, np.ndarray]]:
    model, meta = load(run)
    entry, shown = measure(model, meta, held, run.name)
    validated = files.read_json(run / "history.json")["val"]
    return entry | {"history": {"val": [[one["step"], one["loss"]] for one in validated]}}, shown


_held: Held | None = None  # of a process that evaluates cells


def begin(parent: int, prepared: Path, settings: Settings) -> None:
    """Make this process one that evaluates cells, for as long as its parent lives."""
    global _held
    files.die_with(parent)
    _held = Held.open(prepared, settings)


def _cell_of(run: Path) -> tuple[dict, dict[str, np.ndarray]]:
    return _entry(_held, run)


def measured(
    runs: list[Path], prepared: Path, settings: Settings
) -> Iterator[tuple[dict, dict[str, np.ndarray]]]:
    """Each cell's entry and shown samples: one process a core, as cells know nothing of each
    other; this one where one is enough."""
    count = min(len(runs), len(os.sched_getaffinity(0))) if settings.device == "cpu" else 1
    if count == 1:
        yield from map(partial(_entry, Held.open(prepared, settings)), runs)
        return
    with ProcessPoolExecutor(
        count, get_context("spawn"), begin, (os.getpid(), prepared, settings)
    ) as pool:
        try:
            yield from tqdm(
                pool.map(_cell_of, runs),
                total=len(runs),
                desc="evaluate",
                unit="cell",
                disable=None,
            )
        except BrokenProcessPool:
            raise DataError(
                "a process that evaluated a cell was killed",
                where=str(runs[0].parent),
                found="likely by want of memory",
                remedy="free memory, or run fewer stages at once (JOBS=1); nothing was written",
            ) from None


def known_of(held: Held) -> dict:
    """What is known of the law without a model: its entropy in nats a token, and the fewest
    passes by the number of orders tried."""
    kind, law = held.meta["kind"], held.meta["law"] | {"length": held.meta["length"]}
    found = (
        {"entropy": posteriors.entropy(kind, law, held.meta["length"])}
        if kind == "permutation" or kind in chains.CHAINS
        else {}
    )
    if kind in bounds.KINDS:
        found["bounds"] = {
            str(orders): bounds.bound(
                kind, law, orders, BOUND_RUNS, held.rng("bounds", str(orders))
            )
            for orders in held.settings.plan.orders
        }
    if kind == "step":  # of laws of its own: once is enough
        found["bias"] = bias.measured(held.settings.seed)
    return found


def cells_of(runs: Path) -> list[Path]:
    """The folders of trained cells; what a killed training leaves has a dot and is none."""
    return sorted(path.parent for path in runs.glob("[!.]*/weights.safetensors"))


def evaluate(runs: Path, prepared: Path, final: Path, settings: Settings) -> None:
    """Evaluate every cell under `runs` and put metrics.json, passes.json and samples.safetensors
    into `final`."""
    cells = cells_of(runs)
    if not cells:
        raise InputError(
            "there is no trained cell to evaluate",
            where=str(runs),
            remedy="run `dvc repro`, which trains before it evaluates",
        )
    held, entries, tensors = Held.open(prepared, settings), {}, {}
    numbers = held.sampled()[:SHOWN]
    tensors["truth"] = held.tokens[numbers].astype(np.int32)
    named = [
        (run.name, *found)
        for run, found in zip(cells, measured(cells, prepared, settings), strict=True)
    ]
    for name, entry, shown in (*companions(held), *named):
        entries[name] = entry
        tensors |= {f"{name}/{key}": array for key, array in shown.items()}
    every = {
        name.removesuffix(EVERY): tensors.pop(name) for name in [*tensors] if name.endswith(EVERY)
    }
    together, maps = (
        generations.generations(held.reader, every, held.rng("generations")) if every else ({}, {})
    )
    tensors |= maps
    counts = {split: len(held.split(split)) for split in SPLITS}
    whole = {
        "cells": entries,
        "kind": held.meta["kind"],
        "prompt": held.meta["prompt"],
        "sequences": counts,
        "shown": numbers.tolist(),
        **known_of(held),
        **memory.named(held),
    } | ({"generations": together} if together else {})
    with files.atomic_folder(final) as folder:
        (folder / "samples.safetensors").write_bytes(
            save({name: np.ascontiguousarray(array) for name, array in sorted(tensors.items())})
        )
        files.write_json(folder / "metrics.json", whole)
        files.write_json(folder / "passes.json", {"rows": passes.table(entries)})
