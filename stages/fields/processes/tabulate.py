"""The experiment's tables: `python -m stages.fields.processes.tabulate EXPERIMENT PROFILE` writes
metrics.json, table.md, claims.json and the figures."""

import sys
from dataclasses import replace
from pathlib import Path

from stages import spreads
from stages.fields.processes import claims
from stages.fields.processes.many import CAPTION, counted
from stages.fields.processes.printed import Companions, companions, many_points
from stages.fields.processes.tables import MAIN, NOTES, memory, results, sentence
from stages.tables.ranked import Drawn, tabulation
from stages.tables.tabulation import Content

MODULE = "stages.fields.processes.tabulate"


def lines(content: Content, dataset: str, printed: Companions) -> list[str]:
    """What the set is, its tables and their notes."""
    found, notes = results(content, dataset, printed.losses)
    told = [sentence(content["about"][dataset]), "", *found.markdown()]
    told += [f"{notes}.", ""] if notes else []
    held = memory(content, dataset)
    if held:
        told += ["Memory of an answer, by context points / targets:", "", *held.markdown()]
    if (many := many_points(content, dataset, printed)) is not None:
        told += [f"Memory of an answer to many points, {CAPTION}", "", *many.markdown()]
    return told


def draw() -> Drawn:
    """What draws a set."""
    from stages.fields.processes import figures

    return figures.draw


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: the spread of training, counts of memory."""
    return [*spreads.files(profile), *filter(Path.exists, [counted(experiment)])]


KEPT = (  # in git; what else was measured is in the breakdowns
    "metrics/log_likelihood",
    "metrics/gap",
    "metrics/lost_shifted",
    "metrics/lost_turned",
    "metrics/crps",
    "metrics/coverage_90",
    "metrics/memory_100_1000",
)
TABULATION = replace(
    tabulation(MAIN, NOTES, companions, lines, claims.check, draw, inputs), kept=KEPT
)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command(MODULE, argv)


if __name__ == "__main__":
    sys.exit(main())
