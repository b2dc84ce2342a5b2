"""`python -m stages.fields.grids.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a
set of tasks, the exact laws and the prior, measured on the same kept tasks (measure.py); of the
whole globe also its map (full_map.py). `--cell CELL` measures one anew."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.fields.grids.settings import FAMILY, Whole, coupled_of, grids_of
from stages.runner import Asked, Work, known
from stages.scores import shell

MODULE = "stages.fields.grids.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a set that the profile does not have."""
    told, dataset = grids_of(asked.parameters, asked["profile"]), asked["dataset"]
    where = f"profiles.{asked['profile']}.families.{FAMILY}"
    known("set of tasks on a grid", dataset, told.datasets, where)
    coupled = coupled_of(asked.parameters, dataset)
    machine, prepared = shell.Machine.of(asked), asked.data("prepared")

    def opened() -> Any:
        from stages.fields.grids import measure

        return measure, measure.Data.open(prepared, coupled, told, machine.seed)

    def evaluate(cells: list[Path], final: Path) -> None:
        measure, data = opened()
        found = measure.companions(data)
        for run in cells:
            found[run.name] = measure.network(run, data, machine.threads)
        full = None
        if isinstance(coupled, Whole):
            from stages.fields.grids import full_map

            full = full_map.drawn({run.name: run for run in cells}, found, data)
        told, drawn = (full.entry, full.arrays) if full else (None, None)
        measure.write(found, data, final, told, drawn)

    def entry(run: Path) -> dict[str, Any]:
        measure, data = opened()
        return dict(measure.network(run, data, machine.threads).entry)

    def companions() -> dict[str, dict[str, Any]]:
        measure, data = opened()
        return {name: one.entry for name, one in measure.companions(data).items()}

    used = {"resamples": told.resamples}
    evaluation = shell.Evaluation(evaluate, entry, "stages.fields.models", used, companions)
    return shell.work(MODULE, asked, evaluation, machine)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate models on and off the grid.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
