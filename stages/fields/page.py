"""The page of an experiment on sets of points: `python -m stages.fields.page EXPERIMENT
PROFILE`."""

import sys
from typing import Any

from stages.fields import costs, tables
from stages.fields import results as told
from stages.fields.claims import overlapping
from stages.fields.printed import Companions, document, sets, theirs
from stages.figures.colours import colour
from stages.page import charts
from stages.page import experiment as page
from stages.page.blocks import (
    Block,
    Cells,
    Grid,
    Part,
    Section,
    Words,
    grids,
    lineage_block,
    pictures,
)
from stages.page.lineage import UNDECODED, lineage
from stages.page.result import NO_BOUND, NOT_PUBLISHED, Result
from stages.tables.table import cells_of, datasets_of, label, number
from stages.tables.tabulation import home_of

FAMILY = "fields"
FIGURES = {
    "learning": "Left: validation loss against steps, the mean over seeds with their range "
    "(dashed: another arm of the model in that colour). Right: MSE of the test sets with 90 % "
    "intervals; stars are printed values, of the document's validation sets.",
    "example": "One test set: what was given, what was to be found, and what two models say.",
    "planted": "One planted error: how many latents its gradient touches (dashed: fewer count as "
    "one; dotted: more count as many), and how many updates undo it.",
    "sensitivity": "Above (or left): MSE of the test sets with 90 % intervals by layers, hidden "
    "dimension or GeoFNO's width, each size at its best learning rate; beside each point the count "
    "of parameters. Below (or right): the least validation loss against the learning rate, a line "
    "a size.",
    "overlap": "MSE against the share of the context that comes from the targets' region.",
}
COPYING = (
    "Handing on the context's own values, by the frequency of their function; 'random values' "
    "follow none."
)
COSTS = (
    "A training step by the context's size: time and peak memory, with the exponents fitted to the "
    "larger sizes (1: linear, 2: quadratic). Dotted: single layers of attention."
)
Content = dict[str, Any]


def results(experiment: str, profile: str, content: Content) -> list[Result]:
    """MSE over targets and components: beside the printed one and the mean of the training
    targets."""
    arms, printed, found = content["arms"], sets(experiment), []
    for dataset in datasets_of(arms):
        mean = arms.get(f"{dataset}/{tables.MEAN}", {}).get("metrics", {}).get(tables.MSE)
        copied = dataset.startswith(("copies", "sines"))
        for name in tables.ordered(arms, dataset):
            arm, one = name.split("/")[1], arms[name]
            other = tables.beside(printed, name).get(tables.MSE)
            mse = one["metrics"][tables.MSE]
            found.append(
                Result(
                    experiment=experiment,
                    profile=profile,
                    dataset=dataset,
                    arm=arm,
                    name=label(arm),
                    seeds=str(one["seeds"]),
                    measure="MSE" + ("" if mse["unit"] == "1" else f" [{mse['unit']}]"),
                    value=number(mse, True),
                    published=theirs(other) if other else regional(printed, dataset, arm),
                    bound="0: targets are points of the context" if copied else NO_BOUND,
                    trivial=f"mean {number(mean)} ({tables.of_mean(arms, name)} % of it)"
                    if mean
                    else "the mean was not run",
                    metric=tables.MSE,
                )
            )
    return found


def regional(printed: Companions, dataset: str, arm: str) -> str:
    """What thesis table C.8 prints for a model of an overlap, an error that it does not name; of
    all else nothing is published."""
    problem, share = overlapping(dataset)
    asked = problem and arm.startswith("msa")
    row = printed.get((document(problem), f"overlap-{share:03}"), {}) if asked else {}
    return f"{theirs(row['error'])}, an error not named" if "error" in row else NOT_PUBLISHED


def timed(experiment: str, profile: str) -> tuple[Section, ...]:
    """Time and memory in one profile; nothing of an experiment that is not timed."""
    times = told.read_times(experiment, profile)
    if times is None:
        return ()
    found = [
        Grid(table, title, folded=place > 1)
        for place, (title, table) in enumerate(costs.tables(times))
    ]
    blocks: tuple[Block, ...] = (
        Words(costs.measured_on(times, profile).replace("`", "")),
        *pictures(home_of(experiment, profile), {"costs": COSTS}),
        *found,
        *((Words(costs.YARDSTICK, quiet=True),) if times else ()),
    )
    title = "Time and memory against the context's size (thesis, figure C.4)"
    return (Section(title, "costs", blocks),)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    home, arms, cells = home_of(experiment, profile), content["arms"], content["cells"]
    sections = []
    for one in told.sections(experiment, profile, arms, cells):
        name = one.dataset
        drawn = {f"{name}-{figure}": words for figure, words in FIGURES.items()}
        svg = lineage(experiment, profile, name, UNDECODED)
        ranked = [arm.split("/")[1] for arm in tables.ordered(arms, name)]
        learned = charts.learning(cells, name, ranked, label, colour)
        blocks: tuple[Block, ...] = (
            Words(f"{one.n:,} test values."),
            *grids(one.tables),
            *charts.over(pictures(home, drawn), {f"{name}-learning": learned}),
            lineage_block(name, f"{experiment}, {profile}", svg),
            Cells(tables.MSE, tuple(cells_of(cells, name))),
        )
        sections.append(Section(name, name, blocks, name))
    labels: dict[str, dict[str, str]] = {dataset: {} for dataset in datasets_of(arms)}
    for dataset, arm in (name.split("/") for name in arms):
        labels[dataset] |= {arm: label(arm)} if label(arm) != arm else {}
    return Part(
        family=FAMILY,
        results=results(experiment, profile, content),
        intro=(
            Words(told.LEGEND, quiet=True),
            *grids(told.across(experiment, arms)),
            *pictures(home, {"copying": COPYING}),
        ),
        sections=(*sections, *timed(experiment, profile)),
        labels=labels,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command("stages.fields.page", part, argv)


if __name__ == "__main__":
    sys.exit(main())
