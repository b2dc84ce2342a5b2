"""How well a model tells the tokens of unseen text (thesis 4.3.1 and 4.3.3, table 4.4): nats,
perplexity and bits, in one order or another.

A model's loss on a window is -log p of each token given those that its order puts before: a window
is a context of its own. By the chain rule all orders of a perfect model agree in the sum over a
window, whatever its single tokens cost. Levels of tokens are compared through what a token stands
for on average in the same part of the text: bits per character and perplexity per word (words
between white space). 90 % intervals: windows are drawn in runs, for neighbours share their subject
(bootstrap.py). Shapes: N windows in the order of the text, T tokens. Losses in nats.
"""

import math
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.scores import bootstrap


def metrics(
    found: np.ndarray,
    law: dict[str, Any],
    split: str,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> dict[str, dict[str, Any]]:
    """Named metrics of losses (N, T) on the windows of a split; `law`: of the prepared text, which
    counts that part's tokens.

    Without such counts a token is a character, and there are no words. DataError where the counts
    are of nothing.
    """
    per = law.get("per", {}).get(split, {"tokens": 1, "characters": 1, "words": 0})
    if not (per["tokens"] and per["characters"]):
        raise DataError("a part of the text has no tokens", where=split, found=repr(per))
    mean = bootstrap.resample(found.mean(1, keepdims=True), resamples, rng)[:, 0] / len(found)
    value = found.mean()

    def metric(unit: str, form) -> dict[str, Any]:
        low, high = bootstrap.interval(form(mean))
        return {
            "value": float(form(value)),
            "unit": unit,
            "n": int(found.size),
            "low": low,
            "high": high,
        }

    characters, words = (
        per["tokens"] / per["characters"],
        per["words"] and per["tokens"] / per["words"],
    )
    with np.errstate(over="raise"):
        try:
            named = {
                "nats": metric("nats/token", lambda nats: nats),
                "perplexity": metric("1/token", np.exp),
                "bits_per_character": metric(
                    "bits/character", lambda nats: nats * characters / math.log(2)
                ),
            }
            return named | (
                {"perplexity_per_word": metric("1/word", lambda nats: np.exp(nats * words))}
                if words
                else {}
            )
        except FloatingPointError:
            raise DataError(
                "a perplexity is too large for a number",
                where=split,
                found=f"{value:.3g} nats a token, {words:.3g} tokens a word",
                remedy="look at the model's training",
            ) from None
