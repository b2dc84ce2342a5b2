"""params.yaml and its schema: everything that can be set, its type, its range. All problems are told at once.

YAML 1.2 (`no` is a word, not false); duplicate keys, tags, unknown keys and names, wrong types and non-finite numbers are refused.
Below `cli.py` and the packages' `__main__.py` nobody reads this file: they are handed the frozen objects defined here.
"""

import difflib
from collections.abc import Mapping
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from stages.errors import ParamsError

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$", max_length=40)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
Count = Annotated[int, Field(gt=0, le=10**9)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Interval = tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0)]]


class Section(BaseModel):
    """A frozen part of params.yaml; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Split(Section):
    """Intervals of target time [start, end) in seconds from the data's first multiple of slice_s since 1970."""

    train: tuple[Interval, ...]
    val: tuple[Interval, ...]
    test: tuple[Interval, ...]

    @field_validator("train", "val", "test")
    @classmethod
    def ordered(cls, intervals):
        for start, end in intervals:
            if not start < end:
                raise ValueError(f"interval [{start}, {end}] is empty")
        return intervals


class Prepare(Section):
    """Slices and splits of one data set."""

    slice_s: Positive
    lead_s: Positive
    embargo_s: Annotated[float, Field(ge=0, le=1e7)]
    split: Split


class Budget(Section):
    """How long a cell may train; patience counts validations without improvement."""

    steps: Count
    validate_every: Count
    patience: Count
    precision: Literal["float32", "bfloat16"] = "float32"


class Evaluation(Section):
    """Leads of the horizon curve (minutes) and bootstrap resamples."""

    leads_min: tuple[Positive, ...]
    bootstrap: Annotated[int, Field(ge=100, le=100000)]


class Profile(Section):
    """What we can afford."""

    profile: Name
    datasets: tuple[Name, ...]
    wind: tuple[Name, ...]
    sizes: tuple[Name, ...]
    seeds: tuple[Seed, ...]
    arm_seeds: tuple[Seed, ...]
    prepare: dict[Name, Prepare]
    training: Budget
    evaluation: Evaluation


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


class Source(Section):
    """One pinned file: where it is, what it must hash to, under which licence it comes."""

    url: Annotated[str, Field(pattern=r"^https://[^\s@'\"`$;|&<>\\]+$")]
    licence: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    bytes: Count | None = None
    bytes_max: Annotated[int, Field(gt=0, le=10**11)] | None = None

    @model_validator(mode="after")
    def pinned(self):
        if not (self.sha256 or self.md5):
            raise ValueError("a source needs a sha256 (or, where only that is published, an md5)")
        if not (self.bytes or self.bytes_max):
            raise ValueError("a source needs bytes or bytes_max")
        return self


class Simulate(Section):
    """The simulated airspace; see stages/acquisition/simulated.py."""

    seed: Seed
    start: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    hours: Annotated[float, Field(gt=0, le=1000)]
    aircraft: Count
    update_s: Positive
    south_west: tuple[Annotated[float, Field(ge=-80, le=80)], Annotated[float, Field(ge=-180, le=180)]]
    extent_km: tuple[Positive, Positive]
    altitude_m: tuple[Positive, Positive]
    dropout: Annotated[float, Field(ge=0, lt=1)]
    bit_error: Annotated[float, Field(ge=0, lt=1)]
    airspeed_noise_kt: Annotated[float, Field(ge=0)]
    heading_noise_deg: Annotated[float, Field(ge=0)]


class Dataset(Section):
    """A data set: at which level it enters (frames, states or winds) and where its bytes come from."""

    entry: Literal["frames", "states", "winds"]
    kind: Literal["simulate", "files", "archive"]
    files: dict[FileName, Source] = {}
    simulate: Simulate | None = None

    @model_validator(mode="after")
    def has_a_source(self):
        if self.kind == "simulate" and self.simulate is None:
            raise ValueError("kind simulate needs the section `simulate`")
        if self.simulate is not None:
            try:
                datetime.fromisoformat(self.simulate.start)
            except ValueError as error:
                raise ValueError(f"simulate.start: there is no such moment as {self.simulate.start} ({error})") from None
        if self.kind != "simulate" and not self.files:
            raise ValueError(f"kind {self.kind} needs at least one entry in `files`")
        return self


class Model(Section):
    """A model's arms (what is compared) and sizes (how large); each is a set of keyword arguments of its class."""

    arms: dict[Name, dict[str, int | float | str | tuple[int, ...]]]
    sizes: dict[Name, dict[str, int]] = {}


class Training(Section):
    """The thesis' protocol."""

    seed: Seed
    learning_rate: Positive
    clip: Positive
    threads: Count


class Params(Section):
    """The whole of params.yaml."""

    profiles: dict[Name, Profile]
    run: Profile
    decode: Decode
    datasets: dict[Name, Dataset]
    models: dict[Name, Model]
    training: Training

    @model_validator(mode="after")
    def names_meet(self):
        problems = []
        for name, profile in self.profiles.items():
            if profile.profile != name:
                problems.append(f"profiles.{name}.profile is {profile.profile!r}")
            for dataset in profile.datasets:
                if dataset not in self.datasets:
                    problems.append(f"profiles.{name}.datasets: {dataset!r} is unknown{nearest(dataset, self.datasets)}")
            problems += [f"profiles.{name}.{problem}" for problem in _plan_problems(profile, self.models)]
            for dataset in profile.wind:
                if dataset not in profile.datasets:
                    problems.append(f"profiles.{name}.wind: {dataset!r} is not among its datasets{nearest(dataset, profile.datasets)}")
                if dataset not in profile.prepare:
                    problems.append(f"profiles.{name}.prepare: {dataset!r} is missing")
        problems += _msa_problems(self.models["msa"]) if "msa" in self.models else []
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _plan_problems(profile: Profile, models: Mapping[str, Model]) -> list[str]:
    """What a profile cannot run: a list that says something twice, wind without a seed, unknown sizes, splits that meet."""
    problems = []
    for key in ("datasets", "wind", "sizes", "seeds", "arm_seeds"):
        values = getattr(profile, key)
        problems += [f"{key}: {value!r} stands there {values.count(value)} times"
                     for value in sorted(set(values)) if values.count(value) > 1]
    if profile.wind and not profile.seeds:
        problems.append("seeds: empty, but `wind` names data sets to train on")
    known = {size for model in models.values() for size in model.sizes}
    if known:  # where no model has sizes, sizes mean nothing
        problems += [f"sizes: {size!r} is a size of no model{nearest(size, known)}" for size in profile.sizes if size not in known]
    for dataset, prepare in profile.prepare.items():
        intervals = [(split, interval) for split in Split.model_fields for interval in getattr(prepare.split, split)]
        problems += [f"prepare.{dataset}.split.{split}: no interval" for split in Split.model_fields if not getattr(prepare.split, split)]
        problems += [f"prepare.{dataset}.split: {a} {list(left)} and {b} {list(right)} overlap"
                     for (a, left), (b, right) in combinations(intervals, 2) if left[0] < right[1] and right[0] < left[1]]
    return problems


MSA_WORDS = {"encoder": ("shared", "traditional"), "head": ("mean", "gaussian")}
MSA_COUNTS = {"width": 4096, "heads": 4096, "layers": 256}  # each from 1 to this


def _msa_problems(model: Model) -> list[str]:
    """Arguments of msa's arms (words) and sizes (counts) that it does not have or cannot take."""
    problems = []
    for key, sections, known in (("arms", model.arms, MSA_WORDS), ("sizes", model.sizes, MSA_COUNTS)):
        for name, arguments in sections.items():
            problems += [f"models.msa.{key}.{name}.{word} is not an argument{nearest(word, known)}"
                         for word in arguments if word not in known]
    for name, arm in model.arms.items():
        problems += [f"models.msa.arms.{name}.{word} is {arm[word]!r}, not one of {', '.join(allowed)}"
                     for word, allowed in MSA_WORDS.items() if word in arm and arm[word] not in allowed]
    for name, size in model.sizes.items():
        missing = [word for word in MSA_COUNTS if word not in size]
        wrong = [word for word, most in MSA_COUNTS.items() if word in size and not 1 <= size[word] <= most]
        problems += [f"models.msa.sizes.{name}.{word} is missing" for word in missing]
        problems += [f"models.msa.sizes.{name}.{word} is {size[word]}, not from 1 to {MSA_COUNTS[word]}" for word in wrong]
        if not {"width", "heads"} & {*missing, *wrong} and size["width"] % size["heads"]:
            problems.append(f"models.msa.sizes.{name}.width is {size['width']}, no multiple of its heads, {size['heads']}")
    return problems


def nearest(word: str, known) -> str:
    """A hint: the known name closest to `word`, and all that are allowed."""
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return (f"; did you mean {close[0]!r}?" if close else "") + f" (known: {', '.join(sorted(known))})"


def read_yaml(path: Path):
    """Plain YAML 1.2 data: duplicate keys, tags and bytes that are not UTF-8 are ParamsErrors."""
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError("params.yaml is missing", where=str(path), remedy="run from the project's root") from None
    except UnicodeDecodeError as error:
        raise ParamsError("the file is not UTF-8", where=str(path), found=str(error)) from None
    except (YAMLError, ValueError) as error:
        raise ParamsError("the file is not plain YAML", where=str(path), found=" ".join(str(error).split())) from None


def load(path: str | Path = "params.yaml") -> Params:
    """Read and check params.yaml. ParamsError lists every problem with its key, what is allowed and the nearest name."""
    path = Path(path)
    try:
        return Params.model_validate(_tuples(read_yaml(path)))
    except RecursionError:
        raise ParamsError("a part of the file contains itself", where=str(path),
                          remedy="look for an alias (*name) inside its own anchor (&name)") from None
    except pydantic.ValidationError as error:
        lines = []
        for problem in error.errors():
            key = ".".join(str(part) for part in problem["loc"]) or "(whole file)"
            found = problem.get("input")
            shown = f" (found {found!r})" if isinstance(found, str | int | float | bool) and len(repr(found)) < 80 else ""
            hint = nearest(problem["loc"][-1], _siblings(problem["loc"])) if problem["type"] == "extra_forbidden" else ""
            lines.append(f"{key}: {problem['msg']}{shown}{hint}")
        raise ParamsError(f"{len(lines)} problem(s) in the parameters", where=str(path), found="\n    ".join(["", *lines]),
                          remedy="mend the keys named above; stages/params.py is the schema") from None


def _tuples(content):
    """Lists as tuples, so that strict validation ("1e-3" is no number, true is no count) takes them where the schema has tuples."""
    if isinstance(content, dict):
        return {key: _tuples(value) for key, value in content.items()}
    return tuple(map(_tuples, content)) if isinstance(content, list) else content


def _siblings(location: tuple) -> list[str]:
    """The field names that the schema allows where an unknown key stood."""
    section: type | None = Params
    for part in location[:-1]:
        field = section.model_fields.get(str(part)) if isinstance(section, type) and issubclass(section, BaseModel) else None
        annotation = field.annotation if field else section
        arguments = getattr(annotation, "__args__", ())
        section = next((a for a in (annotation, *arguments) if isinstance(a, type) and issubclass(a, BaseModel)), annotation)
    return list(section.model_fields) if isinstance(section, type) and issubclass(section, BaseModel) else []


