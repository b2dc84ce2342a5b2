"""The page of the neighbour search: `python -m stages.neighbours.experiment.page EXPERIMENT
PROFILE`."""

import sys
from typing import Any

from stages.neighbours.experiment import results as told
from stages.neighbours.experiment import tables
from stages.neighbours.experiment.tables import SearchResults
from stages.page import experiment as page
from stages.page.blocks import Block, Grid, Link, Part, Section, Words, lineage_block, pictures
from stages.page.lineage import lineage
from stages.page.result import NOT_PUBLISHED, Result
from stages.tables.tabulation import home_of

FAMILY = "neighbours"
SURFACE = "TNN by points a segment (K) and segments a fetch (F): the thesis' figure 1.4."
SPEED = (
    "Time a query over the yardstick's, side by side in one run; the black line is the yardstick, "
    "a short bar the goal of the method in its colour. Filled: isotropic scale; hollow: (1, 1, 4, "
    "9)."
)
BOUND = (
    "The counterexample: the run A–B, the query (star), and how near the printed bound (red) and "
    "the mended one (green) say that the run can be."
)
LISTED = (
    "The list of results holds the most neighbours asked for; the rest stands in the tables here."
)
Content = dict[str, Any]


def results(experiment: str, profile: str, found: SearchResults) -> list[Result]:
    """Comparisons a query at the most neighbours asked for: beside the printed count, the fewest
    that can be (the answers themselves) and linear search."""
    rows = []
    for dataset in found.sets():
        k = found.most(dataset)
        linear = found.metric(dataset, f"linear-aniso-k{k}", "comparisons") or found.metric(
            dataset, f"linear-iso-k{k}", "comparisons"
        )
        for method, words in tables.METHODS.items():
            arm = f"{method}-aniso-k{k}"
            one = found.metric(dataset, arm, "comparisons")
            if not one:
                continue
            theirs = found.theirs(
                dataset, "kdtree-masked" if method == "kdtree" else method, "comparisons"
            )
            beside = "linear search was not run"
            if linear:
                share = f"{100 * one['mean'] / linear['mean']:.3g} % of it"
                beside = f"linear search {linear['mean']:,.0f} ({share})"
            rows.append(
                Result(
                    experiment=experiment,
                    profile=profile,
                    dataset=dataset,
                    arm=arm,
                    name=words,
                    seeds="no training",
                    measure=f"comparisons a query, k = {k}",
                    value=tables.counted(one),
                    published=NOT_PUBLISHED if theirs == tables.NONE else theirs,
                    bound=f"{k:,}, the answers alone",
                    trivial=beside,
                    metric="comparisons",
                )
            )
    return rows


def labels_of(arms: dict[str, Any], dataset: str) -> dict[str, str]:
    """Arm -> what the tables call it."""
    mine = [name.split("/")[1] for name in arms if name.split("/")[0] == dataset]
    k = max((int(arm.rpartition("-k")[2]) for arm in mine if arm.startswith("linear-")), default=0)
    called = {f"{method}-aniso-k{k}": words for method, words in tables.METHODS.items()}
    called |= {
        f"trajectory-{one}_bound-k{k}": f"TNN, the {one}'s bound alone"
        for one in ("segment", "box")
    }
    trees = ((arm, tables.LEAVES.fullmatch(arm.removesuffix(f"-k{k}"))) for arm in mine)
    called |= {arm: f"k-d tree, {tree[2]}, leaves of {tree[3]}" for arm, tree in trees if tree}
    return {arm: words for arm, words in called.items() if arm in mine and words != arm}


def searched(
    experiment: str, profile: str, found: SearchResults, about: dict[str, Any], name: str
) -> Section:
    """What the page shows of one point set that was searched."""
    k, home = found.most(name), home_of(experiment, profile)
    said = f"{about['points']:,} points on {about['trajectories']:,} trajectories."
    svg = lineage(experiment, profile, name)
    blocks: tuple[Block, ...] = (
        Words(said),
        Grid(tables.main(found, name), f"Tables 1.3 and 1.4: {k} neighbours, scale (1, 1, 4, 9)"),
        Grid(tables.shares(found, name), "Comparisons by k and scale, of what a query sees"),
        *pictures(home, {f"{name}-surface": SURFACE}),
        Grid(tables.leaves(found, name), f"Tables A.1–A.3: k-d trees, {k} neighbours", folded=True),
        lineage_block(name, f"{experiment}, {profile}", svg),
    )
    return Section(name, name, blocks, name)


def times(experiment: str, profile: str, found: SearchResults) -> tuple[Section, ...]:
    """Times beside the yardstick's; nothing where none were measured."""
    named = (
        (tables.speed(found), "Time over the yardstick's"),
        (tables.large(found), "At the document's size"),
    )
    if not any(one for one, _ in named):
        return ()
    goals, reached = found.times.get("goals", []), tables.goals(found)
    met = f"{sum(goal['passed'] for goal in goals)} of {len(goals)} goals met"
    epoch = tables.epoch(found.times)
    blocks: tuple[Block, ...] = (
        *pictures(home_of(experiment, profile), {"speed": SPEED}),
        *(Grid(one, title) for one, title in named if one),
        *((Grid(reached, met, folded=True),) if reached else ()),
        *((Words(epoch),) if epoch else ()),
    )
    return (Section("Times", "times", blocks),)


def bounded(experiment: str, profile: str, bound: dict[str, Any] | None) -> tuple[Section, ...]:
    """Why the printed bound fails; nothing where its failures were not counted."""
    if not bound:
        return ()
    words, formulas, meaning = told.argument(bound)
    run = next(iter(bound["counted"].values()))["run"]
    counted = (
        "How often the printed bound is none: of all pairs of a query and a run of "
        f"{run} points of which it sees some; and what a search that believes it loses."
    )
    drawn = pictures(home_of(experiment, profile), {"bound": BOUND})
    blocks: tuple[Block, ...] = (
        *(Words(one) for one in words[:2]),
        *drawn,
        *(Words(one) for one in words[2:]),
        Words("\n".join(formulas), code=True),
        Words(meaning),
        Words(counted),
        Grid(told.bound_table(bound)),
    )
    title = "Why the printed bound fails, and what replaced it"
    return (Section(title, "bound", blocks, prose=True),)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    found, bound = told.found_in(experiment, profile, content), content.get("bound")
    sets = tuple(
        searched(experiment, profile, found, content["sets"][name], name) for name in found.sets()
    )
    link = Link(
        "Why the printed neighbour bound fails",
        "Squares are subtracted where lengths must be: a picture, and how often it loses a "
        "neighbour.",
        "bound",
    )
    return Part(
        family=FAMILY,
        results=results(experiment, profile, found),
        intro=(
            Words("make bench-neighbours measures the times again.", quiet=True),
            Words(told.LEGEND, quiet=True),
            Words(LISTED, quiet=True),
            Words(tables.measured_on(found.times).replace("`", "")),
        ),
        sections=(*sets, *times(experiment, profile, found), *bounded(experiment, profile, bound)),
        labels={name: labels_of(content["arms"], name) for name in found.sets()},
        start=(link,) if bound else (),
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command("stages.neighbours.experiment.page", part, argv)


if __name__ == "__main__":
    sys.exit(main())
