"""`python -m stages.tokens.evaluate EXPERIMENT PROFILE DATASET`: every trained cell and companion
of a set on the rows that test (measure.py). `--cell CELL` measures one anew."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.runner import Asked, Work, known
from stages.scores import shell
from stages.tokens.settings import FAMILY, made_of, tokens_of

MODULE = "stages.tokens.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a set that the profile does not have."""
    told, dataset = tokens_of(asked.parameters, asked["profile"]), asked["dataset"]
    where = f"profiles.{asked['profile']}.families.{FAMILY}"
    known("set of tokens", dataset, told.datasets, where)
    made = made_of(asked.parameters, dataset)
    machine, prepared = shell.Machine.of(asked), asked.data("prepared")

    def opened() -> Any:
        from stages.tokens import measure

        return measure, measure.Data.open(prepared, made, told, machine.seed, machine.device)

    def evaluate(cells: list[Path], final: Path) -> None:
        measure, data = opened()
        found = measure.companions(data)
        found |= {run.name: measure.network(run, data, machine.threads) for run in cells}
        measure.write(found, data, final)

    def entry(run: Path) -> dict[str, Any]:
        measure, data = opened()
        return dict(measure.network(run, data, machine.threads).entry)

    def companions() -> dict[str, dict[str, Any]]:
        measure, data = opened()
        return {name: one.entry for name, one in measure.companions(data).items()}

    used = {"drawn": told.drawn, "maps": told.maps, "resamples": told.resamples}
    evaluation = shell.Evaluation(evaluate, entry, "stages.tokens.models", used, companions)
    return shell.work(MODULE, asked, evaluation, machine)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate token mixers on a set.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
