"""The models of tosses. One file a model, key = file name; none is imported before it is asked
for."""

from collections.abc import Mapping
from typing import Any

from stages import contracts
from stages.toys.contract import ToyModel


def names() -> tuple[str, ...]:
    """All models, sorted."""
    return contracts.names(__name__)


def model_class(name: str) -> type[ToyModel]:
    """A model's class. InputError for an unknown name."""
    return contracts.model_class(__name__, name, ToyModel)


def build(name: str, arguments: Mapping[str, Any], coins: int) -> ToyModel:
    """A new model of so many coins. InputError names the argument that does not fit."""
    return contracts.built(__name__, name, ToyModel, arguments, {"coins": coins}, {})


def rebuilt(metadata: Mapping[str, Any]) -> ToyModel:
    """A new model as the metadata of a weights file describe it. InputError, KeyError."""
    return build(metadata["model"], metadata["arguments"], metadata["coins"])
