"""What the toys' parameters may say: a set of coins, and what a profile affords."""

from typing import Annotated

from pydantic import Field

from stages.params import Name, Params, Section, checked
from stages.params.base import Count, Positive, Seed

FAMILY = "toys"


class Coins(Section):
    """Bent coins: the chance of heads of each, and how often it is tossed."""

    seed: Seed
    chances: tuple[Annotated[float, Field(gt=0, lt=1)], ...]
    tosses: Count


class Budget(Section):
    """How long a cell may train; a step sees `batch` tosses."""

    steps: Count
    validate_every: Count
    patience: Count
    batch: Count
    learning_rate: Positive


class Toys(Section):
    """What a profile affords: its sets, which shares of a coin's tosses
    train and select (the rest test), the budget, and the draws of the intervals."""

    datasets: tuple[Name, ...]
    train: Annotated[float, Field(gt=0, lt=1)]
    val: Annotated[float, Field(gt=0, lt=1)]
    training: Budget
    resamples: Annotated[int, Field(ge=100, le=100_000)]


def toys_of(parameters: Params, profile: str) -> Toys:
    """What a profile affords. ParamsError lists every problem."""
    return parameters.family(profile, FAMILY, Toys)


def coins_of(parameters: Params, dataset: str) -> Coins:
    """The coins of a set. ParamsError lists every problem."""
    made = parameters.datasets[dataset].made
    return checked(Coins, made.model_dump() if made else {}, f"datasets.{dataset}.made")
