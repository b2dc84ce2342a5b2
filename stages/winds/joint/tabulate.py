"""The joint nowcast's tables: `python -m stages.winds.joint.tabulate EXPERIMENT PROFILE` writes
metrics.json, table.md, claims.json and the figures."""

import sys
from pathlib import Path

from stages import spreads
from stages.tables.published import Printed
from stages.tables.ranked import Drawn, tabulation
from stages.tables.tabulation import Content
from stages.winds.joint import claims
from stages.winds.joint.printed import companions
from stages.winds.joint.tables import BY, MAIN, NOTES, SCORES, breakdown, results, sentence

MODULE = "stages.winds.joint.tabulate"


def lines(content: Content, dataset: str, printed: dict[str, Printed]) -> list[str]:
    """What the set is, its table and its breakdowns."""
    found = [sentence(content["about"][dataset]), "", *results(content, dataset).markdown()]
    for by in BY:
        for score in SCORES:
            found += breakdown(content, dataset, by, score).markdown()
    return found


def draw() -> Drawn:
    """What draws a set."""
    from stages.winds.joint import figures

    return figures.draw


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: the spread of training."""
    return spreads.files(profile)


TABULATION = tabulation(MAIN, NOTES, companions, lines, claims.check, draw, inputs)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command(MODULE, argv)


if __name__ == "__main__":
    sys.exit(main())
