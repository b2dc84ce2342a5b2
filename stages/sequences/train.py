"""`python -m stages.sequences.train EXPERIMENT PROFILE DATASET MODEL --arm A --size S [--seed N]`:
train one cell to sequences.

Reads data/PROFILE/prepared/DATASET. An arm of a model of sequences has, beside the network's
arguments, `order` (the kind it is shown: permutations.py) and may have `curriculum`, the share of
sequences from left to right at the first step, in its budget's place. The data set's budget may
set the dropout of all its models. Dropout is drawn from torch's global generator, whose state every
checkpoint holds. What is written: stages/training/shell.py.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import runner
from stages.contracts import SequenceModel
from stages.errors import InputError
from stages.params.orders import OrderBudget
from stages.runner import Asked
from stages.sequences.batches import OrderData, Prepared, wrapped
from stages.sequences.models import DIMENSIONS, build, model_class, names
from stages.training import cells, loop, shell
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group
from stages.training.loop import Settings

OWN = ("order", "curriculum")  # what an arm says of training, not of the network


def plan(asked: Asked, cell: cells.Cell) -> shell.Task:
    """What a cell of sequences is. InputError for names that do not stand in the parameters."""
    parameters, profile, dataset = asked.parameters, asked.profile, asked["dataset"]
    runner.known("model of sequences", cell.model, names())
    budgets = profile.learning_orders
    runner.known(
        "data set of sequences", dataset, budgets, f"profiles.{profile.profile}.learning_orders"
    )
    arguments, protocol = cells.arguments(cell, parameters), parameters.training
    budget = shell.varied(cell, own_curriculum(budgets[dataset], arguments, cell))
    arguments |= {} if budget.dropout is None else {"dropout": budget.dropout}
    rate = budget.rates.get(cell.model, budget.learning_rate)
    settings = shell.settings(
        budget,
        protocol,
        cell,
        rate,
        budget.batch,
        schedule=budget.schedule,
        select=budget.select,
        per_doubling=budget.per_doubling,
    )
    return shell.Task(
        module=model_class(cell.model).__module__,
        used=shell.used_by(cell, arguments, budget, protocol),
        sources=[asked.data("prepared")],
        shared=(budget.batch, f"learning_orders.{dataset}.batch"),
        open=partial(
            open_sequences, cell.model, arguments, budget, settings, asked.data("prepared")
        ),
    )


def own_curriculum(
    budget: OrderBudget, arguments: Mapping[str, Any], cell: cells.Cell
) -> OrderBudget:
    """The budget, with the arm's curriculum where it has one. InputError for what is no share."""
    if "curriculum" not in arguments:
        return budget
    share = arguments["curriculum"]
    if type(share) not in (int, float) or not 0 <= share <= 1:
        raise InputError(
            "the arm's curriculum is no share",
            where=f"models.{cell.model}.arms.{cell.arm}.curriculum",
            expected="a number from 0 to 1",
            found=repr(share),
        )
    return budget.model_copy(update={"curriculum": float(share)})


def open_sequences(
    name: str,
    arguments: Mapping[str, Any],
    budget: OrderBudget,
    settings: Settings,
    folder: Path,
    where: torch.device,
    together: Group,
) -> shell.Opened:
    """Read prepared sequences for one model. Its order is its arm's; diffusion knows none and says
    so by leaving it out. InputError for an unknown order."""
    prepared = Prepared.open(folder, where)
    order = arguments.get("order", "left_to_right")
    data = OrderData(prepared, budget, order, settings.seed, together)
    network = {key: value for key, value in arguments.items() if key not in OWN}
    if network.get("positions") == "grid":
        network = {"axes": prepared.axes} | network
    dimensions = {key: prepared.meta[key] for key in DIMENSIONS}
    return shell.Opened(
        build=partial(build, name, network, None, **dimensions),
        train=lambda model, checkpoints, group: train(model, data, settings, checkpoints, group),
        metadata={"family": "orders", "arguments": network, "order": order, **dimensions},
    )


def train(
    model: SequenceModel,
    data: OrderData,
    settings: Settings,
    checkpoints: Checkpoints,
    group: Group = ALONE,
) -> dict[str, Any]:
    """Train the model in place; returns its history (strict JSON). DivergedError, DataError."""
    model.to(data.device)
    return loop.train(wrapped(model), data, settings, checkpoints, group)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.command("stages.sequences.train", "Train one cell to sequences.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
