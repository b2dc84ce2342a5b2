"""`python -m stages.dynamics.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a system
and every rival run freely from the same starts (measure.py). `--cell CELL` measures one anew."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.dynamics.settings import FAMILY, Dynamics, dynamics_of
from stages.errors import InputError
from stages.runner import Asked, Work, known
from stages.scores import shell

MODULE = "stages.dynamics.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a set that the profile does not have."""
    told, dataset = dynamics_of(asked.parameters, asked["profile"]), asked["dataset"]
    where = f"profiles.{asked['profile']}.families.{FAMILY}"
    known("simulated system", dataset, told.datasets, where)
    refuse_peeking(told, dataset, where)
    machine, prepared = shell.Machine.of(asked), asked.data("prepared")

    def opened() -> Any:
        from stages.dynamics import measure

        return measure, measure.Data.open(prepared, told, machine.seed)

    def evaluate(cells: list[Path], final: Path) -> None:
        measure, data = opened()
        found = measure.companions(data)
        found |= {
            run.name: measure.network(run, data, machine.threads, machine.device) for run in cells
        }
        measure.write(found, data, final)

    def entry(run: Path) -> dict[str, Any]:
        measure, data = opened()
        return dict(measure.network(run, data, machine.threads, machine.device).entry)

    def companions() -> dict[str, dict[str, Any]]:
        measure, data = opened()
        return {name: one.entry for name, one in measure.companions(data).items()}

    used = {
        "forecasts": told.forecasts[dataset].model_dump(mode="json"),
        "rivals": told.rivals[dataset].model_dump(mode="json"),
    }
    evaluation = shell.Evaluation(evaluate, entry, "stages.dynamics.models", used, companions)
    return shell.work(MODULE, asked, evaluation, machine)


def refuse_peeking(told: Dynamics, dataset: str, where: str) -> None:
    """InputError where rivals would learn from what selects or tests."""
    learns, trains = told.rivals[dataset].train, told.splits[dataset].train
    if learns > trains:
        raise InputError(
            "the rivals would learn from observations that do not train",
            where=f"{where}.rivals.{dataset}.train",
            expected=f"at most {trains}, as in splits.{dataset}.train",
            found=str(learns),
            remedy="lower it",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate the forecasts of a system.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
