"""How well a model tells the tokens of unseen text (thesis 4.3.1 and 4.3.3, table 4.4): nats, perplexity and bits, in one order or another.

A model's loss on a window is -log p of each token given those that its order puts before: a window is a context of its own. By the chain
rule all orders of a perfect model agree in the sum over a window, whatever its single tokens cost. Levels of tokens are compared through
what a token stands for on average in the same part of the text: bits per character and perplexity per word (words between white space).
90 % intervals: windows are drawn in runs, for neighbours share their subject (bootstrap.py). Shapes: N windows in the order of the text,
T tokens, V vocabulary. Losses in nats.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stages.errors import DataError, InputError
from stages.evaluation import bootstrap
from stages.models.orders import permutations

ORDERS = ("left_to_right", "random", "fractal")


@torch.no_grad()
def losses(model: torch.nn.Module, tokens: Tensor, kind: str, generator: torch.Generator, batch: int = 16) -> np.ndarray:
    """-log p (N, T) float64 of tokens (N, T), by POSITION, in one order of `kind` a window; the model is put in eval mode.

    InputError for another kind; DataError where a loss is not finite.
    """
    if kind not in ORDERS:
        raise InputError("no such order to read a text in", found=repr(kind), expected=", ".join(ORDERS))
    model.eval()
    made = []
    for part in tokens.split(batch):
        order = permutations.draw(kind, len(part), part.shape[1], generator).to(part.device)
        guess = model(part, order).double().log_softmax(-1)
        told = -guess.gather(2, part.gather(1, order)[..., None])[..., 0]
        made.append(told.gather(1, permutations.inverse(order)).cpu().numpy())
    found = np.concatenate(made)
    if not np.isfinite(found).all():
        raise DataError("a loss is not finite", where=f"window {np.argwhere(~np.isfinite(found))[0][0]}, order {kind}",
                        found="nan or infinity", remedy="look at the model's training")
    return found


def unigram(training: np.ndarray, tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """-log p (N, T) of tokens by how often each stands in the training windows, one more each: what a model must beat."""
    count = np.bincount(training.ravel(), minlength=vocabulary) + 1.0
    return -np.log(count / count.sum())[tokens]


def metrics(found: np.ndarray, law: dict[str, Any], split: str, rng: np.random.Generator,
            resamples: int = 1000) -> dict[str, dict[str, Any]]:
    """Named metrics of losses (N, T) on the windows of a split; `law`: of the prepared text, which counts that part's tokens.

    Without such counts (a grammar) a token is a character, and there are no words. DataError where the counts are of nothing.
    """
    per = law.get("per", {}).get(split, {"tokens": 1, "characters": 1, "words": 0})
    if not (per["tokens"] and per["characters"]):
        raise DataError("a part of the text has no tokens", where=split, found=repr(per))
    mean = bootstrap.resample(found.mean(1, keepdims=True), resamples, rng)[:, 0] / len(found)
    value = found.mean()

    def metric(unit: str, form) -> dict[str, Any]:
        low, high = bootstrap.interval(form(mean))
        return {"value": float(form(value)), "unit": unit, "n": int(found.size), "low": low, "high": high}

    characters, words = per["tokens"] / per["characters"], per["words"] and per["tokens"] / per["words"]
    with np.errstate(over="raise"):
        try:
            named = {"nats": metric("nats/token", lambda nats: nats), "perplexity": metric("1/token", np.exp),
                     "bits_per_character": metric("bits/character", lambda nats: nats * characters / math.log(2))}
            return named | ({"perplexity_per_word": metric("1/word", lambda nats: np.exp(nats * words))} if words else {})
        except FloatingPointError:
            raise DataError("a perplexity is too large for a number", where=split,
                            found=f"{value:.3g} nats a token, {words:.3g} tokens a word", remedy="look at the model's training") from None
