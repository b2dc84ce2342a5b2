"""What needs no training, beside the cells: `uniform` tokens, the training `marginals` of each
place, and for climbs `persistence` and `constant_rate`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from stages.sequences.evaluation import passes, vertical
from stages.sequences.evaluation.data import EvaluationData
from stages.sequences.evaluation.densities import densities
from stages.sequences.evaluation.likelihood import token_metrics
from stages.sequences.evaluation.samples import sampled, strict

UNIFORM, MARGINALS, PERSISTENCE, CONSTANT = ("uniform", "marginals", "persistence", "constant_rate")


def companions(data: EvaluationData) -> Iterator[tuple[str, dict[Any, Any], dict[str, np.ndarray]]]:
    """Name, entry and shown samples of what needs no training."""
    length, vocabulary, train = (
        data.meta["length"],
        data.meta["vocabulary"],
        data.tokens[data.split("train")],
    )
    prompt, rules = data.meta["prompt"], {}
    counted = np.stack([np.bincount(place, minlength=vocabulary) for place in train.T]) + 1.0
    laws = {
        UNIFORM: np.full((length, vocabulary), 1 / vocabulary),
        MARGINALS: counted / counted.sum(1, keepdims=True),
    }
    if data.meta["kind"] == "climb":
        rules[PERSISTENCE] = partial(vertical.persistence, law=data.meta["law"])
        rules[CONSTANT] = partial(
            vertical.constant_rate,
            law=data.meta["law"],
            usual=vertical.rates(train, data.meta["law"]),
        )
    for name, law in laws.items():
        found = {}
        for split in ("val", "test"):
            asked = data.tokens[data.split(split)][:, prompt:]
            found |= token_metrics(data, split, -np.log(law[np.arange(prompt, length), asked]), "")
        entry = strict(found)
        entry |= densities(
            data, lambda tokens, known, law=law: np.broadcast_to(law, (*tokens.shape, vocabulary))
        )
        entry["samplers"], shown = sampled(data, {name: passes.trivial(law)}, name)
        yield name, entry | {"parameters": 0, "history": {"val": []}}, shown
    for name, rule in rules.items():
        entry = {
            "metrics": {},
            "undefined": {},
            "posteriors": {},
            "parameters": 0,
            "history": {"val": []},
        }
        entry["samplers"], shown = sampled(data, {name: passes.fixed(rule)}, name)
        yield name, entry, shown
