"""`python -m stages.fields.processes.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a
set of functions, the exact law and the prior, measured on the same kept tasks (measure.py). `--cell
CELL` measures one anew."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.fields.processes.limits import refuse_many
from stages.fields.processes.settings import FAMILY, functions_of, processes_of
from stages.runner import Asked, Work, known
from stages.scores import shell

MODULE = "stages.fields.processes.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a set that the profile does not have,
    and for more context points than one of its models answers from in minutes."""
    told, dataset = processes_of(asked.parameters, asked["profile"]), asked["dataset"]
    where = f"profiles.{asked['profile']}.families.{FAMILY}"
    known("set of functions", dataset, told.datasets, where)
    functions = functions_of(asked.parameters, dataset)
    assert told.asked is not None
    for cell in asked.trained.of(dataset).values():
        refuse_many(cell.model, cell.arm, max(told.asked.contexts), f"{where}.asked.contexts")
    machine, prepared = shell.Machine.of(asked), asked.data("prepared")

    def opened() -> Any:
        from stages.fields.processes import measure

        return measure, measure.Data.open(prepared, functions, told, machine.seed)

    def evaluate(runs: list[Path], final: Path) -> None:
        measure, data = opened()
        found = measure.companions(data)
        for run in runs:
            found[run.name] = measure.network(run, data, machine.threads)
        measure.write(found, data, final)

    def entry(run: Path) -> dict[str, Any]:
        measure, data = opened()
        return dict(measure.network(run, data, machine.threads).entry)

    def companions() -> dict[str, dict[str, Any]]:
        measure, data = opened()
        return {name: one.entry for name, one in measure.companions(data).items()}

    used = {"asked": told.asked.model_dump(mode="json")}
    evaluation = shell.Evaluation(evaluate, entry, "stages.fields.models", used, companions)
    return shell.work(MODULE, asked, evaluation, machine)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate neural processes on tasks that are kept.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
