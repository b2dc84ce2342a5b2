"""The problems of the thesis' chapter 3 beside wind: how each is simulated, and how its sets are
drawn and learned.

A set is C context points with values and T targets; C and T are the same in every set of a data
set.
"""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.params.base import Count, Name, Positive, Section, Seed


# poisson begins
class Poisson(Section):
    """Rooms with heaters, 32 a file; see stages/fields/problems/poisson/make.py.

    `layouts_per_file`: 1 in the real files, whose rooms share their heaters' places; 32 gives each
    room its own.
    """

    seed: Seed
    files: Annotated[int, Field(ge=3, le=2000)]
    layouts_per_file: Literal[1, 2, 4, 8, 16, 32] = 1


# poisson ends


# darcy begins
class Darcy(Section):
    """Porous media of two phases; see stages/fields/problems/darcy/make.py.

    `lattice` points a side are kept of `lattice * refinement` cells. `coefficients`: a where the
    field is negative, and where it is not. Li et al. take a field of `smoothness` 2 and
    `inverse_length` 3, with 3 and 12.
    """

    seed: Seed
    train: Annotated[int, Field(ge=2, le=100_000)]
    test: Annotated[int, Field(ge=1, le=100_000)]
    lattice: Literal[4, 8, 16, 32, 64, 128, 256, 512, 1024]
    refinement: Literal[1, 2, 4, 8, 16, 32, 64]
    smoothness: Annotated[float, Field(gt=1, le=10)] = 2.0
    inverse_length: Annotated[float, Field(gt=0, le=100)] = 3.0
    coefficients: tuple[
        Annotated[float, Field(ge=1e-6, le=1e6)], Annotated[float, Field(ge=1e-6, le=1e6)]
    ] = (3.0, 12.0)

    @model_validator(mode="after")
    def solvable(self) -> Self:
        if self.lattice * self.refinement > 1024:
            raise ValueError(
                f"lattice and refinement make {self.lattice * self.refinement} cells a side, more "
                "than 1024"
            )
        if not 1e-3 <= self.coefficients[0] / self.coefficients[1] <= 1e3:
            raise ValueError("coefficients differ by a factor of more than 1000")
        if (self.train + self.test) * self.lattice**2 > 2**29:
            raise ValueError("train, test and lattice make more than 2^29 values")
        return self


# darcy ends


# navier_stokes begins
class NavierStokes(Section):
    """Vorticity on the torus (stages/fields/problems/navier_stokes/make.py); no dimensions, the
    box and the period are 1.

    `train`, `val`, `test` count trajectories, `per_file` of them a file. A trajectory has `outputs`
    fields, `interval` of time apart, after the first `skip` are dropped; `steps_per_output` steps
    of time lead from one to the next. `gain`: of the initial law (7^1.5 in print).
    """

    seed: Seed
    grid: Annotated[int, Field(ge=8, le=1024, multiple_of=2)]
    train: Annotated[int, Field(ge=1, le=10_000)]
    val: Annotated[int, Field(ge=1, le=10_000)]
    test: Annotated[int, Field(ge=1, le=10_000)]
    per_file: Annotated[int, Field(ge=1, le=10_000)]
    viscosity: Annotated[float, Field(ge=1e-6, le=1)]
    forcing: Annotated[float, Field(ge=0, le=100)] = 0.1
    gain: Annotated[float, Field(gt=0, le=1e6)] = 7**1.5
    interval: Annotated[float, Field(ge=1e-6, le=100)]
    steps_per_output: Annotated[int, Field(ge=1, le=100_000)]
    skip: Annotated[int, Field(ge=0, le=100_000)] = 0
    outputs: Annotated[int, Field(ge=2, le=10_000)]

    @model_validator(mode="after")
    def fits(self) -> Self:
        size = 8 * self.per_file * self.outputs * self.grid**2
        if size > 2**32:
            raise ValueError(
                f"per_file, outputs and grid make {size / 2**30:.1f} GiB of one file in memory, "
                "more than 4"
            )
        return self


# navier_stokes ends


# sines begins
class Sines(Section):
    """Points with values of a sine, or (`frequency` null) with random ones; see
    stages/fields/problems/sines.py."""

    seed: Seed
    frequency: Annotated[float, Field(ge=0.001, le=1000)] | None
    points: Annotated[int, Field(ge=1, le=4096)]
    train: Annotated[int, Field(ge=1, le=1_000_000)]
    val: Annotated[int, Field(ge=1, le=1_000_000)]
    test: Annotated[int, Field(ge=1, le=1_000_000)]

    @model_validator(mode="after")
    def fits(self) -> Self:
        total = self.points * (self.train + self.val + self.test)
        if total > 10**8:
            raise ValueError(
                f"points, train, val and test make {total} points, more than 100 million"
            )
        return self


# sines ends


# weather begins
WEATHER_BYTES_MAX = 2**28  # of one simulated file


class Weather(Section):
    """Red-noise weather as CDS would deliver it; see stages/fields/problems/weather/make.py."""

    seed: Seed
    start: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT00:00:00Z$")]
    days: Annotated[int, Field(ge=1, le=3660)]
    step_h: Literal[1, 2, 3, 4, 6, 8, 12, 24]
    grid_deg: Literal[1, 2, 3, 4, 5, 6, 9, 10]
    degree_max: Annotated[int, Field(ge=4, le=90)]
    slope: Annotated[float, Field(ge=0, le=8)]
    memory_days: Annotated[float, Field(gt=0, le=100)]
    wind_sd_m_s: Annotated[float, Field(gt=0, le=15)]
    jet_m_s: Annotated[float, Field(ge=0, le=30)]

    @property
    def bytes(self) -> int:
        """About the size of its file: seven variables in two bytes each."""
        return (
            self.days * 24 // self.step_h * (180 // self.grid_deg + 1) * (360 // self.grid_deg) * 14
        )

    @model_validator(mode="after")
    def can_be_drawn(self) -> Self:
        if self.bytes > WEATHER_BYTES_MAX:
            raise ValueError(
                f"days, step_h and grid_deg make {self.bytes} bytes, more than {WEATHER_BYTES_MAX}"
            )
        if 2 * self.degree_max * self.grid_deg > 360:
            raise ValueError(
                f"a grid of {self.grid_deg} degrees holds no waves of degree {self.degree_max} (at "
                f"most {180 // self.grid_deg})"
            )
        datetime.fromisoformat(self.start)
        return self


class Cds(Section):
    """What is asked of the Climate Data Store, a GRIB file a month; see
    stages/acquisition/cds.py."""

    dataset: Literal["reanalysis-era5-single-levels"] = "reanalysis-era5-single-levels"
    variables: Annotated[
        tuple[Literal["u10", "v10", "u100", "v100", "sp", "t2m", "tcc", "d2m", "skt"], ...],
        Field(min_length=1),
    ]
    months: Annotated[
        tuple[Annotated[str, Field(pattern=r"^(19[4-9]\d|20\d\d)-(0[1-9]|1[0-2])$")], ...],
        Field(min_length=1),
    ]
    step_h: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 1
    grid_deg: Annotated[float, Field(ge=0.25, le=10)] = 0.25
    area_deg: tuple[float, float, float, float] | None = None  # north, west, south, east

    @model_validator(mode="after")
    def can_be_asked(self) -> Self:
        for key in ("variables", "months"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"{key} repeat")
        if self.area_deg:
            north, west, south, east = self.area_deg
            if not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
                raise ValueError(
                    "area_deg is not north, west, south, east within -90 to 90 and -180 to 180"
                )
        return self


# weather ends


PROBLEMS = ("poisson", "darcy", "navier_stokes", "sines", "weather")


class SetBudget(Section):
    """How a cell learns a problem: `batch` sets a step, `targets` of each set's targets (all where
    None), drawn anew at every step.
    `rates`: models that learn at another rate than `learning_rate`.

    `symmetries`: a set is also seen turned and mirrored, as the square's eight symmetries allow
    (positions in the unit square).
    """

    steps: Count
    validate_every: Count
    patience: Count
    batch: Annotated[int, Field(ge=1, le=65536)]
    learning_rate: Positive
    rates: dict[Name, Positive] = {}
    schedule: Literal["constant", "cosine"] = "constant"
    targets: Count | None = None
    symmetries: bool = False


class Sets(Section):
    """The sets of one problem in a profile: who reads the raw bytes, how many points a set has, how
    many sets at most.

    `overlap`: all targets lie in one quarter of the area, and this share of the context with them,
    the rest outside (thesis C.11; darcy only).
    """

    reader: Literal["poisson", "darcy", "navier_stokes", "pdebench", "sines", "weather", "hour"]
    seed: Seed
    context: Annotated[int, Field(ge=1, le=100_000)]
    targets: Annotated[int, Field(ge=1, le=100_000)]
    sets: Count | None = None
    overlap: Annotated[int, Field(ge=0, le=100)] | None = None  # percent

    @model_validator(mode="after")
    def _quarters(self):
        if self.overlap is not None and self.reader != "darcy":
            raise ValueError(
                f"overlap is {self.overlap}, but only the reader darcy draws context and targets "
                "by quarters"
            )
        return self
