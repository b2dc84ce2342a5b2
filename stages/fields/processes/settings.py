"""What the parameters of the experiment may say: how tasks are drawn, what a profile affords, what
is asked of a trained model."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.fields.problems.functions.gaussian_process import NAMES, GaussianProcess
from stages.fields.problems.functions.plans import Layout
from stages.fields.problems.functions.sawtooth import DIRECTIONS, Sawtooth
from stages.params import Name, Params, Section, checked
from stages.params.base import Count, Positive, Seed

FAMILY = "processes"
Real = Annotated[float, Field(ge=-1e3, le=1e3)]


class Functions(Section):
    """How tasks are drawn: `process` with its `law`, a kernel of a Gaussian process or the
    directions of a sawtooth; `low` to `high`, of the length's logarithm to base 10, or of the
    frequency; contexts in [-reach, reach], targets in [-range, range], on every axis. `val` and
    `test` tasks are kept."""

    seed: Seed
    process: Literal["gaussian", "sawtooth"]
    law: str
    low: Real
    high: Real
    noise: Positive
    axes: Annotated[int, Field(ge=1, le=3)]
    context: Annotated[int, Field(ge=1, le=4096)]
    targets: Annotated[int, Field(ge=1, le=4096)]
    reach: Positive
    range: Positive
    val: Count
    test: Count

    @model_validator(mode="after")
    def whole(self) -> Self:
        known = NAMES if self.process == "gaussian" else DIRECTIONS
        if self.law not in known:
            raise ValueError(f"law of a {self.process} is {self.law!r}, not {', '.join(known)}")
        if self.low > self.high:
            raise ValueError(f"low {self.low:g} is above high {self.high:g}")
        if self.process == "sawtooth" and self.low <= 0:
            raise ValueError(f"low {self.low:g}: a frequency is above 0")
        return self

    def made(self, targets: int | None = None) -> GaussianProcess | Sawtooth:
        """What draws the tasks, with `targets` of them where that is told."""
        layout = Layout(self.axes, self.context, targets or self.targets, self.reach, self.range)
        kind = GaussianProcess if self.process == "gaussian" else Sawtooth
        if kind is GaussianProcess:
            return GaussianProcess(self.law, self.low, self.high, self.noise, layout)
        return Sawtooth(self.low, self.high, self.noise, self.law, layout)


class Budget(Section):
    """How long a model may train: a step sees `tasks` new tasks of `targets` targets each."""

    steps: Count
    validate_every: Count
    patience: Count
    learning_rate: Positive
    schedule: Literal["constant", "cosine"]
    tasks: Annotated[int, Field(ge=1, le=4096)]
    targets: Annotated[int, Field(ge=1, le=4096)]


class Asked(Section):
    """What a trained model is asked beside its own tasks: the same ones `shift`ed along every axis,
    and those of a plane turned by `turn_deg`; how much memory an answer takes, for contexts and
    targets of these numbers of points; bootstrap `resamples` of every mean."""

    shift: Positive
    turn_deg: Annotated[float, Field(gt=0, lt=360)]
    contexts: Annotated[tuple[Count, ...], Field(min_length=2)]
    targets: Annotated[tuple[Count, ...], Field(min_length=1)]
    resamples: Annotated[int, Field(ge=100, le=100_000)]


class Processes(Section):
    """What a profile affords: `training` by model."""

    datasets: tuple[Name, ...]
    training: dict[Name, Budget] = {}
    asked: Asked | None = None

    @model_validator(mode="after")
    def meets(self) -> Self:
        if self.datasets and self.asked is None:
            raise ValueError("asked is missing")
        return self


def processes_of(parameters: Params, profile: str) -> Processes:
    """What a profile affords. ParamsError lists every problem."""
    return parameters.family(profile, FAMILY, Processes)


def functions_of(parameters: Params, dataset: str) -> Functions:
    """How a data set's tasks are drawn. ParamsError lists every problem."""
    made = parameters.datasets[dataset].made
    return checked(Functions, made.model_dump() if made else {}, f"datasets.{dataset}.made")
