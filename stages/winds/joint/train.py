"""`python -m stages.winds.joint.train EXPERIMENT PROFILE DATASET MODEL --arm A --size S
[--seed N]`: train one cell on skies that are drawn as it goes. What is written:
stages/training/shell.py."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner
from stages.errors import InputError
from stages.fields.models import build, model_class
from stages.training import cells, loop, shell
from stages.training.group import Group
from stages.winds.joint.fresh import Fresh
from stages.winds.joint.settings import FAMILY, Budget, Told, joint_of, made_of

MODULE = "stages.winds.joint.train"
DIMENSIONS = {"x_dim": 4, "i_dim": 2, "o_dim": 2}


def plan(asked: runner.Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of the experiment is. InputError for names that do not stand in the parameters,
    and for a model that does not learn by gradient from places and times."""
    profile, parameters, dataset = asked["profile"], asked.parameters, asked["dataset"]
    told = joint_of(parameters, profile)
    where = f"profiles.{profile}.families.{FAMILY}"
    runner.known("joint nowcast", dataset, told.datasets, where)
    arguments = cells.arguments(cell, parameters)
    model = model_class(cell.model)
    if model.learns != "gradient" or model.context != "recent":
        raise InputError("this model does not learn from skies", where="models", found=cell.model)
    budget, protocol = shell.varied(cell, told.training[dataset]), parameters.training
    settings = shell.settings(
        budget, protocol, cell, budget.learning_rate, budget.tasks, schedule=budget.schedule
    )
    made = made_of(parameters, dataset)
    return shell.Task(
        module=model.__module__,
        used=shell.used_by(cell, arguments, budget, protocol)
        | {"made": made.model_dump(mode="json")},
        sources=[asked.data("prepared")],
        shared=None,
        open=partial(opened, cell.model, arguments, asked.data("prepared"), made, budget, settings),
    )


def opened(
    name: str,
    arguments: Mapping[str, Any],
    prepared: Path,
    made: Told,
    budget: Budget,
    settings: loop.Settings,
    where: torch.device,
    together: Group,
) -> shell.Opened:
    """What one model learns from."""
    data = Fresh.open(prepared, made, budget, settings.seed, where)
    return shell.Opened(
        build=partial(build, name, arguments, None, **DIMENSIONS),
        train=lambda model, kept, group: loop.train(model.to(where), data, settings, kept, group),
        metadata={"arguments": dict(arguments), **DIMENSIONS},
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command(MODULE, "Train one cell of the joint nowcast.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
