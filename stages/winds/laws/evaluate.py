"""`python -m stages.winds.laws.evaluate EXPERIMENT PROFILE DATASET`: every trained cell of a
data set of winds, measured as in stages/winds/evaluate.py and as a law (measure.py). `--cell CELL`
measures one anew."""

import sys
from collections.abc import Sequence

from stages.runner import Asked, Work, known
from stages.scores import shell

MODULE = "stages.winds.laws.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a data set that is none of the profile's
    winds."""
    profile, prepared = asked.profile, asked.data("prepared")
    known("data set", asked["dataset"], profile.wind, f"profiles.{profile.profile}.wind")
    from stages.winds.evaluation_data import Settings  # with torch, which takes a second
    from stages.winds.laws import measure
    from stages.winds.laws.levels import Truth

    machine, contexts = shell.Machine.of(asked), asked.parameters.contexts
    evaluation = profile.evaluation
    settings = Settings(
        evaluation.leads_min, machine.seed, contexts, machine.threads, machine.device
    )
    plan = asked.parameters.datasets[asked["dataset"]].simulate
    truth = Truth.of(plan)
    return shell.work(
        MODULE,
        asked,
        shell.Evaluation(
            evaluate=lambda cells, final: measure.evaluate(cells, prepared, final, settings, truth),
            entry=lambda run: measure.cell(run, prepared, settings, truth),
            models="stages.fields.models",
            params={
                "evaluation": evaluation.model_dump(mode="json"),
                "contexts": contexts.model_dump(mode="json"),
                "sky": None if plan is None else plan.model_dump(mode="json"),
            },
        ),
        machine,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate neural processes on winds.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
