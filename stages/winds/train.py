"""`python -m stages.winds.train EXPERIMENT PROFILE DATASET MODEL [--arm A] [--size S] [--seed N]`:
train one cell to winds, or choose and validate one that learns nothing.

Reads data/PROFILE/prepared/DATASET, and the neighbours computed beforehand in
data/PROFILE/contexts/DATASET where the model learns from them. What a sweep found for the model
(reports/EXPERIMENT/PROFILE/sweeps/DATASET/MODEL/best.yaml) overrides the arguments of its arm
`swept`. What is written: stages/training/shell.py.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import params, runner
from stages.fields.models import DIMENSIONS, axes, build, model_class
from stages.runner import Asked
from stages.training import cells, shell
from stages.training.group import Group
from stages.winds.contexts.given import Contexts
from stages.winds.contexts.nearby import KINDS
from stages.winds.fitting import fit

META = ("scaler", "slice_s", "lead_s", "area")  # of the prepared winds, told with the weights


def plan(asked: Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of winds is. InputError for names that do not stand in the parameters."""
    parameters, profile, dataset = asked.parameters, asked.profile, asked["dataset"]
    runner.known("data set of winds", dataset, profile.wind, f"profiles.{profile.profile}.wind")
    swept = asked.home / "sweeps" / dataset / cell.model / "best.yaml"
    arguments = cells.arguments(cell, parameters, swept)
    model, protocol = model_class(cell.model), parameters.training
    budget = shell.varied(cell, profile.training)
    learns = model.learns == "gradient"
    cache = asked.data("contexts")
    cached = model.context == "neighbours" and learns and cache.exists()
    sources = [
        asked.data("prepared"),
        *([swept] if cell.arm == cells.SWEPT else []),
        *([cache] if cached else []),
    ]
    used = shell.used_by(cell, cells.arguments(cell, parameters), budget, protocol)
    if model.context in KINDS:
        used["contexts"] = parameters.contexts.model_dump(mode="json")
    rate = protocol.learning_rate if model.learning_rate is None else model.learning_rate
    settings = shell.settings(
        budget, protocol, cell, rate, budget.slices, precision=budget.precision
    )
    opened = partial(open_winds, cell.model, arguments, settings, parameters.contexts, sources[0])
    return shell.Task(
        module=model.__module__,
        used=used,
        sources=sources,
        shared=(budget.slices, "training.slices") if learns else None,
        open=partial(opened, cache if cached else None),
    )


def open_winds(
    name: str,
    arguments: dict[Any, Any],
    settings: shell.Settings,
    contexts: params.Contexts,
    prepared: Path,
    cache: Path | None,
    where: torch.device,
    together: Group,
) -> shell.Opened:
    """Read prepared winds, and the neighbours kept in `cache`, for one model."""
    given = Contexts.open(prepared, contexts, cache)
    meta = given.pairs.meta
    return shell.Opened(
        build=partial(build, name, arguments),
        train=lambda model, checkpoints, group: fit(
            model, given, settings, checkpoints, where, group
        ),
        metadata={
            "arguments": arguments,
            **dict(zip(DIMENSIONS, (axes(name), 2, 2), strict=True)),
            "prepared": {key: meta[key] for key in META if key in meta},
        },
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command("stages.winds.train", "Train one cell to winds.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
