"""Data sets: at which level each enters, and how it is made or where its pinned bytes come from."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_serializer, model_validator

from stages.params.base import Count, FileName, Name, Positive, Section, Seed
from stages.params.problems import PROBLEMS, Cds, Darcy, NavierStokes, Poisson, Sines, Weather
from stages.params.sequences import Plan


class Source(Section):
    """One pinned file: where it is, what it must hash to, under which licence it comes."""

    url: Annotated[str, Field(pattern=r"^https://[^\s@'\"`$;|&<>\\]+$")]
    licence: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    git_blob: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    bytes: Count | None = None
    bytes_max: Annotated[int, Field(gt=0, le=10**11)] | None = None

    @model_validator(mode="after")
    def pinned(self) -> Self:
        if not (self.sha256 or self.git_blob or self.md5):
            raise ValueError(
                "a source needs a sha256 (or, where only that is published, a git_blob or an md5)"
            )
        if not (self.bytes or self.bytes_max):
            raise ValueError("a source needs bytes or bytes_max")
        return self


class Listed(Section):
    """Many pinned files of one licence: `listing` is a file of the project with a line (sha256,
    bytes, name) for each; `base` + name is its URL."""

    listing: Annotated[str, Field(pattern=r"^data/sources/[a-z0-9_]+\.txt$")]
    base: Annotated[str, Field(pattern=r"^https://[^\s@'\"`$;|&<>\\]+/$")]
    licence: str


class Flown(Section):
    """An airspace, who flies in it and how often each reports."""

    seed: Seed
    start: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    hours: Annotated[float, Field(gt=0, le=1000)]
    aircraft: Count
    update_s: Positive
    south_west: tuple[
        Annotated[float, Field(ge=-80, le=80)], Annotated[float, Field(ge=-180, le=180)]
    ]
    extent_km: tuple[Positive, Positive]
    altitude_m: tuple[Positive, Positive]


class Simulate(Flown):
    """The simulated airspace; see stages/winds/sky/simulated.py."""

    dropout: Annotated[float, Field(ge=0, lt=1)]
    bit_error: Annotated[float, Field(ge=0, lt=1)]
    airspeed_noise_kt: Annotated[float, Field(ge=0)]
    heading_noise_deg: Annotated[float, Field(ge=0)]
    # the largest that an aircraft's own instruments may be off, either way, all the flight
    airspeed_bias_kt: Annotated[float, Field(ge=0, le=20)] = 0.0
    heading_bias_deg: Annotated[float, Field(ge=0, le=10)] = 0.0


REPORTS_MAX = (
    4096  # the covariance that an exact draw factors has this many rows and columns: 128 MiB
)


class Gaussian(Flown):
    """A wind that is a Gaussian process, and the flights that measure it; see
    stages/winds/sky/gaussian_wind.py."""

    update_s: Annotated[float, Field(ge=1, le=1e6)]
    mean_m_s: tuple[
        Annotated[float, Field(ge=-100, le=100)], Annotated[float, Field(ge=-100, le=100)]
    ]
    sd_m_s: Positive
    horizontal_km: Positive
    vertical_km: Positive
    time_min: Positive
    noise_m_s: Positive

    @property
    def reports(self) -> int:
        """How many rows the set has."""
        return self.aircraft * int(self.hours * 3600 / self.update_s)

    @model_validator(mode="after")
    def can_be_drawn(self) -> Self:
        if not 1 <= self.reports <= REPORTS_MAX:
            raise ValueError(
                f"aircraft, hours and update_s make {self.reports} reports, not from 1 to "
                f"{REPORTS_MAX} (an exact draw factors a matrix of reports x reports)"
            )
        return self


class Made(Section):
    """The plan of a set that a family makes: its seed, and what the family's own schema says."""

    model_config = ConfigDict(extra="allow")
    seed: Seed


ENTRIES = ("frames", "states", "winds", "sets", "sequences")


class Dataset(Section):
    """A data set: at which level it enters (one of ENTRIES, or a family's name) and where its bytes
    come from."""

    entry: Name
    kind: Literal[
        "simulate",
        "gaussian",
        "files",
        "listed",
        "archive",
        "captures",
        "cds",
        "sequences",
        "poisson",
        "darcy",
        "navier_stokes",
        "sines",
        "weather",
        "made",
    ]
    files: dict[FileName, Source] = {}
    listed: Listed | None = None
    cds: Cds | None = None
    simulate: Simulate | None = None
    gaussian: Gaussian | None = None
    poisson: Poisson | None = None
    darcy: Darcy | None = None
    navier_stokes: NavierStokes | None = None
    sines: Sines | None = None
    weather: Weather | None = None
    sequences: Plan | None = None
    made: Made | None = None

    @model_serializer(mode="wrap")
    def without_unset(self, dump: Any) -> dict[str, Any]:
        """As records tell it; `made` stands only where it is used, as in those of before it."""
        found: dict[str, Any] = dump(self)
        return {key: value for key, value in found.items() if key != "made" or value is not None}

    @property
    def plan(self) -> Any:
        """What a set of ours is made from; None for one that is fetched."""
        return (
            getattr(self, self.kind)
            if self.kind in ("simulate", "gaussian", "sequences", "made", *PROBLEMS)
            else None
        )

    @model_validator(mode="after")
    def has_a_source(self) -> Self:
        if (
            self.kind in ("simulate", "gaussian", "listed", "cds", "sequences", "made", *PROBLEMS)
            and getattr(self, self.kind) is None
        ):
            raise ValueError(f"kind {self.kind} needs the section `{self.kind}`")
        for made, kinds in (("sets", PROBLEMS), ("sequences", ("sequences",))):
            if self.kind in kinds and self.entry != made:
                raise ValueError(
                    f"kind {self.kind} makes {made}, which cannot enter as {self.entry}"
                )
        if self.kind in ("simulate", "gaussian"):
            try:
                datetime.fromisoformat(self.plan.start)
            except ValueError as error:
                raise ValueError(
                    f"{self.kind}.start: there is no such moment as {self.plan.start} ({error})"
                ) from None
        if self.kind == "gaussian" and self.entry != "winds":
            raise ValueError(f"kind gaussian makes winds, which cannot enter as {self.entry}")
        if self.kind == "captures" and (self.files or self.entry != "frames"):
            raise ValueError(
                "kind captures takes raw frames in as they arrive: entry frames, no `files`"
            )
        if not self.plan and not self.files and self.kind not in ("captures", "listed", "cds"):
            raise ValueError(f"kind {self.kind} needs at least one entry in `files`")
        return self
