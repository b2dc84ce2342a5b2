"""`python -m stages.dynamics.train EXPERIMENT PROFILE DATASET MODEL --arm A --size S [--seed N]`:
train one cell to forecast a system, by teacher forcing. What is written:
stages/training/shell.py."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner
from stages.dynamics.layout import BEST
from stages.dynamics.models import build, model_class, names
from stages.dynamics.settings import FAMILY, Budget, dynamics_of, parted
from stages.dynamics.windows import Windows
from stages.errors import InputError
from stages.params import read_yaml
from stages.training import cells, loop, shell
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group

MODULE = "stages.dynamics.train"


def plan(asked: runner.Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of the family is. InputError for names that do not stand in the parameters."""
    profile, parameters, dataset = asked["profile"], asked.parameters, asked["dataset"]
    told = dynamics_of(parameters, profile)
    where = f"profiles.{profile}.families.{FAMILY}"
    runner.known("simulated system", dataset, told.datasets, where)
    runner.known("model of dynamical systems", cell.model, names())
    best = asked.home / "sweeps" / dataset / cell.model / BEST
    arguments = cells.arguments(cell, parameters, best)
    budget = shell.varied(cell, told.training[dataset])
    swept = cell.arm == cells.SWEPT
    if swept:  # what the search drew of the training, and S
        arguments, budget = parted({**arguments, **read_yaml(best)["training"]}, budget)
    protocol = parameters.training
    settings = shell.settings(
        budget, protocol, cell, budget.learning_rate, budget.batch, schedule=budget.schedule
    )
    return shell.Task(
        module=model_class(cell.model).__module__,
        used=shell.used_by(cell, arguments, budget, protocol),
        sources=[asked.data("prepared"), *([best] if swept else [])],
        shared=None,
        open=partial(opened, cell.model, arguments, asked.data("prepared"), budget, settings),
    )


def opened(
    name: str,
    arguments: Mapping[str, Any],
    prepared: Path,
    budget: Budget,
    settings: loop.Settings,
    where: torch.device,
    together: Group,
) -> shell.Opened:
    """Read prepared observations for one model."""
    data = Windows.open(prepared, budget, settings.seed, where)
    observed, scale = data.series.shape[2], float(data.about["change"])
    return shell.Opened(
        build=partial(build, name, arguments, observed, scale),
        train=lambda model, kept, group: fit(model.to(where), data, budget, settings, kept, group),
        metadata={
            "arguments": dict(arguments),
            "observed": observed,
            "scale": scale,
            "length": data.length,
        },
    )


def fit(
    model: Any,
    data: loop.Data,
    budget: Budget,
    settings: loop.Settings,
    kept: Checkpoints,
    group: Group = ALONE,
) -> dict[str, Any]:
    """Train a model in place, as its budget says: by Adam, or as document R does. Its history.
    InputError where the library that has AdaBelief is not installed."""
    if budget.rounds is None:
        return loop.train(model, data, settings, kept, group)
    try:
        from stages.dynamics import rounds  # half a second of a library that few cells ask for
    except ModuleNotFoundError:
        raise InputError(
            "training in rounds needs AdaBelief, which the library pytorch-optimizer has",
            found="it is not installed",
            remedy="`pip install -c constraints.txt -e '.[adabelief]'`",
        ) from None
    return rounds.train(model, data, settings, budget, kept, group)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command(MODULE, "Train one cell to forecast a system.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
