"""The field models (thesis section 3.3.1): a context set and target points in, a prediction out.
One file a model, key = file name; none is imported before it is asked for.

A model says by its class attributes what it reads and how it is trained (stages/contracts.py).
Adding one is adding its file: no other model's cells become stale.
"""

from collections.abc import Mapping
from typing import Any

from stages import contracts
from stages.contracts import FieldModel

DIMENSIONS = ("x_dim", "i_dim", "o_dim")
LIMITS = {"width": 4096, "heads": 4096, "hidden": 16384, "layers": 256}
LIMITS |= dict.fromkeys(DIMENSIONS, 64)


def names() -> tuple[str, ...]:
    """All models, sorted."""
    return contracts.names(__name__)


def model_class(name: str) -> type[FieldModel]:
    """A model's class, whose attributes say what it reads. InputError for an unknown name."""
    return contracts.model_class(__name__, name, FieldModel)


def axes(name: str) -> int:
    """Axes of the places in wind that a model reads: latitude, longitude, altitude; of local
    contexts east, north, up and time."""
    return 4 if model_class(name).context in ("neighbours", "recent") else 3


def build(
    name: str,
    arm: Mapping[str, Any] | None = None,
    size: Mapping[str, Any] | None = None,
    x_dim: int | None = None,
    i_dim: int = 2,
    o_dim: int = 2,
) -> FieldModel:
    """A new model, weights drawn from torch's global generator; x_dim None: as many as it reads of
    the wind. InputError names the argument that does not fit."""
    dimensions = {"x_dim": axes(name) if x_dim is None else x_dim, "i_dim": i_dim, "o_dim": o_dim}
    return contracts.built(
        __name__, name, FieldModel, {**(arm or {}), **(size or {})}, dimensions, LIMITS
    )


def rebuilt(metadata: Mapping[str, Any]) -> FieldModel:
    """A new model as the metadata of a weights file describe it. InputError, KeyError."""
    dimensions = {key: metadata[key] for key in DIMENSIONS}
    return build(metadata["model"], metadata["arguments"], None, **dimensions)
