"""The page of an experiment on dynamical systems: `python -m stages.dynamics.page EXPERIMENT
PROFILE`."""

import sys

from stages.dynamics.printed import Printed, beside, companions
from stages.dynamics.settings import FAMILY
from stages.dynamics.tables import CALLED, MAIN, NOTES, called, ranked, results, sentence
from stages.page import experiment as page
from stages.page.blocks import Block, Cells, Grid, Part, Section, Words, lineage_block, pictures
from stages.page.lineage import UNDECODED, lineage
from stages.page.result import NOT_PUBLISHED, Result
from stages.tables.table import cells_of, datasets_of, digits, number
from stages.tables.tabulation import Content, home_of

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


def rows(
    experiment: str, profile: str, content: Content, dataset: str, printed: dict[str, Printed]
) -> list[Result]:
    """Each arm's valid time beside the printed one, the ceiling and persistence."""
    arms, found = content["arms"], []
    ceiling, trivial = (
        f"{called(name)} {number(arms[f'{dataset}/{name}']['metrics'][MAIN])}"
        for name in ("solver", "persistence")
    )
    for arm in ranked(content, dataset):
        told, other = arms[f"{dataset}/{arm}"], beside(printed, dataset, arm)
        theirs = f"{digits(other.lyapunov)} ({other.where})" if other else NOT_PUBLISHED
        found.append(
            Result(
                experiment=experiment,
                profile=profile,
                dataset=dataset,
                arm=arm,
                name=called(arm),
                seeds=str(told["seeds"]) if arm not in CALLED else "–",
                measure="valid time, Lyapunov times",
                value=number(told["metrics"][MAIN], True),
                published=theirs,
                bound=ceiling,
                trivial=trivial,
                metric=MAIN,
            )
        )
    return found


def section(
    experiment: str, profile: str, content: Content, dataset: str, printed: dict[str, Printed]
) -> Section:
    """What the page shows of one system."""
    home = home_of(experiment, profile)
    shown = {f"{dataset}-{name}": words for name, words in CAPTIONS.items()}
    shown = {one: words for one, words in shown.items() if (home / f"figures/{one}.png").exists()}
    svg = lineage(experiment, profile, dataset, UNDECODED)
    blocks: tuple[Block, ...] = (
        Words(sentence(content["about"][dataset])),
        Grid(results(content, dataset, printed), "How long forecasts are valid"),
        *pictures(home, shown),
        lineage_block(dataset, f"{experiment}, {profile}", svg),
        Cells(MAIN, tuple(cells_of(content["cells"], dataset))),
    )
    return Section(dataset, dataset, blocks, dataset)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    printed, datasets = companions(experiment), datasets_of(content["arms"])
    labels = {
        name: {arm: called(arm) for arm in ranked(content, name) if called(arm) != arm}
        for name in datasets
    }
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
    return page.command("stages.dynamics.page", part, argv)


if __name__ == "__main__":
    sys.exit(main())
