"""`python -m stages.fields.grids.train EXPERIMENT PROFILE DATASET MODEL --arm A --size S
[--seed N]`: train one cell on tasks on and off the grid that are drawn as it goes. What is
written: stages/training/shell.py."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner
from stages.errors import InputError
from stages.fields.grids.fresh import Fresh
from stages.fields.grids.settings import FAMILY, Budget, Told, coupled_of, grids_of
from stages.fields.models import build, model_class
from stages.training import cells, loop, shell
from stages.training.group import Group

MODULE = "stages.fields.grids.train"


def plan(asked: runner.Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of the experiment is. InputError for names that do not stand in the parameters,
    and for a model that learns nothing by gradient."""
    profile, parameters, dataset = asked["profile"], asked.parameters, asked["dataset"]
    told = grids_of(parameters, profile)
    where = f"profiles.{profile}.families.{FAMILY}"
    runner.known("set of tasks on a grid", dataset, told.datasets, where)
    arguments = cells.arguments(cell, parameters)
    model = model_class(cell.model)
    if model.learns != "gradient" or model.context != "slice":
        raise InputError("this model does not learn from tasks", where="models", found=cell.model)
    budget, protocol = shell.varied(cell, told.training[dataset]), parameters.training
    settings = shell.settings(
        budget, protocol, cell, budget.learning_rate, budget.tasks, schedule=budget.schedule
    )
    coupled = coupled_of(parameters, dataset)
    return shell.Task(
        module=model.__module__,
        used=shell.used_by(cell, arguments, budget, protocol)
        | {"coupled": coupled.model_dump(mode="json")},
        sources=[asked.data("prepared")],
        shared=None,
        open=partial(
            opened, cell.model, arguments, asked.data("prepared"), coupled, budget, settings
        ),
    )


def opened(
    name: str,
    arguments: Mapping[str, Any],
    prepared: Path,
    coupled: Told,
    budget: Budget,
    settings: loop.Settings,
    where: torch.device,
    together: Group,
) -> shell.Opened:
    """What one model learns from."""
    data = Fresh.open(prepared, coupled, budget, settings.seed, where)
    dimensions = {"x_dim": coupled.axes, "i_dim": 1, "o_dim": 1}
    return shell.Opened(
        build=partial(build, name, arguments, None, **dimensions),
        train=lambda model, kept, group: loop.train(model.to(where), data, settings, kept, group),
        metadata={"arguments": dict(arguments), **dimensions},
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command(MODULE, "Train one cell on and off the grid.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
