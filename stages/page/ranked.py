"""The part of an experiment each of whose data sets is told by one table, the best arm first."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from stages.page import charts
from stages.page.blocks import Block, Cells, Grid, Part, Section, Words, lineage_block, pictures
from stages.page.experiment import About
from stages.page.lineage import UNDECODED, lineage
from stages.page.result import Result
from stages.tables.table import cells_of, datasets_of, number
from stages.tables.tabulation import Content, home_of

Printed = TypeVar("Printed")  # what a family knows of printed numbers


@dataclass(frozen=True)
class Ranked:
    """What a family tells of one data set.

    words: what the set is; grid: the table of its arms; captions: of each figure SET-NAME.png, by
    NAME; arms: the best first, of which those in `untrained` have no seeds; metric: the main
    number, told as `measure`, times `scale`, with `unit` behind it; bound: the best that there can
    be; published and trivial: what is printed for an arm, and what no learning reaches; more: what
    stands below the figures; loss: what training lessens, and levels: (name, value) beside it.
    """

    words: str
    grid: Grid
    captions: Mapping[str, str]
    arms: list[str]
    called: Callable[[str], str]
    untrained: Collection[str]
    metric: str
    measure: str
    bound: str
    published: Callable[[str], str]
    trivial: Callable[[str], str]
    scale: float = 1
    unit: str = ""
    more: tuple[Block, ...] = ()
    loss: str = "validation loss"
    levels: tuple[tuple[str, float], ...] = ()


def results(
    experiment: str, profile: str, content: Content, dataset: str, told: Ranked
) -> list[Result]:
    """Each arm's main number with its companions."""
    found = []
    for arm in told.arms:
        entry = content["arms"][f"{dataset}/{arm}"]
        value = number(entry["metrics"][told.metric], True, told.scale)
        found.append(
            Result(
                experiment=experiment,
                profile=profile,
                dataset=dataset,
                arm=arm,
                name=told.called(arm),
                seeds="–" if arm in told.untrained else str(entry["seeds"]),
                measure=told.measure,
                value=value + told.unit,
                published=told.published(arm),
                bound=told.bound,
                trivial=told.trivial(arm),
                metric=told.metric,
            )
        )
    return found


def section(experiment: str, profile: str, content: Content, dataset: str, told: Ranked) -> Section:
    """What the page shows of one data set."""
    shown = {f"{dataset}-{name}": words for name, words in told.captions.items()}
    svg = lineage(experiment, profile, dataset, UNDECODED)
    learned = charts.learning(
        content["cells"], dataset, told.arms, told.called, None, told.loss, told.levels
    )
    blocks: tuple[Block, ...] = (
        Words(told.words),
        told.grid,
        *charts.over(
            pictures(home_of(experiment, profile), shown), {f"{dataset}-learning": learned}
        ),
        *told.more,
        lineage_block(dataset, f"{experiment}, {profile}", svg),
        Cells(told.metric, tuple(cells_of(content["cells"], dataset))),
    )
    return Section(dataset, dataset, blocks, dataset)


def about(
    family: str,
    notes: str,
    companions: Callable[[str], Printed],
    told: Callable[[Content, str, Printed], Ranked],
    more: Callable[[str, str, Content], tuple[Section, ...]] = lambda *_: (),
) -> About:
    """What a family tells of an experiment: `notes` above its data sets, of which `told` says each,
    given the printed numbers of `companions`; `more` below them."""

    def part(experiment: str, profile: str, content: Content) -> Part:
        printed, where = companions(experiment), (experiment, profile, content)
        sets = {name: told(content, name, printed) for name in datasets_of(content["arms"])}
        return Part(
            family=family,
            results=[one for name, its in sets.items() for one in results(*where, name, its)],
            intro=(Words(notes, quiet=True),),
            sections=(*(section(*where, name, its) for name, its in sets.items()), *more(*where)),
            labels={
                name: {arm: its.called(arm) for arm in its.arms if its.called(arm) != arm}
                for name, its in sets.items()
            },
            wraps=True,
        )

    return part
