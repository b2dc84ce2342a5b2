"""The page of the experiment on and off the grid: `python -m stages.fields.grids.page
EXPERIMENT PROFILE`."""

import sys

from stages.fields.grids.layout import EXACT, PRIOR
from stages.fields.grids.printed import companions
from stages.fields.grids.tables import MAIN, NOTES, UNTRAINED, called, ranked, results, sentence
from stages.fields.printed import theirs
from stages.page import experiment as page
from stages.page.blocks import Grid
from stages.page.ranked import Ranked, about
from stages.page.result import NOT_PUBLISHED
from stages.tables.published import Printed
from stages.tables.table import number
from stages.tables.tabulation import Content

FAMILY = "fields"
MODULE = "stages.fields.grids.page"
NO_BOUND = "none is known"
CAPTIONS = {
    "task": "One test task: what every model says of it, mean and spread. On lines, the band is "
    "two standard deviations; on maps, points are dots and coasts lines. A z-score is how many of "
    "its own standard deviations the present lies above a model's answer.",
    "map": "The whole globe at full resolution, by the model of least validation loss: answer, "
    "error and spread at every node, and the points that it read. Bars above tell which "
    "longitudes train, select and test.",
    "learning": "Negative log-likelihood of the tasks that select, against steps. Dashed: the "
    "bound of the test tasks, where one is known; dotted: their prior.",
}


def rank_models(content: Content, dataset: str, printed: dict[str, Printed]) -> Ranked:
    """Each arm's log-likelihood beside the printed one, the bound and the prior."""

    def level(name: str) -> str:
        entry = content["arms"].get(f"{dataset}/{name}")
        return f"{called(name)}: {number(entry['metrics'][MAIN])}" if entry else NO_BOUND

    levels = tuple(
        (called(name), -content["arms"][f"{dataset}/{name}"]["metrics"][MAIN]["mean"])
        for name in (EXACT, PRIOR)
        if f"{dataset}/{name}" in content["arms"]
    )
    trivial = level(PRIOR)
    table, notes = results(content, dataset, printed)

    def published(arm: str) -> str:
        other = printed.get(f"{dataset}/{arm.rpartition('-')[0]}")
        return theirs(other) if other else NOT_PUBLISHED

    return Ranked(
        words=sentence(content["about"][dataset]),
        grid=Grid(table, "How likely the targets are", f"{notes}." if notes else ""),
        captions=CAPTIONS,
        arms=ranked(content, dataset),
        called=called,
        untrained=UNTRAINED,
        metric=MAIN,
        measure="log-likelihood, nats a target",
        bound=level(EXACT),
        published=published,
        trivial=lambda _: trivial,
        loss="negative log-likelihood [nats a target]",
        levels=levels,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(MODULE, about(FAMILY, NOTES, companions, rank_models), argv)


if __name__ == "__main__":
    sys.exit(main())
