"""What each experiment trains: reports/EXPERIMENT/cells.yaml, per profile.

A cell is one data set, model, arm, size and seed, and any setting of its training that it varies.
Its key is its id, PROFILE-DATASET-CELL, which is also its stage's name; CELL names its folder.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from stages.params.base import Name, Positive, Section, Seed, nearest
from stages.params.sections import Model, Profile

Id = Annotated[str, Field(pattern=r"^[a-z0-9_]+(-[a-z0-9_]+)+$", max_length=200)]
GROUPS = ("plain", "cells", "local", "swept")  # by what their stages run
NO_SIZE = "none"  # the one size of a model without sizes
RATE = TypeAdapter(Positive)


class Declared(Section):
    """One trained cell of an experiment. `training`: settings of its training that differ from its
    budget's, by name; the learning rate is one of them."""

    dataset: Name
    model: Name
    arm: Name = "plain"
    size: Name = NO_SIZE
    seed: Seed = 0
    training: Annotated[dict[Name, int | float | str | bool], Field(min_length=1)] | None = None

    @property
    def name(self) -> str:
        """The folder's name: the model's, where it comes in one form."""
        if (self.arm, self.size) == ("plain", NO_SIZE):
            return self.model
        return f"{self.model}-{self.arm}-{self.size}-s{self.seed}"


class Cells(Section):
    """What an experiment trains under one profile. plain: models of one form, named by the model
    alone; local: those that read winds near each target, which a stage finds beforehand; swept:
    those whose arguments a sweep chooses first; cells: all others. evaluated: the data sets on
    which they are measured, where that is not all of a family's. filmed: by data set the folder of
    the cell that is drawn while it follows its frames."""

    plain: dict[Id, Declared] = {}
    cells: dict[Id, Declared] = {}
    local: dict[Id, Declared] = {}
    swept: dict[Id, Declared] = {}
    evaluated: tuple[Name, ...] | None = None
    filmed: dict[Name, Id] = {}

    def declared(self) -> Iterator[tuple[str, str, Declared]]:
        """Every cell with its group and its id."""
        for group in GROUPS:
            for key, cell in getattr(self, group).items():
                yield group, key, cell

    def of(self, dataset: str) -> dict[str, Declared]:
        """The cells of a data set, by the names of their folders."""
        return {cell.name: cell for _, _, cell in self.declared() if cell.dataset == dataset}


def cells_problems(
    experiment: str,
    profile: str,
    part: Cells,
    models: Mapping[str, Model],
    profiles: Mapping[str, Profile],
) -> list[str]:
    """What an experiment's cells say that is not so: names that do not exist, ids that are not
    their cells', data sets that are not evaluated or evaluated without a cell."""
    where = f"{file_of(experiment)}: {profile}"
    if profile not in profiles:
        return [f"{where}: there is no such profile{nearest(profile, profiles)}"]
    known, problems, seen = known_datasets(profiles[profile]), [], set()
    for group, key, cell in part.declared():
        found = cell_problems(cell, known, models) + training_problems(cell, profiles[profile])
        problems += [f"{where}.{group}.{key}: {problem}" for problem in found]
        if key != (right := f"{profile}-{cell.dataset}-{cell.name}"):
            problems.append(f"{where}.{group}.{key}: its id must be {right!r}, what it consists of")
        if (cell.dataset, cell.name) in seen:
            problems.append(f"{where}.{group}.{key}: the cell stands there twice")
        seen.add((cell.dataset, cell.name))
    for dataset, name in part.filmed.items():
        if name not in (cells := part.of(dataset)):
            problems.append(f"{where}.filmed.{dataset}: no such cell{nearest(name, cells)}")
    return problems + evaluated_problems(where, part, known)


def cell_problems(cell: Declared, known: list[str], models: Mapping[str, Model]) -> list[str]:
    """Names of a cell that the parameters do not have."""
    problems = []
    if cell.dataset not in known:
        problems.append(
            f"{cell.dataset!r} is not a data set of the profile{nearest(cell.dataset, known)}"
        )
    if cell.model not in models:
        return [*problems, f"there is no model {cell.model!r}{nearest(cell.model, models)}"]
    model = models[cell.model]
    sizes = model.sizes or {NO_SIZE: {}}
    problems += [
        f"{cell.model} has no {what} {name!r}{nearest(name, there)}"
        for what, name, there in (("arm", cell.arm, model.arms), ("size", cell.size, sizes))
        if name not in there
    ]
    return problems


def training_problems(cell: Declared, profile: Profile) -> list[str]:
    """Settings that a cell varies of its training and its budget does not have, and values out of
    range. Of a family with a schema of its own the learning rate alone is known here."""
    own = dict(cell.training or {})
    if cell.dataset in profile.wind:
        budget: Section | None = profile.training
    else:
        budget = profile.learning.get(cell.dataset) or profile.learning_orders.get(cell.dataset)
    problems = []
    if "learning_rate" not in (type(budget).model_fields if budget else {}) and own:
        given = own.pop("learning_rate", 1.0)
        try:
            RATE.validate_python(given, strict=True)
        except ValidationError as error:
            told = error.errors()[0]["msg"]
            problems.append(f"training.learning_rate: {told} (found {given!r})")
    if budget is None or not own:
        return problems
    names = {*type(budget).model_fields, "learning_rate"}
    unknown = [name for name in own if name not in names]
    problems += [f"training.{name} is no setting{nearest(name, names)}" for name in unknown]
    known = {name: value for name, value in own.items() if name in names}
    try:
        type(budget).model_validate(dict(budget) | known)
    except ValidationError as error:
        problems += [
            f"training.{'.'.join(map(str, one['loc']))}: {one['msg']} (found {one['input']!r})"
            for one in error.errors()
        ]
    return problems


def evaluated_problems(where: str, part: Cells, known: list[str]) -> list[str]:
    """Data sets that are told to be evaluated and are unknown, named twice or without a cell, and
    cells of data sets that are not."""
    if part.evaluated is None:
        return []
    names, trained = part.evaluated, {cell.dataset for _, _, cell in part.declared()}
    problems = [
        f"{where}.evaluated: {name!r} is not a data set of the profile{nearest(name, known)}"
        for name in names
        if name not in known
    ]
    problems += [
        f"{where}.evaluated: {name!r} stands there {names.count(name)} times"
        for name in sorted({*names})
        if names.count(name) > 1
    ]
    problems += [
        f"{where}.evaluated: no cell of {name!r} is trained" for name in sorted({*names} - trained)
    ]
    return problems + [
        f"{where}.evaluated: {name!r} is missing, of which cells are trained"
        for name in sorted(trained - {*names})
    ]


def known_datasets(profile: Profile) -> list[str]:
    """The prepared data sets of a profile, of every family."""
    others = (name for family in profile.families.values() for name in family.datasets)
    return [*profile.wind, *profile.problems, *profile.sequences, *others]


def file_of(experiment: str) -> str:
    """Where an experiment's cells stand."""
    return f"reports/{experiment}/cells.yaml"


def challenger_problems(
    profile: str, dataset: str, named: Mapping[str, str], cells: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Cells EXPERIMENT/CELL that retraining names (`named`: by what it names them) and that their
    experiment does not train; of one that the project lacks, retraining itself tells."""
    trained = [
        f"{experiment}/{name}"
        for experiment, parts in cells.items()
        if profile in parts
        for name in parts[profile].of(dataset)
    ]
    return [
        f"retraining.{key}: {address!r} is not trained of {dataset!r} in the profile "
        f"{profile}{nearest(address, trained)}"
        for key, address in named.items()
        if address.partition("/")[0] in cells and trained and address not in trained
    ]
