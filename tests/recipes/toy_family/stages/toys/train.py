"""`python -m stages.toys.train EXPERIMENT PROFILE DATASET MODEL [--seed N]`: train one cell to
tosses. What is written: stages/training/shell.py."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner
from stages.toys.models import build, model_class, names
from stages.toys.settings import FAMILY, toys_of
from stages.toys.tosses import Tosses
from stages.training import cells, loop, shell
from stages.training.group import Group

MODULE = "stages.toys.train"


def plan(asked: runner.Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of toys is. InputError for names that do not stand in the parameters."""
    profile, parameters = asked["profile"], asked.parameters
    toys = toys_of(parameters, profile)
    where = f"profiles.{profile}.families.{FAMILY}"
    runner.known("set of toys", asked["dataset"], toys.datasets, where)
    runner.known("model of toys", cell.model, names())
    arguments, budget = cells.arguments(cell, parameters), shell.varied(cell, toys.training)
    protocol, rate = parameters.training, budget.learning_rate
    settings = shell.settings(budget, protocol, cell, rate, budget.batch)
    return shell.Task(
        module=model_class(cell.model).__module__,
        used=shell.used_by(cell, arguments, budget, protocol),
        sources=[asked.data("prepared")],
        shared=None,
        open=partial(opened, cell.model, arguments, asked.data("prepared"), settings),
    )


def opened(
    name: str,
    arguments: Mapping[str, Any],
    prepared: Path,
    settings: loop.Settings,
    where: torch.device,
    together: Group,
) -> shell.Opened:
    """Read prepared tosses for one model."""
    data = Tosses.open(prepared, where)
    coins = len(data.chances)
    return shell.Opened(
        build=partial(build, name, arguments, coins),
        train=lambda model, kept, group: loop.train(model.to(where), data, settings, kept, group),
        metadata={"arguments": dict(arguments), "coins": coins},
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command(MODULE, "Train one cell to tosses.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
