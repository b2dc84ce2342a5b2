"""The page of an experiment on toys: `python -m stages.toys.page EXPERIMENT PROFILE`."""

import math
import sys

from stages.page import experiment as page
from stages.page.blocks import Cells, Grid, Part, Section, lineage_block, pictures
from stages.page.lineage import UNDECODED, lineage
from stages.page.result import NO_BOUND, NOT_PUBLISHED, Result
from stages.tables.table import cells_of, datasets_of, number
from stages.tables.tabulation import Content, home_of
from stages.toys.settings import FAMILY
from stages.toys.tabulate import MAIN, arms_of, results

TRIVIAL = f"a fair coin, {math.log(2):.3f}"


def rows(experiment: str, profile: str, content: Content, dataset: str) -> list[Result]:
    """Each arm's surprise beside that of a fair coin."""
    found = []
    for arm in arms_of(content, dataset):
        told = content["arms"][f"{dataset}/{arm}"]
        found.append(
            Result(
                experiment=experiment,
                profile=profile,
                dataset=dataset,
                arm=arm,
                name=arm,
                seeds=str(told["seeds"]),
                measure="surprise, nats a toss",
                value=number(told["metrics"][MAIN], True),
                published=NOT_PUBLISHED,
                bound=NO_BOUND,
                trivial=TRIVIAL,
                metric=MAIN,
            )
        )
    return found


def section(experiment: str, profile: str, content: Content, dataset: str) -> Section:
    """What the page shows of one set."""
    svg = lineage(experiment, profile, dataset, UNDECODED)
    blocks = (
        Grid(results(content, dataset), "How surprising the tosses are"),
        *pictures(home_of(experiment, profile), {dataset: "Surprise of each model."}),
        lineage_block(dataset, f"{experiment}, {profile}", svg),
        Cells(MAIN, tuple(cells_of(content["cells"], dataset))),
    )
    return Section(dataset, dataset, blocks, dataset)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    datasets = datasets_of(content["arms"])
    return Part(
        family=FAMILY,
        results=[one for name in datasets for one in rows(experiment, profile, content, name)],
        intro=(),
        sections=tuple(section(experiment, profile, content, name) for name in datasets),
        labels={},
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command("stages.toys.page", part, argv)


if __name__ == "__main__":
    sys.exit(main())
