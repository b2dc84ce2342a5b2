"""Learned densities beside exact ones (posteriors.py): total variation, with a share of the tokens
known.

Shapes: N sequences, T tokens, V vocabulary.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stages.contracts import SequenceModel
from stages.scores import groups
from stages.sequences.evaluation import posteriors
from stages.sequences.evaluation.data import EvaluationData
from stages.sequences.sampling.sequential import density

# shares of the tokens after the prompt that are known where densities are compared
KNOWN = (0.0, 0.1, 0.5)
# tokens (N, T), known (N, T) -> (N, T, V)
Density = Callable[[np.ndarray, np.ndarray], np.ndarray]


def densities(data: EvaluationData, learned: Density) -> dict[Any, Any]:
    """Total variation of learned from exact densities at unknown positions, by the share of tokens
    known beside the prompt; {} where no exact one is known."""
    kind, law, count = data.meta["kind"], data.meta["law"], data.settings.plan.posteriors
    if kind not in posteriors.KINDS or not count:
        return {}
    numbers, prompt, found = data.split("test")[:count], data.meta["prompt"], {}
    tokens = data.tokens[numbers]
    for share in KNOWN:
        known = data.rng("known", f"{share:g}").random(tokens.shape) < share
        known[:, :prompt] = True
        exact, guess = posteriors.conditionals(kind, tokens, known, law), learned(tokens, known)
        apart = np.abs(exact - guess).sum(2) / 2 * ~known
        asked = (~known).sum(1)
        found[f"{100 * share:g}"] = groups.mean_of(
            apart.sum(1),
            np.arange(len(tokens)),
            "1",
            data.settings.plan.bootstrap,
            data.rng("bootstrap"),
            asked,
        )
    return found


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
