"""What the joint nowcast's parameters may say: how its tasks are drawn, what a profile affords."""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from stages.params import Name, Params, Section, checked
from stages.params.base import Count, Positive, Seed
from stages.winds.joint.law import Law, Part
from stages.winds.joint.operator import Axis
from stages.winds.joint.tasks import Sky

FAMILY = "joint"
Points = Annotated[int, Field(ge=1, le=10_000)]
Cells = Annotated[int, Field(ge=2, le=64)]
Speed = Annotated[float, Field(ge=-100, le=100)]


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


class Made(Section):
    """How tasks are drawn; `noise_m_s` is an aircraft's."""

    seed: Seed
    mean_m_s: tuple[Speed, Speed]
    parts: tuple[Process, ...] = Field(min_length=1, max_length=4)
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
        half = [extent / 2 for extent in self.extent_km]
        axes = (
            Axis.of(-half[0], half[0], grid.cells[0], grid.smooth_km),
            Axis.of(-half[1], half[1], grid.cells[1], grid.smooth_km),
            Axis.of(*self.altitude_km, grid.cells[2]),
        )
        return Law(parts, axes, self.noise_m_s / sd, grid.bias_m_s / sd, grid.noise_m_s / sd)

    @property
    def sky(self) -> Sky:
        """What draws tasks."""
        return Sky(self.law, self.extent_km, self.altitude_km, self.aircraft, self.every_min,
                   self.memory_min, self.weather.age_h, self.lead_min)  # fmt: skip


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


def made_of(parameters: Params, dataset: str) -> Made:
    """How a data set's tasks are drawn. ParamsError lists every problem."""
    made = parameters.datasets[dataset].made
    return checked(Made, made.model_dump() if made else {}, f"datasets.{dataset}.made")
