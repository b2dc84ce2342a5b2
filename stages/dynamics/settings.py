"""What the family's parameters may say: how a system is simulated, split and forecast, what a
profile affords of it, and how its rivals are set."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_serializer, model_validator

from stages.dynamics.systems.kuramoto import Kuramoto
from stages.dynamics.systems.lorenz96 import Lorenz96
from stages.dynamics.systems.simulate import Run, System
from stages.params import Name, Params, Range, Section, Sweep, checked
from stages.params.base import Count, Positive, Seed

FAMILY = "dynamics"
Whole = Annotated[int, Field(ge=0, le=10**9)]
Share = Annotated[float, Field(ge=0, le=1)]


class Simulated(Section):
    """A system simulated: `forcing` of lorenz96, `length` and `points` of kuramoto; members side by
    side, solver steps of `dt`, `transient` of them dropped, an observation every `every`, `samples`
    of them, a whole state kept at every `keep`-th. The exponent is measured over `spans` of `turn`
    solver steps; `printed_exponent` is what the document takes, where it takes one."""

    seed: Seed
    system: Literal["lorenz96", "kuramoto"]
    forcing: Positive | None = None
    length: Positive | None = None
    points: Annotated[int, Field(ge=8, le=4096)] | None = None
    members: Annotated[int, Field(ge=2, le=4096)]
    dt: Positive
    every: Count
    keep: Count
    transient: Whole
    samples: Annotated[int, Field(ge=10, le=10**7)]
    spans: Count
    turn: Count
    printed_exponent: Positive | None = None

    @model_validator(mode="after")
    def whole(self) -> Self:
        needed = {"lorenz96": ("forcing",), "kuramoto": ("length", "points")}[self.system]
        given = {k for k in ("forcing", "length", "points") if getattr(self, k) is not None}
        if given != {*needed}:
            told = ", ".join(sorted(given)) or "none"
            raise ValueError(f"{self.system} needs {' and '.join(needed)}; given: {told}")
        if self.points is not None and self.points % 2:
            raise ValueError(f"points must be even, not {self.points}")
        return self

    def made(self) -> System:
        """The system."""
        if self.system == "lorenz96":
            assert self.forcing is not None
            return Lorenz96(self.forcing)
        assert self.length is not None and self.points is not None
        return Kuramoto(self.length, self.points)

    def run(self) -> Run:
        """How it is run."""
        return Run(self.members, self.dt, self.every, self.keep, self.transient, self.samples)

    @property
    def step(self) -> float:
        """Time between two observations, in the system's units."""
        return self.dt * self.every


class Split(Section):
    """Observations of every member, in time order: the first `train` train, `val` select, the rest
    test, `gap` between them belong to none."""

    train: Count
    val: Count
    gap: Whole


class Selection(Section):
    """Free runs within the part that selects, by whose mean valid time the best of several cells
    or trials is chosen: `starts` of each member, `context` observations given before each
    (as of Forecasts), `horizon` steps ahead."""

    starts: Count
    context: Count
    horizon: Count


class Forecasts(Section):
    """Free runs: `starts` of each member, spaced evenly over its test part, `context` observations
    given before each (of which a network takes no more than the windows had that trained it),
    `horizon` steps ahead; valid as long as the NRMSE is below `threshold`. The spectrum is of the
    last `spectrum` steps. The steps of the solver beside it are `finer` times shorter. selection:
    the free runs that choose."""

    starts: Count
    context: Count
    horizon: Count
    threshold: Positive
    spectrum: Count
    finer: Annotated[int, Field(ge=2, le=64)]
    selection: Selection


class Budget(Section):
    """How long a cell may train; a step sees `batch` windows of `window` observations (S), `warm`
    more before them warm up a state, the last `counted` (S') count; inputs have `noise`, in
    standard deviations. With `rounds` it trains as document R does (rounds.py): by AdaBelief, at
    most so many of one learning rate each, `decay` times the one before; weights shrink by the rate
    times `weight_decay` a step. Without, by Adam."""

    steps: Count
    validate_every: Count
    patience: Count
    batch: Count
    learning_rate: Positive
    schedule: Literal["constant", "cosine"]
    window: Count
    warm: Whole
    counted: Count
    noise: Annotated[float, Field(ge=0, le=10)]
    val_windows: Count
    rounds: Count | None = None
    decay: Annotated[float, Field(gt=0, le=1)] | None = None
    weight_decay: Share | None = None

    @model_validator(mode="after")
    def counts(self) -> Self:
        if self.counted > self.window:
            raise ValueError(f"counted {self.counted} is more than the window {self.window}")
        if self.rounds is None and (self.decay, self.weight_decay) != (None, None):
            raise ValueError("decay and weight_decay are of rounds, which are not given")
        if self.rounds is not None and (self.decay is None or self.schedule != "constant"):
            raise ValueError("rounds need a decay and the constant schedule")
        return self

    @model_serializer(mode="wrap")
    def without_unset(self, rest: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """What it says; of rounds nothing, where there are none."""
        return {k: value for k, value in rest(self).items() if value is not None}


class LocalRule(Section):
    """A regression on neighbouring sites (rivals/local.py)."""

    delays: Count
    gap: Count
    reach: Whole
    rows: Count
    penalty: Positive
    noise: Annotated[float, Field(ge=0, le=10)]


class ReservoirRule(Section):
    """Reservoirs (rivals/reservoir.py); group 0: one that sees all."""

    units: Annotated[int, Field(ge=2, le=100_000)]
    group: Whole
    overlap: Whole
    radius: Positive
    reach: Positive
    shift: Annotated[float, Field(ge=0, le=1000)]
    leak: Annotated[float, Field(gt=0, le=1)]
    penalty: Positive
    noise: Annotated[float, Field(ge=0, le=10)]
    washout: Whole
    thin: Count


class Rivals(Section):
    """What learns nothing by gradient, from the first `train` observations of every member."""

    train: Count
    linear: LocalRule
    quadratic: LocalRule
    reservoir: ReservoirRule
    reservoirs: ReservoirRule


class Search(Section):
    """How a model's arguments are searched: `space`, by argument of the model or of its training
    (of `OF_TRAINING`; `span` is both: S), drawn `trials` times at random, or all of it (grid). A
    trial trains for `steps` and reports every `validate_every` of them."""

    trials: Count
    sampler: Literal["random", "grid"] = "random"
    pruner: Literal["none", "median"] = "median"
    steps: Count
    validate_every: Count
    space: Annotated[dict[Name, Range], Field(min_length=1)]

    def sweep(self) -> Sweep:
        """As the sweeps' engine takes it."""
        return Sweep(
            trials=self.trials,
            val_every=1,
            sampler=self.sampler,
            pruner=self.pruner,
            space=self.space,
        )


OF_TRAINING = ("learning_rate", "batch", "counted", "noise")  # of a Budget, as a search draws them


def parted(drawn: Mapping[str, Any], budget: Budget) -> tuple[dict[str, Any], Budget]:
    """What a search drew, as the model's arguments and as the budget changed by the rest: S, the
    `span`, is the window that a step sees, and S' is at most that."""
    model = {name: value for name, value in drawn.items() if name not in OF_TRAINING}
    other = {name: value for name, value in drawn.items() if name in OF_TRAINING}
    window = int(drawn.get("span", budget.window))
    counted = min(int(other.get("counted", budget.counted)), window)
    changed = budget.model_dump() | other | {"window": window, "counted": counted}
    return model, Budget(**changed)


class Dynamics(Section):
    """What a profile affords of the family; each mapping is by data set."""

    datasets: tuple[Name, ...]
    searches: dict[Name, dict[Name, Search]] = {}
    splits: dict[Name, Split] = {}
    forecasts: dict[Name, Forecasts] = {}
    training: dict[Name, Budget] = {}
    rivals: dict[Name, Rivals] = {}

    @model_validator(mode="after")
    def meets(self) -> Self:
        problems = [
            f"{what}: {name} is missing"
            for what in ("splits", "forecasts", "training", "rivals")
            for name in self.datasets
            if name not in getattr(self, what)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def dynamics_of(parameters: Params, profile: str) -> Dynamics:
    """What a profile affords. ParamsError lists every problem."""
    return parameters.family(profile, FAMILY, Dynamics)


def simulated_of(parameters: Params, dataset: str) -> Simulated:
    """How a set is simulated. ParamsError lists every problem."""
    made = parameters.datasets[dataset].made
    return checked(Simulated, made.model_dump() if made else {}, f"datasets.{dataset}.made")
