"""params.yaml, the parts of it in files of their own (reading.py) and their schema: what can be
set, its type, its range. All problems are told at once.

YAML 1.2 (`no` is a word, not false); duplicate keys, tags, unknown keys and names, wrong types and
non-finite numbers are refused. Below `cli.py` and the packages' `__main__.py` nobody reads this
file: they are handed the frozen objects defined here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import pydantic
from pydantic import BaseModel, model_validator

from stages.errors import ParamsError
from stages.params import checks
from stages.params.arguments import argument_problems
from stages.params.base import Problems, nearest
from stages.params.cells import Cells, Declared, cells_problems
from stages.params.datasets import Dataset, Flown, Gaussian, Listed, Simulate, Source
from stages.params.problems import (
    Cds,
    Darcy,
    NavierStokes,
    Poisson,
    SetBudget,
    Sets,
    Sines,
    Weather,
)
from stages.params.reading import PARTS, WHOLE, gathered, holder, prefix, read_yaml
from stages.params.sections import (
    Budget,
    Cell,
    Contexts,
    Decode,
    Drift,
    Evaluation,
    Model,
    Name,
    PointSets,
    Prepare,
    Profile,
    Range,
    Retraining,
    Rolling,
    Search,
    Section,
    Split,
    Sweep,
    Training,
)

__all__ = [
    "PARTS",
    "WHOLE",
    "Budget",
    "Cds",
    "Cell",
    "Cells",
    "Contexts",
    "Darcy",
    "Dataset",
    "Declared",
    "Decode",
    "Drift",
    "Evaluation",
    "Flown",
    "Gaussian",
    "Inference",
    "Listed",
    "Model",
    "Name",
    "NavierStokes",
    "Params",
    "PointSets",
    "Poisson",
    "Prepare",
    "Profile",
    "Range",
    "Retraining",
    "Rolling",
    "Search",
    "Section",
    "SetBudget",
    "Sets",
    "Simulate",
    "Sines",
    "Source",
    "Split",
    "Sweep",
    "Training",
    "Weather",
    "checked",
    "experiments",
    "gathered",
    "home",
    "inference",
    "load",
    "nearest",
    "prefix",
    "read_yaml",
]


S = TypeVar("S", bound=BaseModel)


class Inference(Section):
    """What a trained model is asked with: how frames become winds, and how contexts are found."""

    decode: Decode
    contexts: Contexts
    training: Training


class Params(Inference):
    """The whole of params.yaml and its parts."""

    profiles: dict[Name, Profile]
    run: Profile
    datasets: dict[Name, Dataset]
    models: dict[Name, Model]
    sweeps: dict[Name, Sweep]
    retraining: Retraining
    cells: dict[Name, dict[Name, Cells]] = {}  # by experiment and profile

    @model_validator(mode="after")
    def names_meet(self) -> Self:
        problems = []
        for name, profile in self.profiles.items():
            trained = {
                cell.dataset
                for parts in self.cells.values()
                if name in parts
                for _, _, cell in parts[name].declared()
            }
            if profile.profile != name:
                problems.append(f"profiles.{name}.profile is {profile.profile!r}")
            for dataset in profile.datasets:
                if dataset not in self.datasets:
                    problems.append(
                        f"profiles.{name}.datasets: {dataset!r} is "
                        f"unknown{nearest(dataset, self.datasets)}"
                    )
            problems += [f"profiles.{name}.{problem}" for problem in checks.plan_problems(profile)]
            problems += [
                f"profiles.{name}.acquired: {dataset!r} is not among its "
                f"datasets{nearest(dataset, profile.datasets)}"
                for dataset in profile.acquired
                if dataset not in profile.datasets
            ]
            problems += checks.set_problems(name, profile, self.datasets, trained)
            problems += checks.sequence_problems(name, profile, self.datasets, trained)
            problems += checks.family_problems(name, profile, self.datasets)
            for dataset in profile.wind:
                if dataset not in profile.datasets:
                    problems.append(
                        f"profiles.{name}.wind: {dataset!r} is not among its "
                        f"datasets{nearest(dataset, profile.datasets)}"
                    )
                if dataset not in profile.prepare:
                    problems.append(f"profiles.{name}.prepare: {dataset!r} is missing")
        for experiment, parts in self.cells.items():
            for name, part in parts.items():
                problems += cells_problems(experiment, name, part, self.models, self.profiles)
        problems += checks.entry_problems(self.datasets, self.profiles)
        problems += [
            f"sweeps.{model}: there is no such model{nearest(model, self.models)}"
            for model in self.sweeps
            if model not in self.models
        ]
        problems += checks.msa_problems(self.models["msa"]) if "msa" in self.models else []
        problems += argument_problems(self.models)
        problems += checks.retraining_problems(self)
        if problems:
            raise Problems(checks.causes(problems, self.profiles, self.datasets))
        return self

    def trained(self, experiment: str, profile: str) -> Cells:
        """What an experiment trains under a profile; nothing where it declares no cells."""
        return self.cells.get(experiment, {}).get(profile, Cells())

    def family(self, profile: str, name: str, schema: type[S]) -> S:
        """What a profile affords of a family, by the family's own schema (a Section with
        `datasets`). ParamsError lists every problem, and says so where nothing is afforded."""
        part = self.profiles[profile].families.get(name)
        where = f"profiles.{profile}.families.{name}"
        return checked(schema, {} if part is None else part.model_dump(), where)


def experiments() -> tuple[str, ...]:
    """The experiments that are declared: the folders of reports/ with a dvc.yaml."""
    return tuple(sorted(file.parent.name for file in Path("reports").glob("*/dvc.yaml")))


def load(path: str | Path = "params.yaml") -> Params:
    """Read and check params.yaml with its parts. ParamsError lists every problem with its key,
    what is allowed and the nearest name."""
    path = Path(path)
    try:
        return checked(Params, _tuples(gathered(path)), str(path), lambda key: holder(path, key))
    except RecursionError:
        raise ParamsError(
            "a part of the file contains itself",
            where=str(path),
            remedy="look for an alias (*name) inside its own anchor (&name)",
        ) from None


def home() -> Path:
    """The folder of params.yaml and of the example: a clone's root, or what a wheel keeps of it."""
    inside = Path(__file__).parents[1] / "project"
    return inside if inside.is_dir() else Path(__file__).parents[2]


def inference() -> Inference:
    """What the installed package asks its models with, wherever it is called. ParamsError."""
    files = (home() / WHOLE, *sorted(Path(__file__).parent.glob("*.yaml")))
    parts = {key: part for file in files for key, part in read_yaml(file).items()}
    content = {name: parts.get(name) for name in Inference.model_fields}
    return checked(Inference, _tuples(content), str(home() / WHOLE))


def checked(
    schema: type[S], content: Any, where: str, holds: Callable[[str], str] | None = None
) -> S:
    """Parameters by their schema. ParamsError lists every problem with its key, what is allowed and
    the nearest name; `holds`: the file in which a key stands, where that is not `where`."""
    try:
        return schema.model_validate(content)
    except pydantic.ValidationError as error:
        # unknown keys first: what lacks beneath the right name of one is no mistake of its own
        problems = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        lines = [line for problem in problems for line in _lines(schema, problem)]
        own = {line.split(".", 2)[-1] for line in lines if line.startswith("profiles.")}
        lines = [  # what `run: *mini` repeats of profiles.mini is one mistake
            line
            for line in dict.fromkeys(lines)
            if not (line.startswith("run.") and line.removeprefix("run.") in own)
        ]
        files = dict.fromkeys(holds(line.split(":")[0]) if holds else where for line in lines)
        raise ParamsError(
            f"{len(lines)} problem(s) in the parameters",
            where=", ".join(files),
            found="\n    ".join(["", *lines]),
            remedy="mend the keys named above; stages/params/sections.py is the schema",
        ) from None


def _lines(schema: type[BaseModel], problem: Any) -> list[str]:
    """What one error of Pydantic says, a line a problem: key, what is wrong, what was found."""
    told = problem.get("ctx", {}).get("error")
    if isinstance(told, Problems):
        return [*told.lines]
    key = ".".join(str(part) for part in problem["loc"]) or "(whole file)"
    found = problem.get("input")
    short = isinstance(found, str | int | float | bool) and len(repr(found)) < 80
    shown = f" (found {found!r})" if short else ""
    hint = (
        nearest(problem["loc"][-1], _siblings(schema, problem["loc"]))
        if problem["type"] == "extra_forbidden"
        else ""
    )
    return [f"{key}: {problem['msg']}{shown}{hint}"]


def _tuples(content):
    """Lists as tuples, so that strict validation ("1e-3" is no number, true is no count) takes
    them where the schema has tuples."""
    if isinstance(content, dict):
        return {key: _tuples(value) for key, value in content.items()}
    return tuple(map(_tuples, content)) if isinstance(content, list) else content


def _siblings(schema: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """The field names that the schema allows where an unknown key stood."""
    section: Any = schema
    for part in location[:-1]:
        field = (
            section.model_fields.get(str(part))
            if isinstance(section, type) and issubclass(section, BaseModel)
            else None
        )
        annotation = field.annotation if field else section
        arguments = getattr(annotation, "__args__", ())
        section = next(
            (
                a
                for a in (annotation, *arguments)
                if isinstance(a, type) and issubclass(a, BaseModel)
            ),
            arguments[-1] if arguments else annotation,
        )
    return (
        list(section.model_fields)
        if isinstance(section, type) and issubclass(section, BaseModel)
        else []
    )
