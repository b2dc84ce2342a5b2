"""What is told of an experiment on sequences in any order: its tables, by data set and across them.

`any_order` is the thesis' chapter 4 and appendix D: tables 4.2 to 4.5 and D.1, figures 4.2, 4.3 and
4.6. What a cell's samples are worth stays with the cell
(CELL/samplers/SAMPLER/PROMPT/metrics/NAME), as do its distances from exact densities
(CELL/posteriors/SHARE; of mazes also CELL/path_posteriors/SHARE). `about` tells each data set.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.errors import DataError
from stages.files import read_json
from stages.sequences.reporting import arms as order_arms
from stages.sequences.reporting import bias as order_bias
from stages.sequences.reporting import efficiency as order_efficiency
from stages.sequences.reporting import habits as order_habits
from stages.sequences.reporting import infill as order_infill
from stages.sequences.reporting import map as order_map
from stages.sequences.reporting import sizes as order_sizes
from stages.sequences.reporting import tables as order_tables
from stages.sequences.reporting import texts as order_texts
from stages.sequences.reporting.printed import companions
from stages.tables.table import Table, addresses

LEGEND = (
    "± is the sample standard deviation over seeds; [ ] the 90 % interval within them: of shares "
    "Wilson's, of other numbers a bootstrap over independent sequences (flights: over aircraft; "
    "likelihood of texts: over runs of windows). GPT is the same network, trained and sampled from "
    "left to right; 'own order' is the one that a model was trained in. `uniform` draws any token, "
    "`marginals` each place's training frequencies, `persistence` keeps the last altitude, "
    "`constant_rate` the last rate until the cleared level. The MSE of flights is over the "
    "altitudes produced, in flight levels squared; "
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
    "habits",
    "uncertain",
)  # of an evaluation, beside its cells


@dataclass(frozen=True)
class Section:
    """What is told of one data set: a sentence, and titled tables with their notes, the first
    being the results."""

    dataset: str
    told: str
    address: str  # of a number of a cell, below its name
    tables: tuple[tuple[str, Table, str], ...]


def read_descriptions(home: Path) -> order_arms.About:
    """What evaluation wrote of each data set beside its cells. DataError for a file without its
    kind."""
    found = {}
    for file in sorted((home / "evaluated").glob("[!.]*/metrics.json")):
        content = read_json(file)
        if content.get("kind") not in order_arms.SHOWN or "sequences" not in content:
            raise DataError(
                "an evaluation is not of sequences",
                where=str(file),
                expected=f"a kind of {', '.join(order_arms.SHOWN)}",
                found=repr(content.get("kind")),
                remedy="run `dvc repro`",
            )
        found[file.parent.name] = {key: content[key] for key in FIELDS if key in content}
    return found


def entropy_of(about: dict[str, Any]) -> str:
    """The sentence on a data set: numbers of sequences, prompt, and the entropy of its law."""
    counts = ", ".join(f"{about['sequences'][name]:,} {name}" for name in ("train", "val", "test"))
    told = f"Sequences: {counts}" + (
        f"; the first {about['prompt']:,} tokens are given" if about["prompt"] else ""
    )
    if "entropy" in about:
        told += (
            f"; entropy of the law {about['entropy']:.4f} nats a token (perplexity "
            f"{math.exp(about['entropy']):.3g}): no model is below it"
        )
    return told


def sections(experiment: str, content: dict[str, Any]) -> list[Section]:
    """The tables of every data set of an experiment; `content` is its metrics.json."""
    cells, printed, found = content["cells"], companions(experiment), []
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
            (order_habits.TITLE, order_habits.table(cells, about, dataset)),
            (
                "What each sampler costs (thesis, figure 4.6)",
                order_tables.bursts(cells, about, dataset),
            ),
            (order_map.TITLE, order_map.table(cells, about, dataset)),
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
            for arm in order_arms.ranked(cells, dataset)
            if order_arms.standing(cells, about, dataset, arm)
        ]
        arm = next((arm for arm in arms if arm.startswith("sigma_gpt")), arms[-1] if arms else None)
        shown = order_arms.SHOWN[about["kind"]]
        path = (
            (*order_arms.standing(cells, about, dataset, arm), shown[0][0])
            if arm and shown
            else ("nats_left_to_right",)
        )
        found.append(Section(dataset, entropy_of(about), "/".join(path), tuple(told)))
    return found


def across(experiment: str, content: dict[str, Any]) -> list[tuple[str, Table, str]]:
    """The tables that span data sets: 4.3, 4.5 and figure 4.5 as numbers."""
    printed = companions(experiment)
    found = (
        (
            (
                "Training: steps to the validation loss that an order and GPT both reach, and to "
                "the one where GPT ends, each in its own order (thesis, table 4.3)"
            ),
            order_efficiency.efficiency(content["cells"], content["about"], printed),
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


def table(experiment: str, profile: str, content: dict[str, Any]) -> str:
    """Markdown: what spans data sets, then a section a data set."""
    lines = [f"# {experiment}, profile {profile}", "", LEGEND, ""]

    def note(said):
        return [f"{said}.", ""] if said else []

    for title, one, said in across(experiment, content):
        lines += [f"{title}:", "", *one.markdown(), *note(said)]
    for section in sections(experiment, content):
        lines += [f"## {section.dataset}", "", f"{section.told}.", ""]
        for title, one, said in section.tables:
            lines += ([f"{title}:", ""] if title else []) + one.markdown() + note(said)
        lines += order_texts.markdown(content.get("texts", {}).get(section.dataset, []))
        where = experiment, profile, content["cells"], section.dataset, section.address
        lines += [addresses(*where, also=" and a sampler that it has"), ""]
    return "\n".join(lines)
