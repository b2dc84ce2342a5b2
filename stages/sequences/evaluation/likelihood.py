"""Likelihood of held-out sequences (thesis 4.3): cross-entropy in nats a token, of the tokens after
the prompt, in the variant's own order and from left to right; of diffusion its variational bound.

Intervals are of groups of sequences (groups.py); windows of a text follow one another and are drawn
in runs (perplexity.py). A grammar's sequences are independent, and its letters are characters.

Shapes: N sequences, T tokens, K losses of each.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stages.contracts import SequenceModel
from stages.errors import DivergedError
from stages.scores import groups
from stages.sequences.evaluation import passes, perplexity
from stages.sequences.evaluation.data import EvaluationData

BOUND_ROWS = 8  # sequences of one draw of diffusion's bound


@torch.inference_mode()
def losses(
    model: SequenceModel, tokens: Tensor, order: Tensor, first: int, batch: int
) -> np.ndarray:
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


def token_metrics(
    data: EvaluationData, split: str, values: np.ndarray, suffix: str
) -> dict[Any, Any]:
    """Metrics of nats (N, K) of a split's sequences: nats and perplexity a token; of grammars also
    bits a letter, of texts those of perplexity.py."""
    rng, plan = data.rng("bootstrap"), data.settings.plan
    if data.meta["kind"] == "text":
        found = perplexity.metrics(values, data.meta["law"], split, rng, plan.bootstrap)
    else:
        group, weight = data.group[data.split(split)], np.full(len(values), values.shape[1])
        nats = groups.mean_of(values.sum(1), group, "nats/token", plan.bootstrap, rng, weight)
        ends = [key for key in ("value", "low", "high") if key in nats]
        raised = {key: float(np.exp(nats[key])) for key in ends}
        found = {"nats": nats, "perplexity": nats | raised | {"unit": "1/token"}}
        if data.meta["kind"] == "grammar":
            bits = {key: nats[key] / math.log(2) for key in ends}
            found["bits_per_character"] = nats | bits | {"unit": "bits/character"}
    return {
        f"{name}{suffix}{'' if split == 'test' else '_' + split}": one
        for name, one in found.items()
    }


def likelihood(model: SequenceModel, kind: str, data: EvaluationData) -> dict[Any, Any]:
    """Metrics of the test and validation sequences: in the own order, and with the suffix
    _left_to_right; of diffusion `nats_bound`."""
    found, first, plan = {}, data.meta["prompt"], data.settings.plan
    for split in ("val", "test"):
        tokens = torch.from_numpy(data.tokens[data.split(split)]).to(data.settings.device)
        if not model.ordered:
            values = bound(model, tokens, first, max(plan.diffusion), data.stream("bound", split))
            found |= {
                name: one
                for name, one in token_metrics(data, split, values, "_bound").items()
                if name.startswith("nats")
            }
            continue
        for suffix, one in {"": passes.own(kind), "_left_to_right": "left_to_right"}.items():
            order = passes.ordered(one, *tokens.shape, first, data.stream("orders", split))
            found |= token_metrics(
                data, split, losses(model, tokens, order, first, plan.batch), suffix
            )
    return found


@torch.inference_mode()
def bound(
    model: SequenceModel, tokens: Tensor, first: int, steps: int, generator: torch.Generator
) -> np.ndarray:
    """Draws of diffusion's variational bound (N, 1) in nats a token that is not given; sequences
    of one draw share its value."""
    given = torch.arange(tokens.shape[1], device=tokens.device) < first
    values = [
        model.bound(some, generator, steps, given.expand_as(some)).expand(len(some))
        for some in tokens.split(BOUND_ROWS)
    ]
    return torch.cat(values).double().cpu().numpy()[:, None]
