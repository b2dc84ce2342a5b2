"""The sequences of the thesis' chapter 4 (section 4.3.1, appendix D): how each kind is simulated,
and how many there are.

A section of params.yaml a kind; `kind` is its name and the name of its simulator
(stages/sequences/data/) and reader (there too). `train`, `val` and `test` count
sequences of the three splits.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from stages.params.base import FileName, Section, Seed

TOKENS_MAX = 2**28  # of one simulated file
Probability = Annotated[float, Field(gt=0, lt=1)]
Number = Annotated[int, Field(ge=1, le=1_000_000)]


class Made(Section):
    """What all simulated sequences share: the seed and how many of them each split has."""

    seed: Seed
    train: Number
    val: Number
    test: Number

    @property
    def total(self) -> int:
        """Sequences of all splits."""
        return self.train + self.val + self.test


def _fits(total: int, length: int) -> None:
    if total * length > TOKENS_MAX:
        raise ValueError(f"{total} sequences of {length} tokens make more than {TOKENS_MAX} tokens")


class Reading(Section):
    """How a data set is read: the seed of what is drawn, and how many training sequences are kept
    at most (null: all).

    Fewer training sequences with the same val and test sequences: the study of memorisation
    (4.3.5).
    """

    seed: Seed
    train: Number | None = None


# product begins
class Product(Made):
    """`length` independent tokens of two kinds; a token is 1 with probability `share` (4.3.1:
    100 and 0.1)."""

    kind: Literal["product"] = "product"
    length: Annotated[int, Field(ge=1, le=4096)] = 100
    share: Probability = 0.1

    @model_validator(mode="after")
    def fits(self) -> Self:
        _fits(self.total, self.length)
        return self


# product ends


# step begins
class Step(Made):
    """Zeros with one run of `width` ones, its begin uniform; see D.2.3 (100 and 10). `last`:
    whether it may end the sequence.

    The public code never draws the last begin (`last` false): 90 of 91 places in a sequence of 100.
    """

    kind: Literal["step"] = "step"
    length: Annotated[int, Field(ge=2, le=4096)] = 100
    width: Annotated[int, Field(ge=1, le=4095)] = 10
    last: bool = True

    @model_validator(mode="after")
    def fits(self) -> Self:
        _fits(self.total, self.length)
        if self.places < 1:
            raise ValueError(f"a run of {self.width} has no place in {self.length} tokens")
        return self

    @property
    def places(self) -> int:
        """Begins that a run can have."""
        return self.length - self.width + int(self.last)


# step ends


# permutation begins
class Permutation(Made):
    """A uniform permutation of 0..length - 1 (D.2.4: 100)."""

    kind: Literal["permutation"] = "permutation"
    length: Annotated[int, Field(ge=2, le=4096)] = 100

    @model_validator(mode="after")
    def fits(self) -> Self:
        _fits(self.total, self.length)
        return self


# permutation ends


# walk begins
class Walk(Made):
    """A lazy random walk of `length` tokens from one of `starts`, each as likely (D.1: 100, 120,
    130, 140).

    A step is 0 with probability `stay`, else one up or down, each as likely. Token = altitude - the
    lowest altitude within reach.
    """

    kind: Literal["walk"] = "walk"
    length: Annotated[int, Field(ge=2, le=1024)] = 100
    starts: Annotated[
        tuple[Annotated[int, Field(ge=0, le=10_000)], ...], Field(min_length=1, max_length=64)
    ] = (100, 120, 130, 140)
    stay: Annotated[float, Field(ge=0, lt=1)] = 0.2

    @model_validator(mode="after")
    def fits(self) -> Self:
        _fits(self.total, self.length)
        if len(set(self.starts)) < len(self.starts) or list(self.starts) != sorted(self.starts):
            raise ValueError("starts are not in rising order")
        if self.vocabulary > 4096:
            raise ValueError(f"starts and length make {self.vocabulary} altitudes, more than 4096")
        return self

    @property
    def lowest(self) -> int:
        """The altitude of token 0."""
        return self.starts[0] - (self.length - 1)

    @property
    def vocabulary(self) -> int:
        """Altitudes within reach."""
        return self.starts[-1] - self.starts[0] + 2 * (self.length - 1) + 1


# walk ends


# maze begins
class Maze(Made):
    """Mazes of `rows` x `columns` cells with about `walls` walls (4.3.1: 13 x 21, 15), then the
    same maze with its path.

    `far`: the fewest steps from start to goal. All mazes are different; `most_tries` bounds how
    many are drawn for one that will do.
    """

    kind: Literal["maze"] = "maze"
    rows: Annotated[int, Field(ge=5, le=63)] = 13
    columns: Annotated[int, Field(ge=5, le=63)] = 21
    walls: Annotated[int, Field(ge=0, le=500)] = 15
    far: Annotated[int, Field(ge=1, le=1000)] = 10
    most_tries: Annotated[int, Field(ge=1, le=100_000)] = 1000

    @model_validator(mode="after")
    def fits(self) -> Self:
        _fits(self.total, 2 * self.rows * self.columns)
        if not (self.rows % 2 and self.columns % 2):
            raise ValueError(
                f"rows and columns are {self.rows} and {self.columns}: walls stand on even lines, "
                "both must be odd"
            )
        if self.far > self.rows + self.columns - 6:
            most = self.rows + self.columns - 6
            raise ValueError(
                f"far is {self.far}: an empty maze of this size has no cells more than {most} "
                "steps apart"
            )
        return self


# maze ends


# grammar begins
class Grammar(Made):
    """Sentences of a small grammar, letter by letter, in sequences of `length` letters; see
    stages/sequences/data/grammar.py.

    `nested`: the chance that a noun has a clause; `plural`: of a plural noun; `deepest`: clauses
    within clauses.
    """

    kind: Literal["grammar"] = "grammar"
    length: Annotated[int, Field(ge=16, le=4096)] = 128
    nested: Probability = 0.3
    plural: Probability = 0.4
    deepest: Annotated[int, Field(ge=0, le=6)] = 2

    @model_validator(mode="after")
    def fits(self) -> Self:
        _fits(self.total, self.length)
        return self


# grammar ends


# climb begins
class ClimbReading(Section):
    """How flights become sequences: one token of the aircraft's type, `steps` cleared levels and
    `steps` altitudes, `step_s` apart (4.3.1).

    Altitudes and levels are binned by `bin_ft`; a flight gives a sequence every `stride` steps,
    where it changes by `least_change_ft`. A silence of more than `gap_s` ends a flight. `train`,
    `val`, `test`: weights of the splits, which are drawn by aircraft.
    """

    kind: Literal["climb"] = "climb"
    seed: Seed = 0
    train: Number = 8
    val: Number = 1
    test: Number = 1
    steps: Annotated[int, Field(ge=4, le=2000)] = 500
    step_s: Annotated[int, Field(ge=4, le=600, multiple_of=4)] = 4
    bin_ft: Annotated[int, Field(ge=25, le=2000, multiple_of=25)] = 100
    stride: Annotated[int, Field(ge=1, le=2000)] = 2000
    least_change_ft: Annotated[int, Field(ge=0, le=40_000)] = 1000
    gap_s: Annotated[int, Field(ge=4, le=900)] = 120


class Climb(Made, ClimbReading):
    """Simulated climbs and descents of so many `types`, `flights_each` of one aircraft; see
    stages/sequences/data/climb/make.py."""

    kind: Literal["climb"] = "climb"
    least_change_ft: Annotated[int, Field(ge=0, le=40_000)] = 0
    types: Annotated[int, Field(ge=1, le=8)] = 6
    flights_each: Annotated[int, Field(ge=1, le=1000)] = 4

    @model_validator(mode="after")
    def fits(self) -> Self:
        _fits(self.total, self.steps * self.step_s // 4)
        if self.total < 3 * self.flights_each:
            raise ValueError(
                f"{self.total} flights, {self.flights_each} an aircraft, leave a split without "
                "aircraft"
            )
        return self


# climb ends


# text begins
class Text(Section):
    """How a text becomes sequences of `length` tokens without overlap: characters, or pieces of
    `vocabulary` kinds (byte-pair encoding).

    Files whose names say train, valid and test are the splits; else every file is cut by weight:
    `train`, then `val`, then `test`.
    `cut`: files that are cut although their names say a split, where not all three are there.
    `most_mb`: million characters of text that are read at most, from the files in the order of
    their names; null: all.
    """

    kind: Literal["text"] = "text"
    seed: Seed = 0
    level: Literal["character", "bpe"] = "character"
    length: Annotated[int, Field(ge=2, le=4096)] = 256
    vocabulary: Annotated[int, Field(ge=257, le=65_536)] = 1024
    most_mb: Number | None = None
    train: Number = 8
    val: Number = 1
    test: Number = 1
    cut: tuple[FileName, ...] = ()

    @model_serializer(mode="wrap")
    def without_cut(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As a text without it always was."""
        told: dict[str, Any] = handler(self)
        return told if self.cut else {key: told[key] for key in told if key != "cut"}


# text ends


Plan = Annotated[
    Product | Step | Permutation | Walk | Maze | Grammar | Climb, Field(discriminator="kind")
]  # what a simulated set is made from
