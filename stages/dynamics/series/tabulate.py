"""The tables of series: `python -m stages.dynamics.series.tabulate EXPERIMENT PROFILE` writes
metrics.json, table.md, claims.json and the figures."""

import sys
from pathlib import Path

from stages import spreads
from stages.dynamics.printed import Printed, companions
from stages.dynamics.series import claims
from stages.dynamics.series.tables import MAIN, NOTES, results, sentence
from stages.tables.ranked import Drawn, tabulation
from stages.tables.tabulation import Content

MODULE = "stages.dynamics.series.tabulate"


def lines(content: Content, dataset: str, printed: dict[str, Printed]) -> list[str]:
    """What the set is, and its table."""
    table = results(content, dataset, printed)
    return [sentence(content["about"][dataset]), "", *table.markdown()]


def draw() -> Drawn:
    """What draws a set."""
    from stages.dynamics.series import figures

    return figures.draw


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: the spread of training, where it was measured."""
    own = spreads.place(experiment, profile)
    return [own] if own.exists() else []


TABULATION = tabulation(MAIN, NOTES, companions, lines, claims.check, draw, inputs)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command(MODULE, argv)


if __name__ == "__main__":
    sys.exit(main())
