"""The experiment on sequences in any order, gathered: metrics.json (every cell and its arm over
seeds), table.md, claims.json, figures.

`any_order` is the thesis' chapter 4 and appendix D: tables 4.2 to 4.5 and D.1, figures 4.2, 4.3 and
4.6. metrics.json has the form of tabulate.py, so that `tradewind audit` walks these numbers too;
what a cell's samples are worth stays with the cell (CELL/samplers/SAMPLER/PROMPT/metrics/NAME), as
do its distances from exact densities (CELL/posteriors/SHARE). `about` tells each data set.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages import records
from stages.errors import DataError
from stages.files import atomic_file, read_json, write_json
from stages.sequences.reporting import bias as order_bias
from stages.sequences.reporting import infill as order_infill
from stages.sequences.reporting import map as order_map
from stages.sequences.reporting import sizes as order_sizes
from stages.sequences.reporting import tables as order_tables
from stages.sequences.reporting import texts as order_texts
from stages.tables.published import PUBLISHED
from stages.winds import tables
from stages.winds.tabulate import gather, over_seeds

EXPERIMENTS = {
    "any_order": "What does a model gain that can produce a sequence in any order, and what does "
    "it cost?"
}
CODE = (
    "stages/seeds.py",
    "stages/spreads.py",
    *(
        f"stages/evaluation/{name}.py"
        for name in (
            "claims",
            "set_claims",
            "order_claims",
            "memory_claims",
            "orders/maze",
            "orders/vertical",
            "bootstrap",
            "metrics",
            "scores",
        )
    ),
    *(
        f"stages/page/{name}.py"
        for name in (
            "order_results",
            "order_tables",
            "order_figures",
            "order_gallery",
            "order_bias",
            "order_infill",
            "order_map",
            "order_sizes",
            "order_texts",
            "set_tables",
            "set_figures",
            "tabulate",
            "tables",
            "figures",
            "sweep_figures",
            "published",
        )
    ),
)
LEGEND = (
    "± is the sample standard deviation over seeds; [ ] the 90 % interval within them: of shares "
    "Wilson's, of other numbers a bootstrap over independent sequences (flights: over aircraft). "
    "GPT is the same network, trained and sampled from left to right; 'own order' is the one that "
    "a model was trained in. `uniform` draws any token, `marginals` each place's training "
    "frequencies, `persistence` keeps the last altitude, `constant_rate` the last rate until the "
    "cleared level. The MSE of flights is over the altitudes produced, in flight levels squared; "
    "the public code's 'mse' counts bad samples. Printed values are the documents', of far larger "
    "models and longer training: a level to compare with. ‡ marks one about which the document "
    "leaves something open; the notes follow the table."
)
PICTURES = {  # what is shown of single sequences, and what it says
    "mazes": "A row a test maze: the true path; the exact chance that a shortest path passes a "
    "cell; how often samples do; single samples, a cross where the maze itself was changed.",
    "strip": "A maze produced by bursts: what has been accepted so far, the newest dotted; grey "
    "cells wait.",
    "climbs": "One test flight, by what is given of it (thick): samples as median, 25-75 % and "
    "5-95 %, single ones thin; the truth in black, the cleared level dashed.",
    "map": order_map.CAPTION,
    "bias": order_bias.CAPTION,
}
FIGURES = {
    "passes": "Quality of the samples against passes, with 90 % intervals; numbers at marks are "
    "orders tried or steps of diffusion.",
    "learning": "Validation loss against steps, each model in its own order: the mean over seeds "
    "with their range.",
    "sizes": "Share of training (dashed) and of test prompts (full) answered, by the number of "
    "training sequences, with 90 % intervals.",
    "densities": "How far learned conditional densities are from exact ones, by the share of "
    "tokens known.",
}


def pictures(kind: str) -> dict[str, str]:
    """What is shown of single sequences of a kind, by the figure's name."""
    return PICTURES | (
        {"infilled": order_infill.CAPTION[kind]} if kind in order_infill.CAPTION else {}
    )


FIELDS = (
    "kind",
    "prompt",
    "sequences",
    "entropy",
    "bounds",
    "held_out",
    "generations",
    "bias",
)  # of an evaluation, beside its cells


@dataclass(frozen=True)
class Section:
    """What is told of one data set: a sentence, and titled tables with their notes, the first
    being the results."""

    dataset: str
    told: str
    address: str  # of a number of a cell, below its name
    tables: tuple[tuple[str, tables.Table, str], ...]


def described(home: Path) -> order_tables.About:
    """What evaluation wrote of each data set beside its cells. DataError for a file without its
    kind."""
    found = {}
    for file in sorted((home / "evaluated").glob("[!.]*/metrics.json")):
        content = read_json(file)
        if content.get("kind") not in order_tables.SHOWN or "sequences" not in content:
            raise DataError(
                "an evaluation is not of sequences",
                where=str(file),
                expected=f"a kind of {', '.join(order_tables.SHOWN)}",
                found=repr(content.get("kind")),
                remedy="run `dvc repro`",
            )
        found[file.parent.name] = {key: content[key] for key in FIELDS if key in content}
    return found


def sections(experiment: str, content: dict[str, Any]) -> list[Section]:
    """The tables of every data set of an experiment; `content` is its metrics.json."""
    cells, printed, found = content["cells"], order_tables.companions(experiment), []
    for dataset, about in content["about"].items():
        told = [("", *order_tables.results(cells, about, dataset, printed))]
        for title, one in (
            (
                "Perplexity from left to right, with a curriculum and without (thesis, table 4.4)",
                order_tables.curriculum(cells, about, dataset, printed),
            ),
            (
                "Flights by what is given of them (thesis, table D.1)",
                order_tables.prompts(cells, about, dataset, printed),
            ),
            (
                "What each sampler costs (thesis, figure 4.6)",
                order_tables.bursts(cells, about, dataset),
            ),
            (order_map.TITLE, order_map.told(cells, about, dataset)),
            (
                "Learned densities against exact ones (thesis, figures 4.3 and D.1)",
                order_tables.densities(cells, about, dataset),
            ),
            (
                "Infilling: tokens given anywhere (thesis 4.3.7)",
                order_infill.table(cells, about, dataset),
            ),
            (
                "The bias of Algorithm 3 as printed (see the errata)",
                order_bias.table(about["bias"]) if about.get("bias") else None,
            ),
        ):
            told += [(title, *one)] if one else []
        arms = [
            arm
            for arm in order_tables.ranked(cells, dataset)
            if order_tables.standing(cells, about, dataset, arm)
        ]
        arm = next((arm for arm in arms if arm.startswith("sigma_gpt")), arms[-1] if arms else None)
        shown = order_tables.SHOWN[about["kind"]]
        path = (
            (*order_tables.standing(cells, about, dataset, arm), shown[0][0])
            if arm and shown
            else ("nats_left_to_right",)
        )
        found.append(Section(dataset, order_tables.entropy_of(about), "/".join(path), tuple(told)))
    return found


def across(experiment: str, content: dict[str, Any]) -> list[tuple[str, tables.Table, str]]:
    """The tables that span data sets: 4.3, 4.5 and figure 4.5 as numbers."""
    printed = order_tables.companions(experiment)
    found = (
        (
            (
                "Training: steps to the validation loss that an order and GPT both reach, each in "
                "its own order (thesis, table 4.3)"
            ),
            order_tables.efficiency(content["cells"], content["about"], printed),
        ),
        (
            "Fractal against random order, each in its own (thesis, table 4.5)",
            order_tables.fractal(content["cells"], content["about"], printed),
        ),
        (
            (
                "Memorisation: training and test prompts by the number of training sequences "
                "(thesis, figure 4.5)"
            ),
            order_sizes.table(content["cells"], content["about"]),
        ),
    )
    return [(title, *one) for title, one in found if one]


def cells_of(cells: dict[str, Any], dataset: str) -> list[str]:
    """The names of a data set's cells."""
    return sorted(name.partition("/")[2] for name in cells if name.startswith(dataset + "/"))


def table(experiment: str, profile: str, content: dict[str, Any]) -> str:
    """Markdown: what spans data sets, then a section a data set."""
    lines = [f"# {experiment}, profile {profile}", "", LEGEND, ""]
    note = lambda said: [f"{said}.", ""] if said else []  # noqa: E731
    for title, one, said in across(experiment, content):
        lines += [f"{title}:", "", *one.markdown(), *note(said)]
    for section in sections(experiment, content):
        lines += [f"## {section.dataset}", "", f"{section.told}.", ""]
        for title, one, said in section.tables:
            lines += ([f"{title}:", ""] if title else []) + one.markdown() + note(said)
        lines += order_texts.markdown(content.get("texts", {}).get(section.dataset, []))
        mine = ", ".join(f"`{name}`" for name in cells_of(content["cells"], section.dataset))
        lines += [
            (
                "Audit a number: `tradewind audit "
                f"{experiment}/{profile}/{section.dataset}/CELL/{section.address}`, with CELL one "
                f"of {mine} and a sampler that it has."
            ),
            "",
        ]
    return "\n".join(lines)


def tabulate(experiment: str, profile: str) -> None:
    """Write metrics.json, table.md, claims.json, figures/ and the record of one experiment on
    sequences and profile."""
    from stages import spreads
    from stages.sequences import claims
    from stages.sequences.reporting import gallery as order_gallery

    home, prepared = Path("reports") / experiment / profile, Path("data") / profile / "prepared"
    cells = gather(home)
    about = described(home)
    content = {
        "experiment": experiment,
        "profile": profile,
        "cells": cells,
        "arms": over_seeds(cells),
        "about": about,
        "texts": order_texts.gathered(home, prepared, cells, about),
    }
    write_json(home / "metrics.json", content)
    with atomic_file(home / "table.md", "w") as stream:
        stream.write(table(experiment, profile, content))
    write_json(home / "claims.json", claims.check(home))
    order_gallery.draw(home, prepared, content)
    outputs = [home / name for name in ("metrics.json", "table.md", "claims.json", "figures")]
    laws = [
        prepared / name / "sequences.json" for name in content["about"]
    ]  # sizes and units, for the figures
    record = records.make(
        "tabulate",
        f"{experiment}/{profile}",
        params={},
        code=CODE,
        inputs=[
            home / "evaluated",
            *laws,
            home.parent / "companions.csv",
            PUBLISHED,
            *spreads.files(profile),
        ],
        outputs={path.as_posix(): path for path in records.files_in(outputs)},
    )
    write_json(records.location("tabulate", profile, experiment=experiment), record)
