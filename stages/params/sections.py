"""The parts of params.yaml: each one's keys, types and ranges. What parts say of each other is
checked in `Params` (__init__.py)."""

import math
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from stages.params.base import Count, Counts, Interval, Name, Positive, Section, Seed
from stages.params.orders import OrderBudget, OrderEvaluation, Readings
from stages.params.problems import SetBudget, Sets


class Split(Section):
    """Intervals of target time [start, end) in seconds from the data's first multiple of slice_s
    since 1970."""

    train: tuple[Interval, ...]
    val: tuple[Interval, ...]
    test: tuple[Interval, ...]

    @field_validator("train", "val", "test")
    @classmethod
    def ordered(cls, intervals: tuple[Interval, ...]) -> tuple[Interval, ...]:
        for start, end in intervals:
            if not start < end:
                raise ValueError(f"interval [{start}, {end}] is empty")
        return intervals


class Rolling(Section):
    """A split that moves with data that grow: the last `test_s` seconds test, `val_s` before
    them select, all before those train."""

    test_s: Positive
    val_s: Positive


class Every(Section):
    """Of the slices that select and that test, every n-th is a target: neighbouring minutes share
    aircraft and weather, so those between them tell little and cost as much."""

    val: Count = 1
    test: Count = 1


class Prepare(Section):
    """Slices and splits of one data set: intervals that stand (`split`), or one that moves with
    the data (`rolling`); which of their slices are targets (`every`, None: all)."""

    slice_s: Positive
    lead_s: Positive
    embargo_s: Annotated[float, Field(ge=0, le=1e7)]
    every: Every | None = None
    split: Split | None = None
    rolling: Rolling | None = None

    @model_validator(mode="after")
    def one_of_them(self) -> Self:
        if (self.split is None) == (self.rolling is None):
            raise ValueError("either `split` or `rolling` is needed")
        return self


class Budget(Section):
    """How long a cell may train; patience counts validations without improvement; a step takes
    the mean over `slices` slices."""

    steps: Count
    validate_every: Count
    patience: Count
    precision: Literal["float32", "bfloat16"] = "float32"
    slices: Annotated[int, Field(ge=1, le=4096)] = 1


class Evaluation(Section):
    """Leads of the horizon curve (minutes) and bootstrap resamples."""

    leads_min: tuple[Positive, ...]
    bootstrap: Annotated[int, Field(ge=100, le=100000)]


class PointSets(Section):
    """Where neighbours are searched: prepared data sets by name, and synthetic sets (thesis
    section 1.4.2)."""

    original: tuple[Name, ...]
    synthetic: tuple[Literal["smoothed_random_walk", "random_points", "simultaneous_points"], ...]


class Search(Section):
    """The search for neighbours: points of a set at most, queries, k; points a segment (K),
    segments a fetch (F), points a leaf.

    `window` is in the standardised time of the synthetic sets; a prepared set has its own lead.
    """

    points: Count
    queries: Count
    neighbours: Counts
    window: Annotated[float, Field(ge=0, le=1e9)]
    segments: Counts
    fetch: Counts
    leaves: Counts
    seed: Seed
    sets: PointSets


class Family(Section):
    """What a profile affords of a family that brings its own schema (`Params.family`): here its
    data sets are known, and what else there is belongs to the family."""

    model_config = ConfigDict(extra="allow")
    datasets: tuple[Name, ...] = ()


class Profile(Section):
    """What we can afford; what is trained of it stands with the experiments (cells.py)."""

    profile: Name
    datasets: tuple[Name, ...]
    acquired: tuple[Name, ...]
    wind: tuple[Name, ...]
    example: tuple[Name, ...] = ()  # of `wind`, what git keeps a nowcast of, to be tried
    prepare: dict[Name, Prepare]
    training: Budget
    evaluation: Evaluation
    search: Search | None = None
    problems: tuple[Name, ...] = ()  # the data sets that are sets of points, not winds
    sets: dict[Name, Sets] = {}
    learning: dict[Name, SetBudget] = {}
    sequences: tuple[Name, ...] = ()  # the data sets that are sequences of tokens
    readings: dict[Name, Readings] = {}
    learning_orders: dict[Name, OrderBudget] = {}
    orders: OrderEvaluation | None = None
    families: dict[Name, Family] = {}


class Decode(Section):
    """Limits of raw Mode-S to wind; units in the names."""

    declination: bool
    roll_max_deg: Positive
    state_age_max_s: Positive
    position_pair_max_s: Positive
    tas_difference_max_kt: Positive
    track_difference_max_deg: Positive
    groundspeed_difference_max_kt: Positive
    altitude_difference_max_ft: Positive
    wind_max_m_s: Positive


class Model(Section):
    """A model's arms (what is compared) and sizes (how large); each is a set of keyword
    arguments of its class."""

    arms: dict[Name, dict[str, int | float | str | tuple[int, ...]]]
    sizes: dict[Name, dict[str, int | str]] = {}


class Cell(Section):
    """A cell of space and time: its sides."""

    horizontal_km: Positive
    vertical_km: Positive
    time_min: Positive


class Contexts(Section):
    """Neighbours of a target: the search (stages/neighbours/methods.py), how many are kept
    beforehand, the metric they are chosen by; `thin`: of each such cell one row is a neighbour."""

    method: Name
    places: Annotated[int, Field(ge=1, le=4096)]
    horizontal_km: Positive
    vertical_km: Positive
    time_min: Positive
    thin: Cell | None = None


class Range(Section):
    """What a sweep may choose for one argument of a model: one `of` some numbers or words, or a
    number from `low` to `high`.

    Whole numbers or not, on a logarithmic axis or not; `steps`: how many values of the range a grid
    takes.
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False
    steps: Annotated[int, Field(ge=2, le=1000)] | None = None
    of: (
        Annotated[
            tuple[int | float | Annotated[str, Field(max_length=100)], ...],
            Field(min_length=1, max_length=1000),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def open(self) -> Self:
        ends = [end for end in (self.low, self.high) if end is not None]
        if len(ends) != (0 if self.of else 2):
            raise ValueError("either `of`, or both `low` and `high`, are needed")
        if self.of:
            twice = sorted({str(value) for value in self.of if self.of.count(value) > 1})
            if twice or self.log or self.whole or self.steps:
                raise ValueError(
                    f"`of` has {', '.join(twice)} twice"
                    if twice
                    else "`of` goes without log, whole and steps"
                )
            return self
        if not self.low < self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"low {self.low:g} has no logarithm")
        if self.whole and not (self.low.is_integer() and self.high.is_integer()):
            raise ValueError(f"whole numbers do not end at {self.low:g} and {self.high:g}")
        return self

    def written(self, value: float) -> int | float:
        """A number as it is tried and written: whole, or of three digits, and in the range."""
        return round(value) if self.whole else min(max(float(f"{value:.3g}"), self.low), self.high)

    def grid(self) -> tuple[int | float | str, ...]:
        """The values of a grid's axis: all of `of`, or `steps` from low to high, evenly (in the
        logarithm where the axis is)."""
        if self.of:
            return self.of
        parts = [step / (self.steps - 1) for step in range(self.steps)]
        along = (
            self.low * (self.high / self.low) ** part
            if self.log
            else self.low + (self.high - self.low) * part
            for part in parts
        )
        return tuple(dict.fromkeys(map(self.written, along)))


class Sweep(Section):
    """A search for a model's arguments on every `val_every`-th validation slice, in `trials`
    draws (a grid: as many as it has points)."""

    trials: Annotated[int, Field(ge=1, le=100_000)]
    val_every: Count
    sampler: Literal["tpe", "random", "grid"] = "tpe"
    pruner: Literal["none", "median"] = "none"
    space: Annotated[dict[Name, Range], Field(min_length=1)]

    @model_validator(mode="after")
    def fits(self) -> Self:
        taken = sorted({"draw", "rmse_component_kn", "state"} & set(self.space))
        if taken:
            raise ValueError(
                f"space: {', '.join(taken)} is a column of trials.csv, not an argument"
            )
        for name, axis in self.space.items():
            if self.sampler == "grid" and not (axis.of or axis.steps):
                raise ValueError(f"space.{name}: a grid needs `steps` (or `of`)")
            if self.sampler != "grid" and axis.steps:
                raise ValueError(f"space.{name}: `steps` belong to a grid, not to {self.sampler}")
        if self.sampler == "grid" and self.trials < self.draws:
            raise ValueError(
                f"trials: {self.trials} are fewer than the {self.draws} points of the grid"
            )
        return self

    @property
    def draws(self) -> int:
        """How many trials there will be: `trials`, or the points of the grid."""
        return (
            math.prod(len(axis.grid()) for axis in self.space.values())
            if self.sampler == "grid"
            else self.trials
        )


class Training(Section):
    """The thesis' protocol."""

    seed: Seed
    learning_rate: Positive
    clip: Positive
    threads: Count


class Drift(Section):
    """Where a capture's distribution counts as far from the champion's training data: `warn` is
    told, above `refuse` nothing is promoted."""

    warn: Positive
    refuse: Positive

    @model_validator(mode="after")
    def ordered(self) -> Self:
        if not self.warn < self.refuse:
            raise ValueError(f"warn {self.warn:g} is not below refuse {self.refuse:g}")
        return self


Address = Annotated[
    str, Field(pattern=r"^[a-z0-9_]+/[a-z0-9_]+(-[a-z0-9_]+-[a-z0-9_]+-s\d+)?$")
]  # EXPERIMENT/CELL


class Retraining(Section):
    """Scheduled retraining (flows/retrain.py): when, on what, which cells of any experiments may
    challenge the champion, and what the best of them must do to be promoted."""

    cron: Annotated[str, Field(pattern=r"^\S+( \S+){4}$")]
    drop: Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]+$")]
    profile: Name
    dataset: Name
    challengers: Annotated[tuple[Address, ...], Field(min_length=1)]
    first_against: Address
    margin_kn: Annotated[float, Field(ge=0, le=100)]
    slices_least: Count
    drift: dict[Name, Drift]
    commit: bool
