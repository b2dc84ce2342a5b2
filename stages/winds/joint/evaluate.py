"""`python -m stages.winds.joint.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a joint
nowcast, the exact laws and the rivals, measured on the same kept tasks (measure.py). `--cell CELL`
measures one anew."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.runner import Asked, Work, known
from stages.scores import shell
from stages.winds.joint.settings import FAMILY, joint_of, made_of

MODULE = "stages.winds.joint.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a set that the profile does not have."""
    told, dataset = joint_of(asked.parameters, asked["profile"]), asked["dataset"]
    where = f"profiles.{asked['profile']}.families.{FAMILY}"
    known("joint nowcast", dataset, told.datasets, where)
    made = made_of(asked.parameters, dataset)
    machine, prepared = shell.Machine.of(asked), asked.data("prepared")

    def opened() -> Any:
        from stages.winds.joint import measure

        return measure, measure.Data.open(prepared, made, told, machine.seed)

    def evaluate(cells: list[Path], final: Path) -> None:
        measure, data = opened()
        found = measure.companions(data)
        for run in cells:
            found[run.name] = measure.network(run, data, machine.threads)
        measure.write(found, data, final)

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
    return shell.main(MODULE, "Evaluate models of the joint nowcast.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
