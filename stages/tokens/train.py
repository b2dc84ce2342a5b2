"""`python -m stages.tokens.train EXPERIMENT PROFILE DATASET MODEL --arm A --size S [--seed N]`:
train one cell. What is written: stages/training/shell.py."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner
from stages.tokens.models import build, model_class, names
from stages.tokens.sets import Sets
from stages.tokens.settings import FAMILY, tokens_of
from stages.training import cells, loop, shell
from stages.training.group import Group

MODULE = "stages.tokens.train"


def plan(asked: runner.Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of the family is. InputError for names that do not stand in the parameters."""
    profile, parameters, dataset = asked["profile"], asked.parameters, asked["dataset"]
    told = tokens_of(parameters, profile)
    where = f"profiles.{profile}.families.{FAMILY}"
    runner.known("set of tokens", dataset, told.datasets, where)
    runner.known("model of tokens", cell.model, names())
    arguments = cells.arguments(cell, parameters)
    budget = shell.varied(cell, told.training[dataset])
    protocol = parameters.training
    settings = shell.settings(
        budget, protocol, cell, budget.learning_rate, budget.batch, schedule=budget.schedule
    )
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
    """Read prepared rows for one model."""
    data = Sets.open(prepared, where)
    return shell.Opened(
        build=partial(build, name, arguments, data.dimensions),
        train=lambda model, kept, group: loop.train(model.to(where), data, settings, kept, group),
        metadata={"arguments": dict(arguments), **data.dimensions},
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command(MODULE, "Train one cell to label, answer or draw.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
