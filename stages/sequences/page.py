"""The page of an experiment on sequences: `python -m stages.sequences.page EXPERIMENT PROFILE`."""

import sys
from typing import Any

from stages.page import charts
from stages.page import experiment as page
from stages.page.blocks import (
    Block,
    Cells,
    Pair,
    Part,
    Section,
    Words,
    grids,
    lineage_block,
    pictures,
)
from stages.page.lineage import UNDECODED, lineage
from stages.page.result import NO_BOUND, NOT_PUBLISHED, Result
from stages.sequences.reporting import arms as order_arms
from stages.sequences.reporting import results as told
from stages.sequences.reporting import texts
from stages.sequences.reporting.printed import Companions, beside, companions, theirs
from stages.tables.table import arm_of, cells_of
from stages.tables.tabulation import home_of

FAMILY = "sequences"
GUESSES = ("constant_rate", "marginals", "uniform")
PRINTED = {"maze": "accuracy", "climb": "mse"}  # the printed metric of samples, by kind
Content = dict[str, Any]


def results(experiment: str, profile: str, content: Content) -> list[Result]:
    """What a sequence model's samples are worth, or its likelihood where it has none: beside the
    printed number, the law and guessing."""
    printed, found = companions(experiment), []
    for dataset, about in content["about"].items():
        for arm in order_arms.ranked(content["cells"], dataset):
            found += result(experiment, profile, content, dataset, about, arm, printed)
    return found


def result(
    experiment: str,
    profile: str,
    content: Content,
    dataset: str,
    about: dict[str, Any],
    arm: str,
    printed: Companions,
) -> list[Result]:
    """An arm's row; [] where nothing tells what it is worth."""
    cells = content["cells"]
    path, measure, scale, kind = told_by(cells, about, dataset, arm)
    value = order_arms.at(cells, dataset, arm, *path) if path else None
    if path is None or value is None:
        return []
    metric = PRINTED.get(about["kind"]) if kind == "samples" else None
    other = beside(printed, about, arm).get(metric) if metric else None
    samples = kind == "samples"
    entropy = (
        f"entropy of the law {about['entropy']:.4g}"
        if "entropy" in about and not samples
        else NO_BOUND
    )
    share = samples and measure.endswith("[%]")
    one = Result(
        experiment=experiment,
        profile=profile,
        dataset=dataset,
        arm=arm,
        name=order_arms.called(arm),
        seeds=str(value["seeds"]),
        measure=measure,
        value=order_arms.number(value, scale, True),
        published=theirs(other) if other else NOT_PUBLISHED,
        bound="100, every sample valid" if share else entropy,
        trivial=guess(cells, about, dataset, kind, scale),
        metric="/".join(path if path[0] == "samplers" else path[1:]),
        cell=first(cells, dataset, arm) if samples else "",
    )
    return [one]


def guess(
    cells: dict[str, Any], about: dict[str, Any], dataset: str, kind: str, scale: float
) -> str:
    """The best guess that was measured in the same way."""
    for name in GUESSES:
        path = told_by(cells, about, dataset, name, kind)[0]
        one = order_arms.at(cells, dataset, name, *path) if path else None
        if one:
            return f"{name} {order_arms.number(one, scale)}"
    return "no guess was measured"


def first(cells: dict[str, Any], dataset: str, arm: str) -> str:
    """The name of an arm's first cell."""
    return min(name.partition("/")[2] for name in cells if arm_of(name) == f"{dataset}/{arm}")


def told_by(
    cells: dict[str, Any], about: dict[str, Any], dataset: str, arm: str, wanted: str = ""
) -> tuple[tuple[str, ...] | None, str, float, str]:
    """(path in a cell, title, factor, kind) of an arm's main number: of its samples, else nats a
    token or a bound on them."""
    if not order_arms.members(cells, dataset, arm):
        return None, "", 1, ""
    standing = order_arms.standing(cells, about, dataset, arm)
    named = order_arms.SHOWN[about["kind"]]
    choices: list[tuple[tuple[str, ...], str, float, str]] = []
    if standing and named:
        choices.append(((*standing, named[0][0]), named[0][1], named[0][2], "samples"))
    choices += [
        (("metrics", "nats"), "nats a token, own order", 1, "nats"),
        (("metrics", "nats_bound"), "nats a token, at most", 1, "nats"),
    ]
    for path, title, scale, kind in choices:
        if wanted in ("", kind) and order_arms.at(cells, dataset, arm, *path):
            return path, title, scale, kind
    return None, "", 1, ""


def section(experiment: str, profile: str, content: Content, one: told.Section) -> Section:
    """What the page shows of one data set."""
    from stages.sequences.reporting.canvas import colour  # with matplotlib

    home, name = home_of(experiment, profile), one.dataset
    written = texts.table(content.get("texts", {}).get(name, []), name)
    single, numbers = (
        {f"{name}-{figure}": words for figure, words in named.items()}
        for named in (told.pictures(content["about"][name]["kind"]), told.FIGURES)
    )
    svg, about = lineage(experiment, profile, name, UNDECODED), content["about"][name]
    learned = charts.learning(
        content["cells"],
        name,
        order_arms.ranked(content["cells"], name),
        order_arms.short,
        colour,
        "validation loss [nats a token]",
        (("entropy of the law", about["entropy"]),) if "entropy" in about else (),
    )
    blocks: tuple[Block, ...] = (
        Words(f"{one.told}."),
        *pictures(home, single),
        *grids((*one.tables, *written)),
        Pair(charts.over(pictures(home, numbers), {f"{name}-learning": learned})),
        lineage_block(name, f"{experiment}, {profile}", svg),
        Cells(one.address, tuple(cells_of(content["cells"], name)), " and a sampler that it has"),
    )
    return Section(name, name, blocks, name)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    labels: dict[str, dict[str, str]] = {}
    for dataset, arm in (name.split("/") for name in content["arms"]):
        called = order_arms.called(arm)
        labels.setdefault(dataset, {}).update({arm: called} if called != arm else {})
    sections = told.sections(experiment, content)
    return Part(
        family=FAMILY,
        results=results(experiment, profile, content),
        intro=(
            Words(told.LEGEND.replace("`", ""), quiet=True),
            *grids(told.across(experiment, content)),
        ),
        sections=tuple(section(experiment, profile, content, one) for one in sections),
        labels=labels,
        wraps=True,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command("stages.sequences.page", part, argv)


if __name__ == "__main__":
    sys.exit(main())
