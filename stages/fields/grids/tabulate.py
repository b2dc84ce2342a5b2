"""The experiment's tables: `python -m stages.fields.grids.tabulate EXPERIMENT PROFILE` writes
metrics.json, table.md, claims.json and the figures."""

import sys
from dataclasses import replace
from pathlib import Path

from stages import spreads
from stages.fields.grids import claims, costs
from stages.fields.grids.printed import companions
from stages.fields.grids.tables import MAIN, NOTES, results, sentence
from stages.tables.published import Printed
from stages.tables.ranked import Drawn, tabulation
from stages.tables.tabulation import Content, home_of

MODULE = "stages.fields.grids.tabulate"


def lines(content: Content, dataset: str, printed: dict[str, Printed]) -> list[str]:
    """What the set is, its table and its notes."""
    found, notes = results(content, dataset, printed)
    told = [f"{notes}.", ""] if notes else []
    return [sentence(content["about"][dataset]), "", *found.markdown(), *told]


def draw() -> Drawn:
    """What draws a set."""
    from stages.fields.grids import figures

    return figures.draw


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: times, and the spread of training."""
    return [home_of(experiment, "mini") / costs.BENCHMARKS, *spreads.files(profile)]


# in git: all but errors by how many points there are and the half of coverage: the breakdowns
KEPT = ("metrics/[!cr]*", "metrics/crps", "metrics/rmse", "metrics/coverage_90")
TABULATION = replace(
    tabulation(MAIN, NOTES, companions, lines, claims.check, draw, inputs), kept=KEPT
)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command(MODULE, argv)


if __name__ == "__main__":
    sys.exit(main())
