"""The page of the joint nowcast: `python -m stages.winds.joint.page EXPERIMENT PROFILE`."""

import sys

from stages.page import experiment as page
from stages.page.blocks import Grid
from stages.page.ranked import Ranked, about
from stages.page.result import NOT_PUBLISHED
from stages.tables.published import Printed
from stages.tables.table import fixed, number
from stages.tables.tabulation import Content
from stages.winds.joint.layout import OPTIMUM, PRIOR
from stages.winds.joint.printed import companions
from stages.winds.joint.tables import (
    BY,
    MAIN,
    NOTES,
    SCORES,
    UNTRAINED,
    breakdown,
    called,
    ranked,
    results,
    sentence,
)

FAMILY = "winds"
MODULE = "stages.winds.joint.page"
NO_BOUND = "none is known"
CAPTIONS = {
    "by_lead": "Error against lead time: each source alone, both together, and, dashed, the exact "
    "law that reads the same. Bands are 90 % intervals over test tasks.",
    "by_distance": "Error against the distance to the nearest report: far from all, what reads "
    "the grid does not lose what the aircraft alone lose.",
    "map": "One test task 30 minutes ahead, in the plane at the area's middle height: the wind of "
    "the reanalysis, the late grid, what the network and kriging of the increments say, and the "
    "network's error and spread. Dots are reports of aircraft, at all heights.",
    "learning": "Negative log-likelihood of the tasks that select, against steps.",
}


def rank_models(content: Content, dataset: str, printed: dict[str, Printed]) -> Ranked:
    """Each arm's error beside the optimum's and that of the mean wind."""

    def level(name: str) -> str:
        entry = content["arms"].get(f"{dataset}/{name}")
        if entry is None:
            return NO_BOUND
        return f"{called(name)}: {number(entry['metrics'][MAIN], form=fixed)} m/s"

    trivial = level(PRIOR)
    levels = tuple(
        (called(name), -content["arms"][f"{dataset}/{name}"]["metrics"]["log_likelihood"]["mean"])
        for name in (OPTIMUM, PRIOR)
        if f"{dataset}/{name}" in content["arms"]
    )
    return Ranked(
        words=sentence(content["about"][dataset]),
        grid=Grid(results(content, dataset), "How far the nowcasts err", ""),
        captions=CAPTIONS,
        arms=ranked(content, dataset),
        called=called,
        untrained=UNTRAINED,
        metric=MAIN,
        measure="RMSE, m/s a component",
        bound=level(OPTIMUM),
        published=lambda _: NOT_PUBLISHED,
        trivial=lambda _: trivial,
        unit=" m/s",
        more=tuple(
            Grid(breakdown(content, dataset, by, score), f"By {name}, {score.upper()}", "")
            for by, name in BY.items()
            for score in SCORES
        ),
        loss="negative log-likelihood [nats a target]",
        levels=levels,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(MODULE, about(FAMILY, NOTES, companions, rank_models), argv)


if __name__ == "__main__":
    sys.exit(main())
