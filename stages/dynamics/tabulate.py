"""The family's tables: `python -m stages.dynamics.tabulate EXPERIMENT PROFILE` writes
metrics.json, table.md, claims.json and the figures."""

import sys
from pathlib import Path

from stages import spreads
from stages.dynamics import claims
from stages.dynamics.printed import Printed, companions
from stages.dynamics.tables import MAIN, NOTES, results, sentence
from stages.tables.ranked import Drawn, tabulation
from stages.tables.tabulation import Content, home_of

MODULE = "stages.dynamics.tabulate"


def lines(content: Content, dataset: str, printed: dict[str, Printed]) -> list[str]:
    """What the set is, and its table."""
    table = results(content, dataset, printed)
    return [sentence(content["about"][dataset]), "", *table.markdown()]


def draw() -> Drawn:
    """What draws a set."""
    from stages.dynamics import figures

    return figures.draw


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: searches, times, and the spread of training."""
    home, own = home_of(experiment, profile), spreads.place(experiment, profile)
    return [home / "sweeps", home / "benchmarks.json", own]


TABULATION = tabulation(MAIN, NOTES, companions, lines, claims.check, draw, inputs)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command(MODULE, argv)


if __name__ == "__main__":
    sys.exit(main())
