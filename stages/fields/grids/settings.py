"""What the experiment's parameters may say: how tasks are drawn, what a profile affords."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.fields.problems.coupled.dual import Dual
from stages.fields.problems.coupled.globe import SCALE, Globe
from stages.fields.problems.functions.plans import Layout
from stages.fields.problems.stale.month import Lengths
from stages.fields.problems.stale.world import apart
from stages.params import Name, Params, Section, checked
from stages.params.base import Count, Positive, Seed

FAMILY = "grids"
Log = Annotated[float, Field(ge=-3, le=3)]
Points = Annotated[int, Field(ge=1, le=100_000)]
Hours = Annotated[int, Field(ge=1, le=100_000)]
Degrees = Annotated[float, Field(ge=-180, le=540)]
Strips = Annotated[tuple[tuple[Degrees, Degrees], ...], Field(min_length=1, max_length=8)]


class Coupled(Section):
    """How tasks are drawn. `dual`: two functions of one Gaussian process, correlated; `low` to
    `high` the length's logarithm to base 10; contexts in [-reach, reach], targets and grid in
    [-range, range], on every axis. `globe`: temperatures, `noise` in kelvin. `cells` along the
    (first) axis; `val` and `test` tasks are kept."""

    seed: Seed
    process: Literal["dual", "globe"]
    correlation: Annotated[float, Field(ge=-1, le=1)] | None = None
    low: Log | None = None
    high: Log | None = None
    reach: Positive | None = None
    range: Positive | None = None
    axes: Annotated[int, Field(ge=1, le=3)]
    noise: Positive
    cells: Annotated[int, Field(ge=2, le=1024)]
    context: Points
    targets: Points
    val: Count
    test: Count

    @model_validator(mode="after")
    def whole(self) -> Self:
        only = ("correlation", "low", "high", "reach", "range")
        given = [key for key in only if getattr(self, key) is not None]
        if self.process == "dual" and len(given) < len(only):
            lacks = ", ".join(key for key in only if key not in given)
            raise ValueError(f"dual needs {lacks}")
        if self.process == "globe" and (given or self.axes != 2):
            raise ValueError(f"globe has 2 axes and none of {', '.join(only)}")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} is above high {self.high:g}")
        return self

    def made(self, targets: int | None = None) -> Dual | Globe:
        """What draws the tasks, with `targets` of them where that is told."""
        asked = targets or self.targets
        if self.process == "globe":
            return Globe(self.seed, self.cells, self.context, asked, self.noise)
        assert self.correlation is not None and self.low is not None and self.high is not None
        assert self.reach is not None and self.range is not None
        layout = Layout(self.axes, self.context, asked, self.reach, self.range)
        return Dual(self.correlation, self.low, self.high, self.noise, self.cells, layout)

    @property
    def unit(self) -> tuple[float, str]:
        """What a value of 1 is, and its unit."""
        return (SCALE, "K") if self.process == "globe" else (1.0, "1")


class Stale(Section):
    """How tasks are drawn from real hourly fields: a grid of means over `block` x `block` nodes,
    `age_h` hours old from the youngest to the oldest, and 1 to `context` points. Runs of train_h,
    val_h and test_h hours follow each other with gaps of gap_h hours."""

    seed: Seed
    process: Literal["stale"]
    axes: Literal[2]
    block: Annotated[int, Field(ge=2, le=64)]
    age_h: tuple[Hours, Hours]
    train_h: Annotated[int, Field(ge=24, le=100_000)]
    val_h: Hours
    test_h: Hours
    gap_h: Hours
    context: Points
    targets: Points
    val: Count
    test: Count

    @model_validator(mode="after")
    def whole(self) -> Self:
        young, old = self.age_h
        if young > old:
            raise ValueError(f"age_h goes down from {young} to {old}")
        short = [key for key in ("train_h", "val_h", "test_h") if getattr(self, key) <= old]
        if short:
            raise ValueError(f"{', '.join(short)}: no longer than the oldest grid is old ({old})")
        return self

    @property
    def lengths(self) -> Lengths:
        """How hours are parted."""
        return Lengths(self.train_h, self.val_h, self.test_h, self.gap_h, self.age_h[1])


class OfSplits(Section):
    """Longitudes of what trains, selects and tests, degrees from west to east; a strip that crosses
    the date line ends beyond 180."""

    train: Strips
    val: Strips
    test: Strips


class Whole(Section):
    """How tasks are drawn from one field of the whole globe: a grid of means over `block` x `block`
    nodes, 1 to `context` points in a window of `window_deg` degrees along each axis, inside the
    strips of its split. Test tasks whose middles lie in one block of latitude of a strip, as high
    as a window, go together. The map of all nodes reads `points` points."""

    seed: Seed
    process: Literal["world"]
    axes: Literal[2]
    block: Annotated[int, Field(ge=2, le=64)]
    window_deg: Annotated[float, Field(gt=0, le=90)]
    strips_deg: OfSplits
    context: Points
    targets: Points
    val: Count
    test: Count
    points: Points

    @model_validator(mode="after")
    def whole(self) -> Self:
        strips = self.strips_deg.model_dump()
        problems = [f"strips_deg: {one} are not a degree apart" for one in apart(strips)]
        problems += [
            f"strips_deg.{split}: {west:g} to {east:g} is narrower than a window"
            for split, own in strips.items() for west, east in own if east - west < self.window_deg
        ]  # fmt: skip
        if problems:
            raise ValueError("; ".join(problems))
        return self


Told = Coupled | Stale | Whole


class Budget(Section):
    """How long a cell may train: a step sees `tasks` new tasks of `targets` targets each."""

    steps: Count
    validate_every: Count
    patience: Count
    learning_rate: Positive
    schedule: Literal["constant", "cosine"]
    tasks: Annotated[int, Field(ge=1, le=4096)]
    targets: Points


class Grids(Section):
    """What a profile affords: `training` by data set."""

    datasets: tuple[Name, ...]
    training: dict[Name, Budget] = {}
    resamples: Annotated[int, Field(ge=100, le=100_000)] = 1000

    @model_validator(mode="after")
    def meets(self) -> Self:
        problems = [
            f"training: {name} is missing" for name in self.datasets if name not in self.training
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def grids_of(parameters: Params, profile: str) -> Grids:
    """What a profile affords. ParamsError lists every problem."""
    return parameters.family(profile, FAMILY, Grids)


def coupled_of(parameters: Params, dataset: str) -> Told:
    """How a data set's tasks are drawn. ParamsError lists every problem."""
    made = parameters.datasets[dataset].made
    told, where = made.model_dump() if made else {}, f"datasets.{dataset}.made"
    if told.get("process") == "stale":
        return checked(Stale, told, where)
    if told.get("process") == "world":
        return checked(Whole, told, where)
    return checked(Coupled, told, where)
