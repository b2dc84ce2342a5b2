"""The models of the family. One file a model, key = file name; none is imported before it is asked
for."""

from collections.abc import Mapping
from typing import Any

from stages import contracts
from stages.tokens.contract import TokenModel

DIMENSIONS = ("task", "vocabulary", "outputs", "longest")  # what the data say


def names() -> tuple[str, ...]:
    """All models, sorted."""
    return contracts.names(__name__)


def model_class(name: str) -> type[TokenModel]:
    """A model's class. InputError for an unknown name."""
    return contracts.model_class(__name__, name, TokenModel)


def build(name: str, arguments: Mapping[str, Any], dimensions: Mapping[str, Any]) -> TokenModel:
    """A new model for data of these dimensions. InputError names what does not fit."""
    return contracts.built(__name__, name, TokenModel, arguments, dimensions, {})


def rebuilt(metadata: Mapping[str, Any]) -> TokenModel:
    """A new model as the metadata of a weights file describe it. InputError, KeyError."""
    dimensions = {name: metadata[name] for name in DIMENSIONS}
    return build(metadata["model"], metadata["arguments"], dimensions)
