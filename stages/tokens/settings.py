"""What the family's parameters may say: how a set is made and split, and what a profile affords of
it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.params import Name, Params, Section, checked
from stages.params.base import Count, Positive, Seed
from stages.params.sections import Range, Sweep
from stages.tokens.tasks.pictures import COLOURS, Form

FAMILY = "tokens"
TASKS = {"pairs": "label", "text": "label", "shapes": "value", "pictures": "next"}  # -> a model's


class Made(Section):
    """A set of our own making: `rows` of it; of pairs how many `nouns` and `fillers` (words a
    sentence that change nothing); of pictures their rows and columns, most points, most
    statements."""

    seed: Seed
    task: Literal["pairs", "shapes", "pictures"]
    rows: Annotated[int, Field(ge=10, le=10**7)]
    nouns: Annotated[int, Field(ge=3, le=16)] | None = None
    fillers: Annotated[int, Field(ge=0, le=8)] | None = None
    high: Annotated[int, Field(ge=2, le=64)] | None = None
    wide: Annotated[int, Field(ge=2, le=64)] | None = None
    points: Annotated[int, Field(ge=1, le=len(COLOURS))] | None = None
    statements: Annotated[int, Field(ge=1, le=32)] | None = None

    @model_validator(mode="after")
    def whole(self) -> Self:
        every = ("nouns", "fillers", "high", "wide", "points", "statements")
        needed = {"pairs": every[:2], "shapes": (), "pictures": every[2:]}[self.task]
        given = {name for name in every if getattr(self, name) is not None}
        if given != {*needed}:
            told = ", ".join(sorted(given)) or "none"
            raise ValueError(f"{self.task} needs {' and '.join(needed) or 'none'}; given: {told}")
        return self

    def form(self) -> Form:
        """The form of pictures."""
        assert self.high and self.wide and self.points and self.statements
        return Form(self.high, self.wide, self.points, self.statements)


class Text(Section):
    """How pinned tables of sentences are read: their format, the files one after another; whether
    the first alone trains (`apart`), whatever rows of it cannot be used; whether rows that share a
    sentence of a column stand in one split alone, which is drawn (`linked`); how many pieces
    WordPiece may learn, or the file of its vocabulary, a piece a line; at how many pieces a row is
    cut."""

    form: Literal["mnli", "snli", "qqp", "qnli", "sst2", "sst2_text"]
    files: Annotated[tuple[str, ...], Field(min_length=1)]
    apart: bool = False
    linked: bool = False
    pieces: Annotated[int, Field(ge=100, le=100_000)] | None = None
    vocabulary: str | None = None
    longest: Annotated[int, Field(ge=4, le=4096)]

    @model_validator(mode="after")
    def one_way(self) -> Self:
        if (self.pieces is None) == (self.vocabulary is None):
            raise ValueError("pieces are learnt (`pieces`) or read (`vocabulary`): give one")
        if self.apart and self.linked:
            raise ValueError("a table trains `apart`, or rows are `linked`: give one")
        return self


class Split(Section):
    """How many of the first rows train (of them each `every`-th alone), how many after them select;
    the rest test. Of pinned tables, how they are read."""

    train: Count
    val: Count
    every: Count = 1
    text: Text | None = None


class Budget(Section):
    """How long a cell may train."""

    steps: Count
    validate_every: Count
    patience: Count
    batch: Count
    learning_rate: Positive
    schedule: Literal["constant", "cosine"]


class Tuned(Section):
    """What is searched at random: the sets, and the models that share their draws."""

    datasets: tuple[Name, ...] = ()
    models: tuple[Name, ...] = ()


class Tuning(Section):
    """A random search on one set (thesis figure 2.3): so many trials of so many steps, each with a
    learning rate drawn evenly in its logarithm; the arm of each model, all of one size."""

    trials: Annotated[int, Field(ge=2, le=1000)]
    steps: Count
    validate_every: Count
    batch: Count
    learning_rate: Range
    size: Name
    arms: dict[Name, Name]

    def sweep(self) -> Sweep:
        """The search as the engine knows it."""
        return Sweep(
            trials=self.trials,
            val_every=1,
            sampler="random",
            space={"learning_rate": self.learning_rate},
        )


class Tokens(Section):
    """What a profile affords of the family; splits, training and tuning by data set. drawn:
    pictures drawn to be judged; maps: sequences whose pseudo-attention is taken."""

    datasets: tuple[Name, ...]
    tuned: Tuned = Tuned()
    tuning: dict[Name, Tuning] = {}
    splits: dict[Name, Split] = {}
    training: dict[Name, Budget] = {}
    drawn: Count = 200
    maps: Count = 20
    resamples: Annotated[int, Field(ge=100, le=100_000)] = 1000

    @model_validator(mode="after")
    def meets(self) -> Self:
        problems = [
            f"{what}: {name} is missing"
            for what in ("splits", "training")
            for name in self.datasets
            if name not in getattr(self, what)
        ]
        problems += [
            f"tuning: {model} of {name} is missing"
            for name in self.tuned.datasets
            for model in self.tuned.models
            if name not in self.tuning or model not in self.tuning[name].arms
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def tokens_of(parameters: Params, profile: str) -> Tokens:
    """What a profile affords. ParamsError lists every problem."""
    return parameters.family(profile, FAMILY, Tokens)


def made_of(parameters: Params, dataset: str) -> Made | None:
    """How a set is made, None for pinned tables. ParamsError lists every problem."""
    told = parameters.datasets[dataset]
    if told.kind in ("files", "archive"):
        return None
    made = told.made
    return checked(Made, made.model_dump() if made else {}, f"datasets.{dataset}.made")
