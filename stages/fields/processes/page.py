"""The page of the experiment on neural processes: `python -m stages.fields.processes.page
EXPERIMENT PROFILE`."""

import sys

from stages.fields.printed import theirs
from stages.fields.processes.layout import EXACT, PRIOR
from stages.fields.processes.many import CAPTION
from stages.fields.processes.printed import Companions, companions, many_points
from stages.fields.processes.tables import MAIN, NOTES, called, memory, ranked, results, sentence
from stages.page import experiment as page
from stages.page.blocks import Grid
from stages.page.ranked import Ranked, about
from stages.page.result import NOT_PUBLISHED
from stages.tables.table import number
from stages.tables.tabulation import Content

FAMILY = "fields"
MODULE = "stages.fields.processes.page"
CAPTIONS = {
    "bands": "One test task, the best model first: context points, each model's mean and its band "
    "of two standard deviations; dashed, the band of the exact law.",
    "shifted": "The same task where models trained (left), and shifted out of it (right).",
    "functions": "Functions drawn of the same task. The latent process draws a vector a function; "
    "the others are told each value that they drew before the next is asked, in a random order.",
    "plane": "One test task of the plane: the exact law, then each kind of model, the best first. "
    "Above, means, with the context's points in the colour of their values; below, standard "
    "deviations, with the points in white. Contexts lie within 2 of the middle.",
    "learning": "Negative log-likelihood of the tasks that select, against steps. Dashed: the "
    "bound of the test tasks; dotted: their prior.",
}


def rank_models(content: Content, dataset: str, printed: Companions) -> Ranked:
    """Each arm's log-likelihood beside the printed one, the bound and the prior."""
    bound, trivial = (
        f"{called(name)}: {number(content['arms'][f'{dataset}/{name}']['metrics'][MAIN])}"
        for name in (EXACT, PRIOR)
    )
    levels = tuple(
        (called(name), -content["arms"][f"{dataset}/{name}"]["metrics"][MAIN]["mean"])
        for name in (EXACT, PRIOR)
    )
    table, notes = results(content, dataset, printed.losses)
    grids = {
        "Memory of an answer, by context points / targets": (memory(content, dataset), ""),
        "Memory of an answer to many points": (
            many_points(content, dataset, printed),
            f"{CAPTION[0].upper()}{CAPTION[1:]}",
        ),
    }

    def published(arm: str) -> str:
        other = printed.losses.get(f"{dataset}/{arm.rpartition('-')[0]}")
        return theirs(other) if other else NOT_PUBLISHED

    return Ranked(
        words=sentence(content["about"][dataset]),
        grid=Grid(table, "How likely the targets are", f"{notes}." if notes else ""),
        captions=CAPTIONS,
        arms=ranked(content, dataset),
        called=called,
        untrained=(EXACT, PRIOR),
        metric=MAIN,
        measure="log-likelihood, nats a target",
        bound=bound,
        published=published,
        trivial=lambda _: trivial,
        loss="negative log-likelihood [nats a target]",
        levels=levels,
        more=tuple(Grid(table, title, words) for title, (table, words) in grids.items() if table),
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(MODULE, about(FAMILY, NOTES, companions, rank_models), argv)


if __name__ == "__main__":
    sys.exit(main())
