"""What the toys' parameters may say: a set of coins, and what a profile affords."""

from typing import Annotated

from pydantic import Field

from stages.params import Name, Section
from stages.params.base import Count, Positive, Seed
from stages.params.sections import Family

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


class Toys(Family):
    """What a profile affords: the cells of its sets, which shares of a coin's tosses train and
    select (the rest test), the budget, and the draws of the intervals."""

    models: tuple[Name, ...]
    train: Annotated[float, Field(gt=0, lt=1)]
    val: Annotated[float, Field(gt=0, lt=1)]
    training: Budget
    resamples: Annotated[int, Field(ge=100, le=100_000)]
