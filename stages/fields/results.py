"""What is told of an experiment on sets of points: its tables, by data set and across them.

`sparse_fields` is the thesis' tables 3.2, 3.4, C.2 and C.4, `sensitivity` its figure C.7,
`failure_modes` its section 3.5 and appendices C.8 and C.11. A cell's probes stay with the cell.
"""

from dataclasses import dataclass
from typing import Any

from stages.fields import costs, sensitivity
from stages.fields import tables as set_tables
from stages.fields.printed import sets, tightness
from stages.fields.tables import MSE
from stages.tables.table import Table, addresses, datasets_of
from stages.tables.tabulation import Content, home_of

TIMED = "sparse_fields"  # the experiment whose models `make bench-fields` times
LEGEND = (
    "± is the sample standard deviation over seeds; [ ] the 90 % bootstrap interval over the "
    "independent sets of the test split. MSE is over all targets and components of the test sets "
    "unless a title says validation; the documents print the mean of their validation batches. 'Of "
    "the mean's' compares with predicting the mean of the training targets. 'Context shuffled' "
    "permutes the context's values among its points: an error that stays the same says that the "
    "model does not use where they were measured. Printed values are the documents', on their own "
    "data and after far longer training: a level to compare with. † marks a printed number that is "
    "misprinted, ‡ one about which the document leaves something open; the notes follow the table."
)


@dataclass(frozen=True)
class Section:
    """What is told of one data set: titled tables with the notes on their printed numbers, the
    first being the results."""

    dataset: str
    n: int
    tables: tuple[tuple[str, Table, str], ...]


def sections(
    experiment: str, profile: str, arms: dict[str, Any], cells: dict[str, Any]
) -> list[Section]:
    """The tables of every data set of an experiment; learning rates are those of the records in
    git."""
    printed = sets(experiment)
    rates = sensitivity.rates(home_of(experiment, profile), cells)
    found = []
    for dataset in datasets_of(arms):
        names = set_tables.ordered(arms, dataset)
        told = [("", *set_tables.results(arms, cells, dataset, printed))]
        one: Any
        for title, one in (
            (
                "One encoder of positions for context and targets, or two (thesis, table 3.4)",
                set_tables.sharing(cells, dataset, printed),
            ),
            (
                "What a model's size is worth, one argument varied (thesis, figure C.7)",
                sensitivity.table(arms, cells, dataset, rates),
            ),
            (
                "On sets that it was trained on (thesis, table C.3)",
                set_tables.learned(arms, dataset, printed),
            ),
            (
                (
                    "Contexts and targets in regions of their own: share of the context from the "
                    "targets' region, one model asked at each"
                ),
                set_tables.overlap(cells, dataset, printed),
            ),
            (
                (
                    "By distance from a narrow context, in standard deviations of the positions "
                    "(thesis, table C.7)"
                ),
                set_tables.tightness(cells, dataset, tightness()),
            ),
        ):
            told += [(title, *one)] if one else []
        for title, one in (
            (
                "A planted error: what it moves, and what undoes it (thesis, figures 3.5 and 3.6)",
                set_tables.errors_undone(cells, dataset),
            ),
            ("What an answer rests on (thesis, figure C.5)", set_tables.inputs(cells, dataset)),
        ):
            told += [(title, one, "")] if one else []
        found.append(Section(dataset, arms[names[0]]["metrics"][MSE]["n"], tuple(told)))
    return found


def across(experiment: str, arms: dict[str, Any]) -> list[tuple[str, Table, str]]:
    """The tables that span data sets: figure 3.4, tables C.8 and C.9."""
    copied, parted = set_tables.copying(arms), set_tables.regions(arms, sets(experiment))
    found = (
        [
            (
                (
                    "Handing on the context's own values (thesis, figure 3.4); ✓ is an MSE below "
                    "0.01, the document's bar"
                ),
                copied,
                "",
            )
        ]
        if copied
        else []
    )
    return found + (
        [
            (
                (
                    "Trained with contexts and targets in regions of their own (thesis, tables C.8 "
                    "and C.9)"
                ),
                *parted,
            )
        ]
        if parted
        else []
    )


def read_times(experiment: str, profile: str) -> dict[str, Any] | None:
    """What `make bench-fields` measured for a profile, {} where it did not run; None of an
    experiment that it does not belong to."""
    return costs.read(home_of(experiment, profile)) if experiment == TIMED else None


def table(experiment: str, profile: str, content: Content) -> str:
    """Markdown: what spans data sets, then a section a data set, then what was timed."""
    arms, cells = content["arms"], content["cells"]
    lines = [f"# {experiment}, profile {profile}", "", LEGEND, ""]
    for title, one, said in across(experiment, arms):
        lines += [f"{title}:", "", *one.markdown(), *([f"{said}.", ""] if said else [])]
    for section in sections(experiment, profile, arms, cells):
        lines += [f"## {section.dataset}", "", f"{section.n:,} test values.", ""]
        for title, one, said in section.tables:
            lines += (
                ([f"{title}:", ""] if title else [])
                + one.markdown()
                + ([f"{said}.", ""] if said else [])
            )
        lines += [addresses(experiment, profile, cells, section.dataset, MSE), ""]
    times = read_times(experiment, profile)
    return "\n".join(lines + ([] if times is None else costs.markdown(times, profile)))
