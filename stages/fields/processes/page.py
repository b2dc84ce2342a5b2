"""The page of the experiment on neural processes: `python -m stages.fields.processes.page
EXPERIMENT PROFILE`."""

import sys

from stages.fields.printed import theirs
from stages.fields.processes.layout import EXACT, PRIOR
from stages.fields.processes.printed import companions
from stages.fields.processes.tables import MAIN, NOTES, called, memory, ranked, results, sentence
from stages.page import experiment as page
from stages.page.blocks import Block, Cells, Grid, Part, Section, Words, lineage_block, pictures
from stages.page.lineage import UNDECODED, lineage
from stages.page.result import NOT_PUBLISHED, Result
from stages.tables.published import Printed
from stages.tables.table import cells_of, datasets_of, number
from stages.tables.tabulation import Content, home_of

FAMILY = "fields"
MODULE = "stages.fields.processes.page"
CAPTIONS = {
    "bands": "One test task, the best model first: context points, each model's mean and its band "
    "of two standard deviations; dashed, the band of the exact law.",
    "shifted": "The same task where models trained (left), and shifted out of it (right).",
    "functions": "Functions drawn of the same task. The latent process draws a vector a function; "
    "the others are told each value that they drew before the next is asked, in a random order.",
    "learning": "Negative log-likelihood of the tasks that select, against steps. Dashed: the "
    "bound of the test tasks; dotted: their prior.",
}


def rows(
    experiment: str, profile: str, content: Content, dataset: str, printed: dict[str, Printed]
) -> list[Result]:
    """Each arm's log-likelihood beside the printed one, the bound and the prior."""
    arms, found = content["arms"], []
    bound, trivial = (
        f"{called(name)}: {number(arms[f'{dataset}/{name}']['metrics'][MAIN])}"
        for name in (EXACT, PRIOR)
    )
    for arm in ranked(content, dataset):
        told, other = arms[f"{dataset}/{arm}"], printed.get(f"{dataset}/{arm.rpartition('-')[0]}")
        found.append(
            Result(
                experiment=experiment,
                profile=profile,
                dataset=dataset,
                arm=arm,
                name=called(arm),
                seeds=str(told["seeds"]) if arm not in (EXACT, PRIOR) else "–",
                measure="log-likelihood, nats a target",
                value=number(told["metrics"][MAIN], True),
                published=theirs(other) if other else NOT_PUBLISHED,
                bound=bound,
                trivial=trivial,
                metric=MAIN,
            )
        )
    return found


def section(
    experiment: str, profile: str, content: Content, dataset: str, printed: dict[str, Printed]
) -> Section:
    """What the page shows of one set of functions."""
    home = home_of(experiment, profile)
    shown = {f"{dataset}-{name}": words for name, words in CAPTIONS.items()}
    svg = lineage(experiment, profile, dataset, UNDECODED)
    found, notes = results(content, dataset, printed)
    held = memory(content, dataset)
    counted = (Grid(held, "Memory of an answer, by context points / targets"),) if held else ()
    blocks: tuple[Block, ...] = (
        Words(sentence(content["about"][dataset])),
        Grid(found, "How likely the targets are", f"{notes}." if notes else ""),
        *pictures(home, shown),
        *counted,
        lineage_block(dataset, f"{experiment}, {profile}", svg),
        Cells(MAIN, tuple(cells_of(content["cells"], dataset))),
    )
    return Section(dataset, dataset, blocks, dataset)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What is told of the experiment in a profile; `content` is its metrics.json."""
    printed, datasets = companions(experiment), datasets_of(content["arms"])
    labels = {name: {arm: called(arm) for arm in ranked(content, name)} for name in datasets}
    return Part(
        family=FAMILY,
        results=[
            one for name in datasets for one in rows(experiment, profile, content, name, printed)
        ],
        intro=(Words(NOTES, quiet=True),),
        sections=tuple(section(experiment, profile, content, name, printed) for name in datasets),
        labels=labels,
        wraps=True,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(MODULE, part, argv)


if __name__ == "__main__":
    sys.exit(main())
