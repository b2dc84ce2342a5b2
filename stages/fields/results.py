"""The experiments on sets of points, gathered: metrics.json (every cell and its arm over seeds),
table.md, claims.json, figures.

`sparse_fields` is the thesis' tables 3.2, 3.4, C.2 and C.4, `failure_modes` its section 3.5 and
appendices C.8 and C.11. metrics.json has the form of tabulate.py, so that `tradewind audit` walks
these numbers too; a cell's probes stay with the cell.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages import records
from stages.fields import costs, sensitivity
from stages.fields import tables as set_tables
from stages.fields.tables import MSE
from stages.files import atomic_file, write_json
from stages.tables import published
from stages.tables.published import PUBLISHED, sets
from stages.winds import tables
from stages.winds.tabulate import gather, over_seeds

EXPERIMENTS = {
    "sparse_fields": "Who recovers a field from a few measurements of it: heat, flow, weather?",
    "failure_modes": "What can each model not hand on from what it was given, and why?",
}
TIMED = "sparse_fields"  # the experiment whose models `make bench-fields` times
CODE = (
    "stages/seeds.py",
    "stages/spreads.py",
    *(
        f"stages/evaluation/{name}.py"
        for name in ("claims", "set_claims", "bootstrap", "metrics", "scores")
    ),
    *(
        f"stages/page/{name}.py"
        for name in (
            "set_results",
            "set_tables",
            "set_figures",
            "set_scans",
            "sensitivity",
            "costs",
            "tabulate",
            "tables",
            "figures",
            "sweep_figures",
            "published",
        )
    ),
)
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
    tables: tuple[tuple[str, tables.Table, str], ...]


def sections(
    experiment: str, profile: str, arms: dict[str, Any], cells: dict[str, Any]
) -> list[Section]:
    """The tables of every data set of an experiment; learning rates are those of the records in
    git."""
    printed, rates, found = (
        sets(experiment),
        sensitivity.rates(Path("reports", experiment, profile), cells),
        [],
    )
    for dataset in tables.datasets_of(arms):
        names = set_tables.ordered(arms, dataset)
        told = [("", *set_tables.results(arms, cells, dataset, printed))]
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
                set_tables.tightness(cells, dataset, published.tightness()),
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


def across(experiment: str, arms: dict[str, Any]) -> list[tuple[str, tables.Table, str]]:
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


def measured(experiment: str, profile: str) -> dict[str, Any] | None:
    """What `make bench-fields` measured for a profile, {} where it did not run; None of an
    experiment that it does not belong to."""
    return costs.read(Path("reports") / experiment / profile) if experiment == TIMED else None


def table(experiment: str, profile: str, arms: dict[str, Any], cells: dict[str, Any]) -> str:
    """Markdown: what spans data sets, then a section a data set, then what was timed."""
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
        mine = ", ".join(
            f"`{name.partition('/')[2]}`"
            for name in sorted(cells)
            if name.startswith(section.dataset + "/")
        )
        lines += [
            (
                "Audit a number: `tradewind audit "
                f"{experiment}/{profile}/{section.dataset}/CELL/{MSE}`, with CELL one of {mine}."
            ),
            "",
        ]
    times = measured(experiment, profile)
    return "\n".join(lines + ([] if times is None else costs.markdown(times, profile)))


def tabulate(experiment: str, profile: str) -> None:
    """Write metrics.json, table.md, claims.json, figures/ and the record of one experiment on
    sets and profile."""
    from stages import spreads
    from stages.fields import claims as set_claims
    from stages.fields import figures as set_figures
    from stages.fields import scans as set_scans

    home, prepared = Path("reports") / experiment / profile, Path("data") / profile / "prepared"
    cells = gather(home)
    arms = over_seeds(cells)
    write_json(
        home / "metrics.json",
        {"experiment": experiment, "profile": profile, "cells": cells, "arms": arms},
    )
    with atomic_file(home / "table.md", "w") as stream:
        stream.write(table(experiment, profile, arms, cells))
    write_json(home / "claims.json", set_claims.check(home, experiment))
    set_figures.draw(
        home,
        prepared,
        arms,
        cells,
        sets(experiment),
        lambda folder: set_scans.draw(home, arms, cells, folder),
    )
    times = [file for file in [home / costs.FILE] if file.exists()]
    outputs = [home / name for name in ("metrics.json", "table.md", "claims.json", "figures")]
    described = [
        prepared / name / "sets.json" for name in tables.datasets_of(arms)
    ]  # names and units, for the figures
    record = records.make(
        "tabulate",
        f"{experiment}/{profile}",
        params={},
        code=CODE,
        inputs=[
            home / "evaluated",
            *described,
            *times,
            home.parent / "companions.csv",
            PUBLISHED,
            *spreads.files(profile),
        ],
        outputs={path.as_posix(): path for path in records.files_in(outputs)},
    )
    write_json(records.location("tabulate", profile, experiment=experiment), record)
