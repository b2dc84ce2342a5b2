"""`python -m stages.dynamics.series.train EXPERIMENT PROFILE DATASET MODEL --arm A --size S [--seed
N]`: train one cell to forecast a series, as train.py of the family does a system."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner
from stages.dynamics.models import build, model_class, names
from stages.dynamics.series.settings import SERIES, series_of
from stages.dynamics.series.windows import SeriesWindows
from stages.dynamics.settings import Budget
from stages.dynamics.train import fit
from stages.training import cells, loop, shell
from stages.training.group import Group

MODULE = "stages.dynamics.series.train"


def plan(asked: runner.Asked, cell: cells.Cell) -> shell.Task:
    """What a cell is. InputError for names that do not stand in the parameters."""
    profile, parameters, dataset = asked["profile"], asked.parameters, asked["dataset"]
    told = series_of(parameters, profile)
    runner.known("series", dataset, told.datasets, f"profiles.{profile}.families.{SERIES}")
    runner.known("model of dynamical systems", cell.model, names())
    arguments = cells.arguments(cell, parameters)
    budget = shell.varied(cell, told.training[dataset])
    protocol, prepared = parameters.training, asked.data("prepared")
    settings = shell.settings(
        budget, protocol, cell, budget.learning_rate, budget.batch, schedule=budget.schedule
    )
    return shell.Task(
        module=model_class(cell.model).__module__,
        used=shell.used_by(cell, arguments, budget, protocol),
        sources=[prepared],
        shared=None,
        open=partial(opened, cell.model, arguments, prepared, budget, settings),
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
    """Read a prepared series for one model."""
    data = SeriesWindows.open(prepared, budget, settings.seed, where)
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


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command(MODULE, "Train one cell to forecast a series.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
