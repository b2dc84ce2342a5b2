"""`python -m stages.winds.sweep EXPERIMENT PROFILE DATASET MODEL [--join]`: choose the arguments of
a model that learns nothing by gradient on validation slices (thesis sections 1.3.3, 1.4.1).

Reads data/PROFILE/prepared/DATASET; writes what stages/sweeps/shell.py says, of which training
reads best.yaml. The objective is the RMSE per component over all points of every `val_every`-th
validation slice.
"""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import params, runner
from stages.contracts import FieldModel
from stages.errors import DataError
from stages.fields.models import build, model_class
from stages.runner import Asked
from stages.sweeps import shell, space
from stages.sweeps.ledger import Plan, Report
from stages.sweeps.space import Arguments
from stages.training.cells import SWEPT, Cell, arguments
from stages.training.losses import square
from stages.winds.batches import Data
from stages.winds.contexts.given import Contexts
from stages.winds.fitting import scale_to

PARTS = 4  # of the slices; after each but the last a pruner may end the draw


@dataclass(frozen=True)
class Score:
    """The objective of a model on one prepared data set; each process opens the data once."""

    model: str
    arm: dict[str, Any]
    prepared: Path
    contexts: params.Contexts
    every: int
    threads: int

    def __call__(self, arguments: Arguments, report: Report | None = None) -> float:
        """RMSE per component, knots."""
        torch.set_num_threads(self.threads)
        return score(
            build(self.model, {**self.arm, **arguments}),
            opened(self.prepared, self.contexts),
            self.every,
            report,
        )


@functools.lru_cache(maxsize=1)
def opened(prepared: Path, settings: params.Contexts) -> Contexts:
    """A prepared data set."""
    return Contexts.open(prepared, settings)


@torch.no_grad()
def score(model: FieldModel, contexts: Contexts, every: int, report: Report | None = None) -> float:
    """RMSE per component in knots over every n-th validation slice.

    The slices come in four parts, each spread over the whole validation, so that what `report` is
    told after a part is near what follows.
    """
    scale_to(model, contexts)
    model.eval()
    data = Data(contexts, model, torch.device("cpu"))
    unit_kn, slices = data.unit_kn(), data.slices("val")[::every]
    if not slices:
        raise DataError(
            "nothing to choose on",
            found="no validation slices",
            remedy="widen the split's intervals in stages/params/budgets/PROFILE/winds.yaml",
        )
    squares, points = 0.0, 0
    for part in range(PARTS):
        for slice in slices[part::PARTS]:
            batch = data.batch(slice)
            count = int(batch.target_mask.sum())
            squares = squares + float(square(model(batch).mean, batch, unit_kn)) * count
            points = points + count
        if report and points and part < PARTS - 1:
            report(part, float(np.sqrt(squares / points)))
    return float(np.sqrt(squares / points))


def plan(asked: Asked) -> shell.Task:
    """What is searched. InputError for names that do not stand in the parameters."""
    parameters, profile, name = asked.parameters, asked.profile, asked["model"]
    runner.known("sweep", name, parameters.sweeps)
    where = f"profiles.{profile.profile}.wind"
    runner.known("data set of winds", asked["dataset"], profile.wind, where)
    wanted, training = parameters.sweeps[name], parameters.training
    arm, prepared = arguments(Cell(name, SWEPT), parameters), asked.data("prepared")
    first = space.proposed(wanted, training.seed, name, 0)
    build(name, {**arm, **first})  # names and types, before any work
    return shell.Task(
        plan=Plan(wanted, training.seed, name),
        module=model_class(name).__module__,
        sources=[prepared],
        used={
            "model": name,
            "arm": arm,
            "sweep": wanted.model_dump(mode="json"),
            "seed": training.seed,
            "contexts": parameters.contexts.model_dump(mode="json"),
        },
        objective=Score(
            name, arm, prepared, parameters.contexts, wanted.val_every, training.threads
        ),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    about = "Choose a model's arguments on the validation slices."
    return shell.command("stages.winds.sweep", about, plan, argv)


if __name__ == "__main__":
    sys.exit(main())
