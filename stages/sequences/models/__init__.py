"""Models of sequences in any order (thesis chapter 4): tokens (B, T) and an order (B, T) in, logits
(B, T, V) out. One file a model, key = file name; none is imported before it is asked for.

The plain GPT is sigma_gpt with the order left_to_right (permutations.py): the order belongs to
training and sampling, not to the network.
"""

from collections.abc import Mapping
from typing import Any

from stages import contracts
from stages.contracts import SequenceModel

DIMENSIONS = ("vocabulary", "length")
LIMITS = {"width": 8192, "keys": 1024, "hidden": 32768, "heads": 256, "blocks": 256}
LIMITS |= dict.fromkeys(DIMENSIONS, 1_000_000)


def names() -> tuple[str, ...]:
    """All models, sorted."""
    return contracts.names(__name__)


def model_class(name: str) -> type[SequenceModel]:
    """A model's class. InputError for an unknown name."""
    return contracts.model_class(__name__, name, SequenceModel)


def build(
    name: str,
    arm: Mapping[str, Any] | None,
    size: Mapping[str, Any] | None,
    vocabulary: int,
    length: int,
) -> SequenceModel:
    """A new model of sequences of `length` tokens out of 0..vocabulary-1, weights drawn from
    torch's global generator. InputError names the argument that does not fit."""
    dimensions = {"vocabulary": vocabulary, "length": length}
    return contracts.built(
        __name__, name, SequenceModel, {**(arm or {}), **(size or {})}, dimensions, LIMITS
    )


def rebuilt(metadata: Mapping[str, Any]) -> SequenceModel:
    """A new model as the metadata of a weights file describe it. InputError, KeyError."""
    dimensions = {key: metadata[key] for key in DIMENSIONS}
    return build(metadata["model"], metadata["arguments"], None, **dimensions)
