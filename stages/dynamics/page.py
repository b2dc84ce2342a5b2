"""The page of an experiment on dynamical systems: `python -m stages.dynamics.page EXPERIMENT
PROFILE`."""

import sys

from stages.dynamics.printed import Printed, beside, companions
from stages.dynamics.settings import FAMILY
from stages.dynamics.tables import CALLED, MAIN, NOTES, called, partly, ranked, results, sentence
from stages.page import experiment as page
from stages.page.blocks import Grid
from stages.page.ranked import Ranked, about
from stages.page.result import NO_BOUND, NOT_PUBLISHED
from stages.tables.table import digits, number
from stages.tables.tabulation import Content

CAPTIONS = {
    "curves": "NRMSE against time, the median over starts of the best arm of each class; shaded, "
    "from 5 to 95 % of the starts, of the transformer and the reservoirs. Dotted: the threshold of "
    "valid times.",
    "trials": "All trials of the searches that no pruner ended: valid times on the test part by "
    "class, as violins with their medians and ends (document R, figures 9 and 10), and against "
    "those on the part that trains.",
    "forecasts": "The first start: the truth, and what the best RHN, the best transformer and the "
    "parallel reservoirs say, in standard deviations.",
}


def rank_models(content: Content, dataset: str, printed: dict[str, Printed]) -> Ranked:
    """Each arm's valid time beside the printed one, persistence, and what no forecast exceeds: the
    solver's own of a system that is observed in part; one that is observed whole is its solver's
    orbit, of which a learned map may come nearer than half the step does."""
    solver, trivial = (
        f"{called(name)} {number(content['arms'][f'{dataset}/{name}']['metrics'][MAIN])}"
        for name in ("solver", "persistence")
    )

    def published(arm: str) -> str:
        other = beside(printed, dataset, arm)
        return f"{digits(other.lyapunov)} ({other.where})" if other else NOT_PUBLISHED

    return Ranked(
        words=sentence(content["about"][dataset]),
        grid=Grid(results(content, dataset, printed), "How long forecasts are valid"),
        captions=CAPTIONS,
        arms=ranked(content, dataset),
        called=called,
        untrained=CALLED,
        metric=MAIN,
        measure="valid time, Lyapunov times",
        bound=solver if partly(content["about"][dataset]) else NO_BOUND,
        published=published,
        trivial=lambda _: trivial,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command("stages.dynamics.page", about(FAMILY, NOTES, companions, rank_models), argv)


if __name__ == "__main__":
    sys.exit(main())
