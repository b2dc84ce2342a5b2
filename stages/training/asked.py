"""What a person asks of a training in memory: its settings, checked by name and range, and what the
project's own checks say of arrays and arguments, with remedies that fit a caller from Python."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field

from stages.errors import DataError, InputError, ParamsError
from stages.params import checked, inference, nearest
from stages.params.base import Count, Positive, Section, Seed
from stages.training import loop as trainer

WHERE = "tradewind.fit"
LARGEST = 1e15  # above it the squares of values leave float32


class Settings(Section):
    """The settings that every training in memory has."""

    steps: Count
    learning_rate: Positive
    batch: Annotated[int, Field(ge=1, le=65536)]
    seed: Seed
    arguments: dict[str, Any] | None = None


S = TypeVar("S", bound=Settings)
B = TypeVar("B", bound=Section)


def settings(schema: type[S], **given: Any) -> S:
    """The settings, of Python's own numbers. InputError, naming every one that is no such number
    or word."""
    given = {key: plain(value) for key, value in given.items()}
    if isinstance(given["arguments"], Mapping):
        given["arguments"] = {key: plain(value) for key, value in given["arguments"].items()}
    try:
        return checked(schema, given, WHERE)
    except ParamsError as error:
        raise InputError(
            "settings of the training are out of range",
            where=WHERE,
            found=error.found,
            remedy="mend the settings named above",
        ) from None


def budget(schema: type[B], wanted: Settings, every: int, patience: int) -> B:
    """A family's budget of the training, a validation `every` so many steps."""
    own = ("steps", "batch", "learning_rate")
    told = {name: getattr(wanted, name) for name in own}
    return schema.model_validate(told | {"validate_every": every, "patience": patience})


def loop(wanted: Settings, every: int, patience: int) -> trainer.Settings:
    """What the training's loop is told, a validation `every` so many steps."""
    return trainer.Settings(
        wanted.steps,
        every,
        patience,
        wanted.learning_rate,
        inference().training.clip,
        wanted.seed,
        slices=wanted.batch,
    )


def refuse_unknown(fit: Callable[..., Any], given: Iterable[str]) -> None:
    """InputError for a setting that `fit` does not have, with those that it has."""
    known = [
        name
        for name, one in inspect.signature(fit).parameters.items()
        if one.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if unknown := [name for name in given if name not in known]:
        raise InputError(
            "the training has no such setting",
            where=WHERE,
            expected=", ".join(known),
            found="; ".join(name + nearest(name, known).split(" (known:")[0] for name in unknown),
            remedy="mend its name; what the model itself takes stands in `arguments`",
        )


def plain(value: Any) -> Any:
    """A number of NumPy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


@contextmanager
def ones_own(what: str, remedy: str) -> Iterator[None]:
    """An error of the project's checks, as InputError about what was handed over."""
    try:
        yield
    except (DataError, InputError) as error:
        raise InputError(
            error.what, where=what, expected=error.expected, found=error.found, remedy=remedy
        ) from None


def refuse_large(name: str, values: np.ndarray) -> None:
    """InputError for numbers that are not finite, or whose squares single precision lacks."""
    wrong = ~(np.abs(values) <= LARGEST)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0].tolist())
        raise InputError(
            f"{name} holds numbers that are not finite or too large",
            where=f"set, point, axis {list(at)} (counted from 0)",
            expected=f"finite numbers of at most {LARGEST:g} in size",
            found=f"{values[at]:g}, one of {int(wrong.sum()):,} such",
            remedy="leave these sets out, or give the values in a larger unit",
        )


def described(model: str, error: float, unit: str, net: Any) -> str:
    """A fitted model in a line: which, how well it does, how large it is."""
    count = sum(p.numel() for p in net.parameters())
    return f"Fitted({model!r}, error {error:.4g} {unit}, {count:,} parameters)"
