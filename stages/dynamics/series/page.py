"""The page of an experiment on series: `python -m stages.dynamics.series.page EXPERIMENT
PROFILE`."""

import sys

from stages.dynamics.printed import Printed, beside, companions
from stages.dynamics.series.tables import CALLED, MAIN, NOTES, called, ranked, results, sentence
from stages.dynamics.settings import FAMILY
from stages.page import experiment as page
from stages.page.blocks import Grid
from stages.page.ranked import Ranked, about
from stages.page.result import NOT_PUBLISHED
from stages.tables.table import digits, number
from stages.tables.tabulation import Content

CAPTIONS = {
    "curves": "NRMSE against time, the median over starts, of each class the arm that was valid "
    "for longest on what selects; rivals dashed. Dotted: the threshold of valid times.",
    "forecasts": "The first start: the truth and forecasts of up to four columns, in standard "
    "deviations.",
}


def rank_models(content: Content, dataset: str, printed: dict[str, Printed]) -> Ranked:
    """Each arm's valid time beside the printed one and persistence."""
    trivial = number(content["arms"][f"{dataset}/persistence"]["metrics"][MAIN])

    def published(arm: str) -> str:
        other = beside(printed, dataset, arm)
        return f"{digits(other.document)} ({other.table})" if other else NOT_PUBLISHED

    return Ranked(
        words=sentence(content["about"][dataset]),
        grid=Grid(results(content, dataset, printed), "How long forecasts are valid"),
        captions=CAPTIONS,
        arms=ranked(content, dataset),
        called=called,
        untrained=CALLED,
        metric=MAIN,
        measure="valid time [days]",
        bound="–",
        published=published,
        trivial=lambda _: f"persistence {trivial}",
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(
        "stages.dynamics.series.page", about(FAMILY, NOTES, companions, rank_models), argv
    )


if __name__ == "__main__":
    sys.exit(main())
