"""The page of an experiment on token mixing: `python -m stages.tokens.page EXPERIMENT PROFILE`."""

import sys

from stages.page import experiment as page
from stages.page.blocks import Block, Cells, Grid, Part, Section, Words, lineage_block, pictures
from stages.page.lineage import UNDECODED, lineage
from stages.page.result import NO_BOUND, NOT_PUBLISHED, Result
from stages.tables.table import cells_of, datasets_of, digits, number
from stages.tables.tabulation import Content, home_of
from stages.tokens.printed import Printed, beside, companions
from stages.tokens.settings import FAMILY
from stages.tokens.tables import (
    CALLED,
    MAIN,
    MEASURE,
    NOTES,
    best_first,
    called,
    costs,
    results,
    sentence,
)

CAPTIONS = {
    "maps": "Pseudo-attention of one sequence: how much the answer at each place (down) moves with "
    "the input at each place (across), each row scaled by its largest; above, the sequence, its "
    "triangles blue, its boxes red. An answer in a shape that looks at the other shape of its kind "
    "shows off the diagonal.",
    "gallery": "Pictures drawn for statements of rows that test: met statements are green with a "
    "tick, unmet ones red with a cross.",
}
COST = (
    "What a layer of mixing costs by formula, at the thesis' sizes (H = 256, F = 512): "
    "HyperMixing grows with N, attention with its square. MLPMixer and gMLP end at the length that "
    "they were built for."
)
TRIVIAL = {"label": "majority", "value": "mean"}


def rows(
    experiment: str, profile: str, content: Content, dataset: str, printed: dict[str, Printed]
) -> list[Result]:
    """Each arm's main number beside the printed one, the bound, and what needs no training."""
    about, arms = content["about"][dataset], content["arms"]
    task = about["task"]
    metric, scale = MAIN[task], 1 if task == "value" else 100
    unit = "" if task == "value" else " %"
    best = about["bound"].get(metric)
    bound = NO_BOUND if best is None else f"{digits(scale * best)}{unit}"
    found = []
    for arm in best_first(content, dataset):
        told, other = arms[f"{dataset}/{arm}"], beside(printed, dataset, arm)
        if task in TRIVIAL:
            least = arms[f"{dataset}/{TRIVIAL[task]}"]["metrics"][metric]
            trivial = f"{called(TRIVIAL[task])} {number(least, scale=scale)}{unit}"
        else:
            least = told["metrics"]["satisfied_other"]
            trivial = f"other statements {number(least, scale=scale)}{unit}"
        theirs = f"{other.accuracy:.1f} % ({other.source})" if other else NOT_PUBLISHED
        found.append(
            Result(
                experiment=experiment,
                profile=profile,
                dataset=dataset,
                arm=arm,
                name=called(arm),
                seeds=str(told["seeds"]) if arm not in CALLED else "–",
                measure=MEASURE[task],
                value=number(told["metrics"][metric], True, scale) + unit,
                published=theirs,
                bound=bound,
                trivial=trivial,
                metric=metric,
            )
        )
    return found


def section(
    experiment: str, profile: str, content: Content, dataset: str, printed: dict[str, Printed]
) -> Section:
    """What the page shows of one set."""
    home, about = home_of(experiment, profile), content["about"][dataset]
    shown = {f"{dataset}-{name}": words for name, words in CAPTIONS.items()}
    svg = lineage(experiment, profile, dataset, UNDECODED)
    blocks: tuple[Block, ...] = (
        Words(sentence(about)),
        Grid(results(content, dataset, printed), MEASURE[about["task"]].capitalize()),
        *pictures(home, shown),
        lineage_block(dataset, f"{experiment}, {profile}", svg),
        Cells(MAIN[about["task"]], tuple(cells_of(content["cells"], dataset))),
    )
    return Section(dataset, dataset, blocks, dataset)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    printed, datasets = companions(experiment), datasets_of(content["arms"])
    labels = {
        name: {arm: called(arm) for arm in best_first(content, name) if called(arm) != arm}
        for name in datasets
    }
    sections = [section(experiment, profile, content, name, printed) for name in datasets]
    if "costs" in content:
        blocks: tuple[Block, ...] = (
            *pictures(home_of(experiment, profile), {"cost": COST}),
            Grid(costs(content), "Millions of FLOPs a layer and example"),
        )
        sections.append(Section("What mixing costs", "cost", blocks))
    return Part(
        family=FAMILY,
        results=[
            one for name in datasets for one in rows(experiment, profile, content, name, printed)
        ],
        intro=(Words(NOTES, quiet=True),),
        sections=tuple(sections),
        labels=labels,
        wraps=True,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command("stages.tokens.page", part, argv)


if __name__ == "__main__":
    sys.exit(main())
