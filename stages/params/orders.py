"""What a profile can afford of the thesis' chapter 4: how sequences are read, how a model learns
them, and how it is sampled and judged.

Sections of a profile: `readings.<dataset>`, `learning_orders.<dataset>`, `orders`. A step takes
`batch` sequences; the share of sequences shown from left to right at a curriculum's first step is a
number from 0 to 1 (table 4.4 labels its rows by it).
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from stages.params.base import Count, Name, Positive, Section
from stages.params.sequences import ClimbReading, Reading, Text

Share = Annotated[float, Field(ge=0, le=1)]
Few = Annotated[int, Field(ge=1, le=1000)]


def without_defaults(
    told: dict[str, Any], section: Section, names: tuple[str, ...]
) -> dict[str, Any]:
    """A section's content without those of the names that have their defaults."""
    fields = type(section).model_fields
    return {
        key: value
        for key, value in told.items()
        if key not in names or value != fields[key].default
    }


class PlainReading(Reading):
    """How a set of its own simulator's format is read."""

    reader: Literal["laws", "walk", "maze", "grammar"]


class FlightReading(ClimbReading):
    """How flights are read."""

    reader: Literal["climb"]


class TextReading(Text):
    """How a text is read."""

    reader: Literal["text"]


Readings = Annotated[
    PlainReading | FlightReading | TextReading, Field(discriminator="reader")
]  # `reader`: a file of stages/sequences/data


class OrderBudget(Section):
    """How a cell learns a data set of sequences. `rates`: models that learn at another rate than
    `learning_rate`.

    `prompt_loss`: the prompt's tokens count in the loss and are shuffled like all others (the
    public code of the thesis); else they stand first in every order and do not count. `curriculum`:
    share of sequences that are shown from left to right at the first step of a model whose order is
    `curriculum`; it falls linearly to 0 over the steps. A model's arm may set its own.

    `dropout`: of every model of the data set, in its arm's place; null: the arm's. `select`: which
    weights are kept, of the least validation loss or the last; all models of a data set are so
    compared at one place in training. `per_doubling`: further validations from each step to its
    double, evenly in logarithms.
    """

    steps: Count
    validate_every: Count
    patience: Count
    batch: Annotated[int, Field(ge=1, le=65536)]
    learning_rate: Positive
    rates: dict[Name, Positive] = {}
    schedule: Literal["constant", "cosine"] = "constant"
    prompt_loss: bool = False
    curriculum: Share = 1.0
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    select: Literal["best", "last"] = "best"
    per_doubling: Annotated[int, Field(ge=0, le=16)] = 0

    @model_serializer(mode="wrap")
    def as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what is as it was before it could be declared: records of then stay right."""
        return without_defaults(handler(self), self, ("dropout", "select", "per_doubling"))


class OrderEvaluation(Section):
    """How the cells of a data set are sampled and judged: `samples` test prompts (all where there
    are fewer), `batch` sequences at a time.

    `orders`: numbers of orders that bursts try; `diffusion`: numbers of denoising steps;
    `posteriors`: test sequences whose exact conditionals are compared with the learned ones, 0 for
    none; `bootstrap`: resamples of an interval; `memory`: data sets of at most so many training
    sequences are sampled and judged at training prompts too (4.3.6), 0 for none; `each`: samples
    of every flight's prompt by the sampler that stands for a model (20 in the thesis).
    """

    samples: Count
    batch: Annotated[int, Field(ge=1, le=65536)] = 100
    orders: Annotated[tuple[Few, ...], Field(max_length=8)] = (1, 5, 20)
    diffusion: Annotated[tuple[Few, ...], Field(max_length=8)] = (1, 4, 16)
    posteriors: Annotated[int, Field(ge=0, le=10_000)] = 50
    bootstrap: Count = 1000
    memory: Annotated[int, Field(ge=0)] = 0
    each: Few = 1

    @model_validator(mode="after")
    def each_once(self) -> Self:
        for key in ("orders", "diffusion"):
            values = getattr(self, key)
            if list(values) != sorted(set(values)):
                raise ValueError(f"{key}: {list(values)} is not in rising order, each number once")
        return self

    @model_serializer(mode="wrap")
    def as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what is as it was before it could be declared: records of then stay right."""
        return without_defaults(handler(self), self, ("each",))
