"""`python -m stages.sequences.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a data
set of sequences, measured.

Reads reports/EXPERIMENT/PROFILE/runs/DATASET and data/PROFILE/prepared/DATASET; writes
metrics.json, passes.json and samples.safetensors into reports/EXPERIMENT/PROFILE/evaluated/DATASET,
and a record. With `--cell CELL [--out FILE]` one cell's entry of
metrics.json is measured anew, a companion's (uniform, marginals, persistence, constant_rate) too,
and written as strict JSON to FILE or printed; results and record stay as they are.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.runner import Asked, Work, known
from stages.scores import shell

if TYPE_CHECKING:
    from stages.sequences.evaluation.data import Settings

MODULE = "stages.sequences.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a data set that the profile does not
    learn."""
    profile, dataset, prepared = asked.profile, asked["dataset"], asked.data("prepared")
    where = f"profiles.{profile.profile}.learning_orders"
    known("data set", dataset, profile.learning_orders, where)
    from stages.sequences.evaluation import measure
    from stages.sequences.evaluation.data import Settings

    machine = shell.Machine.of(asked)
    settings = Settings(profile.orders, machine.seed, machine.threads, machine.device)
    return shell.work(
        MODULE,
        asked,
        shell.Evaluation(
            evaluate=lambda cells, final: measure.evaluate(cells, prepared, final, settings),
            entry=lambda run: measure.cell(run, prepared, settings),
            companions=lambda: measure.untrained(prepared, settings),
            models="stages.sequences.models",
            params={"orders": profile.orders.model_dump(mode="json")},
        ),
        machine,
    )


def cell(run: Path, prepared: Path, settings: "Settings") -> dict[Any, Any]:
    """One cell's entry of metrics.json, measured anew from its checkpoint."""
    from stages.sequences.evaluation import measure

    return measure.cell(run, prepared, settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate the trained cells of a data set of sequences.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
