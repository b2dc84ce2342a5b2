"""`python -m stages.winds.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a data set of
winds, measured.

Reads reports/EXPERIMENT/PROFILE/runs/DATASET and data/PROFILE/prepared/DATASET; writes
metrics.json, predictions, fields and slices into reports/EXPERIMENT/PROFILE/evaluated/DATASET, and
a record. With `--cell CELL [--out FILE]` one cell's entry of
metrics.json is measured anew and written as strict JSON to FILE or printed; results and record stay
as they are.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.runner import Asked, Work, known
from stages.scores import shell

if TYPE_CHECKING:
    from stages.winds.evaluation_data import Settings

MODULE = "stages.winds.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a data set that is none of the profile's
    winds."""
    profile, prepared = asked.profile, asked.data("prepared")
    known("data set", asked["dataset"], profile.wind, f"profiles.{profile.profile}.wind")
    from stages.winds import measure
    from stages.winds.evaluation_data import Settings

    machine, contexts = shell.Machine.of(asked), asked.parameters.contexts
    settings = Settings(
        profile.evaluation.leads_min, machine.seed, contexts, machine.threads, machine.device
    )
    return shell.work(
        MODULE,
        asked,
        shell.Evaluation(
            evaluate=lambda cells, final: measure.evaluate(cells, prepared, final, settings),
            entry=lambda run: measure.cell(run, prepared, settings),
            models="stages.fields.models",
            params={
                "evaluation": profile.evaluation.model_dump(mode="json"),
                "contexts": contexts.model_dump(mode="json"),
            },
        ),
        machine,
    )


def cell(run: Path, prepared: Path, settings: "Settings") -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    from stages.winds import measure

    return measure.cell(run, prepared, settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate the trained cells of a data set of winds.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
