"""`python -m stages.fields.train EXPERIMENT PROFILE DATASET MODEL [--arm A] [--size S] [--seed N]`:
train one cell to sets of points.

Reads data/PROFILE/prepared/DATASET. What is written: stages/training/shell.py.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner, seeds
from stages.contracts import FieldModel
from stages.errors import InputError
from stages.fields.batches import SetData
from stages.fields.models import build, model_class
from stages.fields.sets import PreparedSets
from stages.params import SetBudget
from stages.runner import Asked
from stages.training import cells, loop, shell
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group
from stages.training.loop import Settings

# training sets whose context positions place a model's nodes
PLACING = 300
META = ("scaler", "loss", "names", "units")  # of the prepared sets, told with the weights


def plan(asked: Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of fields is. InputError for names that do not stand in the parameters, and for
    a model that does not read sets."""
    parameters, profile, dataset = asked.parameters, asked.profile, asked["dataset"]
    where = f"profiles.{profile.profile}.learning"
    runner.known("data set of fields", dataset, profile.learning, where)
    arguments = cells.arguments(cell, parameters)
    model = model_class(cell.model)
    budget = shell.varied(cell, profile.learning[dataset])
    protocol = parameters.training
    if model.context != "slice":
        raise InputError(
            "this model reads winds near its target, not sets", where="models", found=cell.model
        )
    rate = budget.rates.get(cell.model, budget.learning_rate)
    settings = shell.settings(budget, protocol, cell, rate, budget.batch, schedule=budget.schedule)
    learns = model.learns == "gradient"
    return shell.Task(
        module=model.__module__,
        used=shell.used_by(cell, arguments, budget, protocol),
        sources=[asked.data("prepared")],
        shared=(budget.batch, f"learning.{dataset}.batch") if learns else None,
        open=partial(
            open_sets, cell.model, arguments, budget, settings, asked.data("prepared"), where
        ),
    )


def open_sets(
    name: str,
    arguments: dict[str, Any],
    budget: SetBudget,
    settings: Settings,
    prepared: Path,
    parameter: str,
    where: torch.device,
    together: Group,
) -> shell.Opened:
    """Read prepared sets for one model; `parameter` is where its budget stands. InputError where
    symmetries are asked for of positions that have none."""
    sets = PreparedSets.open(prepared, where)
    if budget.symmetries and not unit_square(sets):
        raise InputError(
            "these sets do not lie in the unit square, whose symmetries are asked for",
            remedy="set symmetries: false",
            where=f"{parameter}.{prepared.name}.symmetries",
        )
    data = SetData(sets, budget, settings.seed)
    return shell.Opened(
        build=partial(build, name, arguments, None, **sets.dimensions),
        train=lambda model, checkpoints, group: train(model, data, settings, checkpoints, group),
        metadata={
            "arguments": arguments,
            **sets.dimensions,
            "targets": data.asked,
            "prepared": {key: sets.meta[key] for key in META},
        },
    )


def train(
    model: FieldModel,
    data: SetData,
    settings: Settings,
    checkpoints: Checkpoints,
    group: Group = ALONE,
) -> dict[str, Any]:
    """Train the model in place to sets of points; returns its history. What needs no training is
    validated once. DivergedError, DataError."""
    model.to(data.device)
    if model.learns not in ("gradient", "nothing"):
        raise InputError(
            "this model is fitted to winds only", where="models", found=type(model).__name__
        )
    if model.has_nodes:
        positions = data.sets.context_x[data.sets.split("train")[:PLACING]].flatten(0, 1).cpu()
        model.place_nodes(positions, seeds.torch_stream(settings.seed, "training", "nodes"))
    return loop.train(model, data, settings, checkpoints, group)


def unit_square(sets: PreparedSets) -> bool:
    """Whether all positions are pairs of numbers from 0 to 1."""
    places = (sets.context_x, sets.target_x)
    return all(x.shape[2] == 2 and float(x.min()) >= 0 and float(x.max()) <= 1 for x in places)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command("stages.fields.train", "Train one cell to sets of points.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
