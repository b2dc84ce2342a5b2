"""What the joint nowcast's parameters may say: how its tasks are drawn, what a profile affords."""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from stages.params import Name, Params, Section, checked
from stages.params.base import Count, Positive, Seed
from stages.winds.joint.law import Law, Part
from stages.winds.joint.operator import Axis
from stages.winds.joint.reanalysis import altitude_km, apart, margin
from stages.winds.joint.tasks import Sky
from stages.winds.joint.traffic import Traffic

FAMILY = "joint"
Points = Annotated[int, Field(ge=1, le=10_000)]
Cells = Annotated[int, Field(ge=2, le=64)]
Speed = Annotated[float, Field(ge=-100, le=100)]
Degrees = Annotated[float, Field(ge=-180, le=180)]
Latitude = Annotated[float, Field(ge=-80, le=80)]


class Process(Section):
    """One part of the wind: a Gaussian process as `gp_wind` has it."""

    sd_m_s: Positive
    horizontal_km: Positive
    vertical_km: Positive
    time_min: Positive


class Weather(Section):
    """The grid: `cells` east, north and up, whose middle wind is smoothed by a Gaussian of
    `smooth_km`; the bias that its cells share, the noise that each has, its age."""

    cells: tuple[Cells, Cells, Cells]
    smooth_km: Annotated[float, Field(ge=0, le=10_000)]
    bias_m_s: Annotated[float, Field(ge=0, le=100)]
    noise_m_s: Positive
    age_h: tuple[Positive, Positive]


class Skies(Section):
    """What holds for tasks of any sky; `noise_m_s` is an aircraft's."""

    seed: Seed
    noise_m_s: Positive
    extent_km: tuple[Positive, Positive]
    altitude_km: tuple[Positive, Positive]
    aircraft: Points
    every_min: Positive
    memory_min: Positive
    weather: Weather
    lead_min: tuple[Positive, Positive]
    targets: Points
    val: Count
    test: Count

    @model_validator(mode="after")
    def ascends(self) -> Self:
        pairs = {"altitude_km": self.altitude_km, "lead_min": self.lead_min,
                 "weather.age_h": self.weather.age_h}  # fmt: skip
        down = [f"{key} goes from {low:g} to {high:g}" for key, (low, high) in pairs.items()
                if low >= high]  # fmt: skip
        if down:
            raise ValueError("; ".join(down))
        if self.every_min > self.memory_min:
            raise ValueError(f"every_min {self.every_min:g} is longer than memory_min")
        return self

    @property
    def axes(self) -> tuple[Axis, Axis, Axis]:
        """The grid's: east, north and up."""
        half, grid = [extent / 2 for extent in self.extent_km], self.weather
        return (
            Axis.of(-half[0], half[0], grid.cells[0], grid.smooth_km),
            Axis.of(-half[1], half[1], grid.cells[1], grid.smooth_km),
            Axis.of(*self.altitude_km, grid.cells[2]),
        )

    @property
    def traffic(self) -> Traffic:
        """Who measures, and what is asked."""
        return Traffic(self.extent_km, self.altitude_km, self.aircraft, self.every_min,
                       self.memory_min, self.weather.age_h, self.lead_min)  # fmt: skip


class Made(Skies):
    """Skies that are drawn of a known law."""

    mean_m_s: tuple[Speed, Speed]
    parts: tuple[Process, ...] = Field(min_length=1, max_length=4)

    @property
    def sd_m_s(self) -> float:
        """The wind's standard deviation, of which values are multiples."""
        return float(np.sqrt(sum(part.sd_m_s**2 for part in self.parts)))

    @property
    def law(self) -> Law:
        """Of the wind, its measurements and the grid."""
        sd, grid = self.sd_m_s, self.weather
        parts = tuple(
            Part(one.sd_m_s / sd, one.horizontal_km, one.vertical_km, one.time_min)
            for one in self.parts
        )
        return Law(parts, self.axes, self.noise_m_s / sd, grid.bias_m_s / sd, grid.noise_m_s / sd)

    @property
    def sky(self) -> Sky:
        """What draws tasks."""
        return Sky(self.law, self.traffic)


class Strips(Section):
    """Longitudes of what trains, selects and tests, degrees east, from west to east."""

    train: tuple[tuple[Degrees, Degrees], ...] = Field(min_length=1, max_length=8)
    val: tuple[tuple[Degrees, Degrees], ...] = Field(min_length=1, max_length=8)
    test: tuple[tuple[Degrees, Degrees], ...] = Field(min_length=1, max_length=8)


class Real(Skies):
    """Skies that are cut out of a reanalysis: its pressure levels, the members whose winds are
    measured and whose winds the grid has, the latitudes of the areas' middles. Test tasks whose
    middles lie in one block of a strip, twice `group_km` long or longer, go together."""

    process: Literal["reanalysis"]
    levels_hpa: tuple[Annotated[int, Field(ge=1, le=1100)], ...] = Field(min_length=2)
    members: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
    latitudes_deg: tuple[Latitude, Latitude]
    strips_deg: Strips
    group_km: Positive

    @model_validator(mode="after")
    def fits(self) -> Self:
        strips = self.strips_deg.model_dump()
        problems = [f"strips_deg: {one} are not a degree apart" for one in apart(strips)]
        low, high = self.latitudes_deg
        if low >= high:
            problems.append(f"latitudes_deg goes from {low:g} to {high:g}")
        wide = 2 * float(margin(np.array([low, high]), self.axes).max())
        problems += [
            f"strips_deg.{split}: {west:g} to {east:g} is narrower than a task, {wide:.1f} degrees"
            for split, own in strips.items() for west, east in own if east - west <= wide
        ]  # fmt: skip
        heights = [altitude_km(one) for one in self.levels_hpa]
        if not min(heights) <= self.altitude_km[0] < self.altitude_km[1] <= max(heights):
            problems.append(f"altitude_km leaves the levels, {min(heights):.1f} to "
                            f"{max(heights):.1f} km")  # fmt: skip
        if problems:
            raise ValueError("; ".join(problems))
        return self


Told = Made | Real


class Budget(Section):
    """How long a cell may train: a step sees `tasks` new tasks of `targets` targets each."""

    steps: Count
    validate_every: Count
    patience: Count
    learning_rate: Positive
    schedule: Literal["constant", "cosine"]
    tasks: Annotated[int, Field(ge=1, le=4096)]
    targets: Points


class Joint(Section):
    """What a profile affords: `training` by data set."""

    datasets: tuple[Name, ...]
    training: dict[Name, Budget] = {}
    resamples: Annotated[int, Field(ge=100, le=100_000)] = 1000

    @model_validator(mode="after")
    def meets(self) -> Self:
        lacks = [name for name in self.datasets if name not in self.training]
        if lacks:
            raise ValueError("; ".join(f"training: {name} is missing" for name in lacks))
        return self


def joint_of(parameters: Params, profile: str) -> Joint:
    """What a profile affords. ParamsError lists every problem."""
    return parameters.family(profile, FAMILY, Joint)


def made_of(parameters: Params, dataset: str) -> Told:
    """How a data set's tasks are drawn. ParamsError lists every problem."""
    made = parameters.datasets[dataset].made
    told, where = made.model_dump() if made else {}, f"datasets.{dataset}.made"
    if told.get("process") == "reanalysis":
        return checked(Real, told, where)
    return checked(Made, told, where)
