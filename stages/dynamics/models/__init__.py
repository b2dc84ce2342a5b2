"""The networks of the family. One file a model, key = file name; none is imported before it is
asked for."""

from collections.abc import Mapping
from typing import Any

from stages import contracts
from stages.dynamics.contract import Forecaster


def names() -> tuple[str, ...]:
    """All models, sorted."""
    return contracts.names(__name__)


def model_class(name: str) -> type[Forecaster]:
    """A model's class. InputError for an unknown name."""
    return contracts.model_class(__name__, name, Forecaster)


def build(name: str, arguments: Mapping[str, Any], observed: int, scale: float) -> Forecaster:
    """A new model of so many observed values, whose change in a step has the standard deviation
    `scale`. InputError names the argument that does not fit."""
    dimensions: Mapping[str, Any] = {"observed": observed, "scale": scale}
    return contracts.built(__name__, name, Forecaster, arguments, dimensions, {})


def rebuilt(metadata: Mapping[str, Any]) -> Forecaster:
    """A new model as the metadata of a weights file describe it. InputError, KeyError."""
    told = metadata["model"], metadata["arguments"]
    return build(*told, metadata["observed"], metadata["scale"])
