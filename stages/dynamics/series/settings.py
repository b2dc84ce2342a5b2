"""What the parameters may say of series: how a table is read, where its parts end, how forecasts
run, what a profile affords."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.dynamics.settings import Budget, ReservoirRule, Search, Selection
from stages.params import Name, Params, Section, checked
from stages.params.base import Count, Positive, Seed

SERIES = "series"  # as a family of the parameters, with data sets of its own
DAY_S = 86_400.0
Kind = Literal[
    "text", "empty", "not finite", "sentinel", "gap", "repeated", "unordered", "constant"
]


class Made(Section):
    """A series made here: columns that are tides of 24 and 12.42 hours with a damped random walk,
    hourly."""

    seed: Seed
    rows: Annotated[int, Field(ge=100, le=10**6)]
    columns: Annotated[int, Field(ge=1, le=64)]


class Reading(Section):
    """A table as it comes: `file`, of an archive its `member`; `encoding`; `stamps`: the format of
    its first column, None where it has neither header nor stamps and each row is one step on;
    step_s: seconds between rows; sentinels: numbers that stand for nothing.

    mends: kinds of damage that are mended as read.py says; of any other kind one is refused.
    """

    file: Annotated[str, Field(max_length=200)]
    member: Annotated[str, Field(max_length=200)] | None = None
    encoding: Literal["utf-8", "latin-1"] = "utf-8"
    stamps: Annotated[str, Field(max_length=50)] | None
    step_s: Positive
    sentinels: tuple[float, ...] = ()
    mends: tuple[Kind, ...] = ()


class Borders(Section):
    """Where the parts end. `document`: shares of the rows that train, select and test, each part
    for itself (R, section 6.1). `months`: rows of each, as the code of Informer has them for ETT:
    a window may reach back over its part's border, and rows beyond the last part go unused."""

    convention: Literal["document", "months"]
    parts: tuple[Count, Count, Count]


class Ahead(Section):
    """Free runs: `starts` evenly over the test part, `context` rows given before each (of which a
    network takes no more than the windows had that trained it), `horizon` rows ahead; valid as long
    as the NRMSE is below `threshold`; the spectrum is of the last `spectrum` rows, intervals are
    over `blocks` of consecutive starts. selection: the free runs that choose."""

    starts: Count
    context: Count
    horizon: Count
    threshold: Positive
    spectrum: Count
    blocks: Annotated[int, Field(ge=2, le=1000)]
    selection: Selection


class Linear(Section):
    """Ridge regression on the last `delays` rows, every column on all."""

    delays: Count
    penalty: Positive


class Rules(Section):
    """What learns nothing by gradient."""

    linear: Linear
    reservoir: ReservoirRule


class Series(Section):
    """What a profile affords of series; each mapping is by data set."""

    datasets: tuple[Name, ...]
    reading: dict[Name, Reading] = {}
    borders: dict[Name, Borders] = {}
    forecasts: dict[Name, Ahead] = {}
    training: dict[Name, Budget] = {}
    rivals: dict[Name, Rules] = {}
    searches: dict[Name, dict[Name, Search]] = {}

    @model_validator(mode="after")
    def meets(self) -> Self:
        problems = [
            f"{what}: {name} is missing"
            for what in ("reading", "borders", "forecasts", "training", "rivals")
            for name in self.datasets
            if name not in getattr(self, what)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def series_of(parameters: Params, profile: str) -> Series:
    """What a profile affords. ParamsError lists every problem."""
    return parameters.family(profile, SERIES, Series)


def made_of(parameters: Params, dataset: str) -> Made | None:
    """How a set is made, None for one that is fetched."""
    made = parameters.datasets[dataset].made
    return checked(Made, made.model_dump(), f"datasets.{dataset}.made") if made else None
