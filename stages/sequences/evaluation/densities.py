"""Learned densities beside exact ones (posteriors.py): total variation, with a share of the tokens
known.

Shapes: N sequences, T tokens, V vocabulary.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from stages.contracts import SequenceModel
from stages.scores import groups
from stages.sequences.evaluation import maze, posteriors
from stages.sequences.evaluation.data import EvaluationData
from stages.sequences.sampling.sequential import density

# shares of the tokens after the prompt that are known where densities are compared
KNOWN = (0.0, 0.1, 0.5)
# tokens (N, T), known (N, T) -> (N, T, V)
Density = Callable[[np.ndarray, np.ndarray], np.ndarray]


def compared(data: EvaluationData) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """By the share of tokens known, in %: tokens (N, T), which are known (N, T), and the exact
    densities (N, T, V); nothing where no exact one is known."""
    kind, law, count = data.meta["kind"], data.meta["law"], data.settings.plan.posteriors
    if kind not in posteriors.KINDS or not count:
        return
    tokens = data.tokens[data.split("test")[:count]]
    for share in KNOWN:
        known = data.rng("known", f"{share:g}").random(tokens.shape) < share
        known[:, : data.meta["prompt"]] = True
        exact = posteriors.conditionals(kind, tokens, known, law)
        yield f"{100 * share:g}", tokens, known, exact


def untold(data: EvaluationData, tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The places (N, T) of mazes that are not known and that copying does not tell: cells that were
    empty."""
    prompt = data.meta["prompt"]
    empty = np.zeros_like(known)
    empty[:, prompt:] = tokens[:, :prompt] == maze.EMPTY
    return empty & ~known


def uncertain(data: EvaluationData) -> dict[str, dict[str, int]]:
    """By the share of tokens known: of how many `cells` a path's density is asked, and of how many
    of these the exact chance lies `between` 0 and 1."""
    found = {}
    for share, tokens, known, exact in compared(data):
        chance = exact[..., maze.PATH][untold(data, tokens, known)]
        found[share] = {"cells": len(chance), "between": int(maze.between(chance).sum())}
    return found


def densities(data: EvaluationData, learned: Density) -> dict[str, dict[str, Any]]:
    """`posteriors`: the mean total variation of learned from exact densities at unknown positions,
    by the share of tokens known beside the prompt; {} where no exact one is known.

    Of mazes also `path_posteriors`: nearly all places follow from copying the maze, so here it is
    summed over those that do not (`untold`) and divided by the path cells that the law expects
    among them. Whoever copies the maze and draws no path has 1, whatever the maze; whoever marks
    cells at random may have more. A maze whose path is all known is left out.
    """
    plan, everywhere, of_paths = data.settings.plan, {}, {}

    def mean(sums: np.ndarray, over: np.ndarray) -> dict[Any, Any]:
        each = np.arange(len(sums))
        one = groups.mean_of(sums, each, "1", plan.bootstrap, data.rng("bootstrap"), over)
        return one | {"n": round(float(over.sum()))}

    for share, tokens, known, exact in compared(data):
        apart = np.abs(exact - learned(tokens, known)).sum(2) / 2
        everywhere[share] = mean((apart * ~known).sum(1), (~known).sum(1))
        if data.meta["kind"] == "maze":
            places = untold(data, tokens, known)
            paths = (exact[..., maze.PATH] * places).sum(1)
            if paths.any():
                of_paths[share] = mean((apart * places).sum(1), paths)
    found = {"posteriors": everywhere}
    return found | ({"path_posteriors": of_paths} if of_paths else {})


def learned(model: SequenceModel, data: EvaluationData) -> Density:
    """A model's densities, in batches."""

    def asked(tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
        place, size = data.settings.device, data.settings.plan.batch
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
