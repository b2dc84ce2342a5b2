"""`python -m stages.winds.retraining intake|judge`: take captures in from the drop folder, or judge
the challenger against the champion.

Both work on the profile and data set of `retraining` in params.yaml. intake: exit 0 whether
something was taken in or nothing, 2 for a mistake in the call or in params.yaml, 75 when another
intake runs. What it did stands in .work/retraining/intake.json.
"""

import argparse
import sys
from pathlib import Path

from stages import params
from stages.errors import reported


def intake(parameters: params.Params, drop: str | None = None) -> None:
    """Take in what was dropped and print what became of it."""
    from stages.winds.retraining import intake as work

    def judge(path: Path, name: str) -> work.Verdict:
        from stages.winds.retraining import (
            inspection,  # Great Expectations takes seconds to import, and most runs find nothing
        )

        return inspection.inspect(path, name, parameters.decode)

    asked = parameters.retraining
    print(
        work.render(
            work.intake(parameters, asked.profile, asked.dataset, Path(drop or asked.drop), judge)
        )
    )


def judge(parameters: params.Params) -> None:
    """Promote the challenger or refuse it, once for each state of the raw captures."""
    from stages.winds.retraining import judge as work

    told = work.run(parameters)
    before = "" if told["due"] else ", judged before"
    print(
        "\n  ".join(
            [f"{told['verdict']}: entry {told['number']} of the ledger{before}", *told["reasons"]]
        )
    )


def main(arguments: list[str] | None = None) -> int:
    """Parse, load the parameters, run the step; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.winds.retraining", description=__doc__.split("\n\n")[0]
    )
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for step in (intake, judge):
        steps.add_parser(step.__name__, help=step.__doc__.split("\n\n")[0]).set_defaults(run=step)
    steps.choices["intake"].add_argument(
        "--drop", metavar="FOLDER", help="look there, instead of params.yaml's retraining.drop"
    )
    asked = parser.parse_args(arguments)
    return reported(
        lambda: asked.run(params.load(), *([asked.drop] if asked.step == "intake" else []))
    )


if __name__ == "__main__":
    sys.exit(main())
