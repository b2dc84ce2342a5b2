"""The page of an experiment on token mixing: `python -m stages.tokens.page EXPERIMENT PROFILE`."""

import sys

from stages.page import experiment as page
from stages.page.blocks import Block, Grid, Section, pictures
from stages.page.ranked import Ranked, about
from stages.page.result import NO_BOUND, NOT_PUBLISHED
from stages.tables.table import digits, number
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
    shares,
    spent,
    tuning,
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
    "HyperMixing grows with N, attention and HyperMLP with its square. MLPMixer and gMLP end at "
    "the length that they were built for. The last column of the table tells from which length on "
    "a mixer has fewer FLOPs than attention."
)
TUNING = (
    "The best accuracy on the rows that select that is expected after so many trials of a random "
    "search (Dodge et al. 2019), all models tried at the same learning rates; right, each trial. "
    "`Trials needed`: until 95 % of the model's best accuracy are expected; `more than` all where "
    "they never are."
)
EDH = (
    "After Schwartz et al. (2020): FLOPs of the longest example, counted by formula, times the "
    "rows that train, times the trials that tuning needs. Counted, not timed: alike everywhere. "
    "Where the best trial has not learned more than what is frequent, H says nothing."
)
ROWS = (
    "What the same nets reach with fewer rows to train on, in as many steps: a mark is a seed, a "
    "line leads through their means."
)
TRIVIAL = {"label": "majority", "value": "mean"}


def rank_models(content: Content, dataset: str, printed: dict[str, Printed]) -> Ranked:
    """Each arm's main number beside the printed one, the bound, and what needs no training."""
    its, arms = content["about"][dataset], content["arms"]
    task = its["task"]
    metric, scale = MAIN[task], 1 if task == "value" else 100
    unit = "" if task == "value" else " %"
    best = its["bound"].get(metric)

    def published(arm: str) -> str:
        other = beside(printed, dataset, arm)
        return f"{other.accuracy:.1f} % ({other.source})" if other else NOT_PUBLISHED

    def trivial(arm: str) -> str:
        name = TRIVIAL.get(task)
        least = "satisfied_other" if name is None else metric
        value = number(arms[f"{dataset}/{name or arm}"]["metrics"][least], scale=scale)
        return f"{called(name) if name else 'other statements'} {value}{unit}"

    return Ranked(
        words=sentence(its),
        grid=Grid(results(content, dataset, printed), MEASURE[task].capitalize()),
        captions=CAPTIONS,
        arms=best_first(content, dataset),
        called=called,
        untrained=CALLED,
        metric=metric,
        measure=MEASURE[task],
        bound=NO_BOUND if best is None else f"{digits(scale * best)}{unit}",
        published=published,
        trivial=trivial,
        scale=scale,
        unit=unit,
    )


def cost(experiment: str, profile: str, content: Content) -> tuple[Section, ...]:
    """What a layer costs, where that was counted."""
    if "costs" not in content:
        return ()
    blocks: tuple[Block, ...] = (
        *pictures(home_of(experiment, profile), {"cost": COST}),
        Grid(costs(content), "Millions of FLOPs a layer and example"),
    )
    return (Section("What mixing costs", "cost", blocks),)


def fewer(experiment: str, profile: str, content: Content) -> tuple[Section, ...]:
    """What fewer rows leave of each mixer, where sets differ by that alone."""
    home = home_of(experiment, profile)
    found = {name: pictures(home, {f"{name}-rows": ROWS}) for name in shares(content)}
    return tuple(
        Section(f"With fewer rows of {name}", f"{name}-rows", drawn)
        for name, drawn in found.items() if drawn
    )  # fmt: skip


def tuned(experiment: str, profile: str, content: Content) -> tuple[Section, ...]:
    """What is expected of a random search, where one was made."""
    home = home_of(experiment, profile)
    return tuple(
        Section(
            f"Tuning on {dataset}",
            f"{dataset}-tuning",
            (
                *pictures(home, {f"{dataset}-tuning": TUNING}),
                Grid(tuning(content, dataset), "Accuracy expected after trials"),
                Grid(spent(content, dataset), "What a result costs: E · D · H", EDH),
            ),
        )
        for dataset in content["tuning"]
    )


def below(experiment: str, profile: str, content: Content) -> tuple[Section, ...]:
    """What stands below the data sets."""
    where = experiment, profile, content
    return (*fewer(*where), *tuned(*where), *cost(*where))


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(
        "stages.tokens.page", about(FAMILY, NOTES, companions, rank_models, below), argv
    )


if __name__ == "__main__":
    sys.exit(main())
