"""`python -m stages.fields.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a data set
of sets, measured.

Reads reports/EXPERIMENT/PROFILE/runs/DATASET and data/PROFILE/prepared/DATASET; writes metrics.json
and predictions.safetensors into reports/EXPERIMENT/PROFILE/evaluated/DATASET, and a record.
With `--cell CELL [--out FILE]` one cell's entry of metrics.json is
measured anew, a companion's (mean, nearest) too, and written as strict JSON to FILE or printed;
results and record stay as they are.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.runner import Asked, Work, known
from stages.scores import shell

if TYPE_CHECKING:
    from stages.fields.evaluation_data import Settings

MODULE = "stages.fields.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a data set that the profile does not
    learn."""
    profile, dataset = asked.profile, asked["dataset"]
    known("data set", dataset, profile.learning, f"profiles.{profile.profile}.learning")
    from stages.fields import measure
    from stages.fields.evaluation_data import Settings

    machine, prepared = shell.Machine.of(asked), asked.data("prepared")
    settings = Settings.of(asked.parameters, asked["experiment"], profile.profile, dataset, machine)
    return shell.work(
        MODULE,
        asked,
        shell.Evaluation(
            evaluate=lambda cells, final: measure.evaluate(cells, prepared, final, settings),
            entry=lambda run: measure.cell(run, prepared, settings),
            companions=lambda: measure.untrained(prepared, settings),
            models="stages.fields.models",
            params={
                "evaluation": profile.evaluation.model_dump(mode="json"),
                "batch": settings.batch,
                "probed": settings.probed,
            },
        ),
        machine,
    )


def cell(run: Path, prepared: Path, settings: "Settings") -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    from stages.fields import measure

    return measure.cell(run, prepared, settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate the trained cells of a data set of sets.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
