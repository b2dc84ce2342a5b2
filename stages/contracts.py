"""What a model is: the duties of everything that is trained, each with its default.

A family's models derive from one of these classes, so that nothing asks a model whether it has a
method. A family keeps one file a model in a package, and the file's name is the model's: `names`
lists them and imports none, `model_class` imports the one asked for. What a model of fields reads
and returns: stages/batches.py. Shapes: B batch, T tokens, V vocabulary, N places, X axes, O values.
"""

import difflib
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from stages.errors import InputError


class Model(nn.Module):
    """What a trainer may ask of any model.

    learns: "gradient", "nothing" or "neighbours" (k is chosen on validation data); learning_rate:
    the model's own, None for the protocol's; rates: prefix of a parameter's name -> its own rate;
    own_loss: whether `loss(batch)` is what it learns by (it is never selected by it); limits and
    words: the largest whole number, and the choices, of its arguments beside the family's.
    """

    learns: str = "gradient"
    learning_rate: float | None = None
    rates: Mapping[str, float] = {}
    own_loss: bool = False
    loss: Callable[..., Tensor]
    limits: ClassVar[Mapping[str, int]] = {}
    words: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """What is wrong with arguments as they were given, beyond limits and words, a phrase
        each."""
        return []

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """Which arguments, each right by itself and defaults filled in, do not go together."""
        return []


class FieldModel(Model):
    """A model of fields: stages.batches.Batch in, Prediction out.

    context: which part of the data stands in a batch ("slice", "hour", "day", "neighbours" or
    "recent"); outputs: "any" values, or the "same" as are read; has_nodes: whether `place_nodes`
    is to be called, once, before training; window_s: how long "recent" is; head: "gaussian" where
    the scale of a prediction is learned, not only the mean.
    """

    context: str = "slice"
    outputs: str = "same"
    has_nodes: bool = False
    window_s: float = 0.0
    head: str = "mean"

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """Lengths, times and speeds are above 0."""
        return [
            f"{key} must be a number above 0, not {value!r}"
            for key, value in given.items()
            if key.endswith(("_km", "_min", "_m_s"))
            and not (type(value) in (int, float) and 0 < value < float("inf"))
        ]

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """Widths are multiples of the heads; and who predicts what it reads, as many values."""
        found = [
            f"{key} {whole[key]} is not a multiple of heads {whole['heads']}"
            for key in ("width", "hidden")
            if key in whole and "heads" in whole and whole[key] % whole["heads"]
        ]
        i_dim, o_dim = whole["i_dim"], whole["o_dim"]
        if cls.outputs == "same" and i_dim != o_dim:
            found.append(f"a model of the {i_dim} values that it reads cannot predict {o_dim}")
        return found

    def set_scaler(self, y_mean: Tensor, y_std: Tensor, altitude_km: float = 0.0) -> None:
        """Be told what a standardised value is: mean and standard deviation (O,) of the training
        rows, in the model's units, and the altitude where local height is 0. Most need not know."""

    def place_nodes(self, positions: Tensor, generator: torch.Generator) -> None:
        """Put nodes where the training contexts lie, positions (N, X); `generator` is the CPU's."""


class SequenceModel(Model):
    """A model of sequences. `ordered`: it predicts the tokens (B, T) in any order given, logits
    (B, T, V) by `forward(tokens, order)`; else it knows no order, and brings a `loss`, a `bound`
    on the likelihood and a way to `sample`."""

    ordered: bool = True

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """Dropout is a share."""
        dropout = given.get("dropout", 0.0)
        if type(dropout) in (int, float) and 0 <= dropout < 1:
            return []
        return [f"dropout must be a number from 0 to below 1, not {dropout!r}"]

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """The width holds two positions' sines and cosines, and the heads."""
        width, heads = whole["width"], whole["heads"]
        if width % math.lcm(4, heads) == 0:
            return []
        return [
            (
                f"width {width} is not a multiple of 4 (two positions, sine and cosine) and of "
                f"heads {heads}"
            )
        ]


M = TypeVar("M", bound=Model)


def names(package: str) -> tuple[str, ...]:
    """The models of a package ("stages.fields.models"), sorted; none is imported."""
    home = importlib.import_module(package).__path__
    return tuple(sorted(entry.name for entry in pkgutil.iter_modules(home)))


def model_class(package: str, name: str, base: type[M]) -> type[M]:
    """The class of a package's model, a `base`: the one of its file whose name, in lower case, is
    the file's without underscores (gka_tnn: GKATNN). InputError gives the nearest names for an
    unknown one."""
    known = names(package)
    if name not in known:
        raise InputError(
            f"no such model in {package}",
            found=repr(name),
            expected=" or ".join(difflib.get_close_matches(name, known, 3) or known),
        )
    module = importlib.import_module(f"{package}.{name}")
    wanted = name.replace("_", "")
    return next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, base) and value.__name__.lower() == wanted
    )


def built(
    package: str,
    name: str,
    base: type[M],
    arguments: Mapping[str, Any],
    dimensions: Mapping[str, int],
    limits: Mapping[str, int],
) -> M:
    """A new model, weights drawn from torch's global generator.

    dimensions: what the data say, which no argument may; limits: the family's largest whole
    numbers. InputError names every argument that does not fit.
    """
    model = model_class(package, name, base)
    known = {
        key: parameter.default
        for key, parameter in inspect.signature(model).parameters.items()
        if key not in dimensions
    }
    limits = {**limits, **model.limits}
    problems = [f"{key} is not an argument" for key in sorted(set(arguments) - set(known))]
    for key, value in {**arguments, **dimensions}.items():
        if key in limits and not (type(value) is int and 1 <= value <= limits[key]):
            problems.append(f"{key} must be a whole number from 1 to {limits[key]}, not {value!r}")
        if key in model.words and value not in model.words[key]:
            choices = ", ".join(map(str, model.words[key]))
            problems.append(f"{key} must be one of {choices}, not {value!r}")
    problems += model.problems({**arguments, **dimensions})
    if not problems:
        problems += model.misfits({**known, **arguments, **dimensions})
    if problems:
        raise InputError(
            "the arguments do not fit the model",
            where=f"models.{name}",
            found="; ".join(problems),
            expected=f"of {', '.join(sorted(known)) or 'none'}",
            remedy="mend its arms and sizes in params.yaml",
        )
    return model(**dimensions, **arguments)
