"""The lineage of a data set's numbers as one inline SVG: every stage, what it made, and the
first digits of its SHA-256."""

import glob
from html import escape
from pathlib import Path
from typing import Any

from markupsafe import Markup

from stages import records
from stages.files import read_json

WIDTH, HEIGHT, GAP = 190, 84, 34
SHOWN = 0.76  # of that size: seven boxes fill the page, more are scrolled


SPINE = (("acquire", "raw"), ("decode", "decoded"), ("validate", "gate"), ("prepare", "prepared"))
UNDECODED = (
    ("acquire", "raw"),
    ("prepare", "prepared"),
    ("validate", "gate"),
)  # of sets of points, judged as prepared


def steps(
    experiment: str, profile: str, dataset: str, spine: tuple[tuple[str, str], ...] = SPINE
) -> list[tuple[str, str, list[str]]]:
    """(stage, title, lines) from raw bytes to the table, read from the records in git.

    A set that is made where it is searched has no raw bytes; a search has no training. DataError
    for a record that is missing.
    """
    rows, home = [], records.location("tabulate", profile, experiment=experiment).parent

    def of(kind: str) -> list[Path]:
        return sorted(home.glob(f"{glob.escape(dataset)}.*.{kind}.json"))

    swept, cells = of("sweep"), of("train")
    if cells or records.location("prepare", profile, dataset).exists():
        for stage, title in spine:
            rows.append(
                (stage, title, _lines(read_json(records.location(stage, profile, dataset))))
            )
    if swept:
        contexts = records.location("contexts", profile, dataset)
        rows += (
            [("contexts", "neighbours", _lines(read_json(contexts)))] if contexts.exists() else []
        )
        rows.append(
            (
                "sweep",
                "chosen",
                [f"{len(swept)} models", "code " + read_json(swept[0])["code"]["digest"][:10]],
            )
        )
    if cells:
        rows.append(
            (
                "train",
                "trained",
                [f"{len(cells)} cells", "code " + read_json(cells[0])["code"]["digest"][:10]],
            )
        )
    for stage, title, path in (
        (
            "evaluate",
            "evaluated",
            records.location("evaluate", profile, dataset, experiment=experiment),
        ),
        ("tabulate", "tables", records.location("tabulate", profile, experiment=experiment)),
    ):
        rows.append((stage, title, _lines(read_json(path))))
    return rows


def _lines(record: dict[Any, Any]) -> list[str]:
    outputs = record["outputs"]
    size = sum(o["bytes"] for o in outputs.values())
    first = next(iter(outputs.items()), None)
    shown = [f"{len(outputs)} files, {size / 1e6:.1f} MB", "code " + record["code"]["digest"][:10]]
    return shown + ([f"{Path(first[0]).name[:18]} {first[1]['sha256'][:8]}"] if first else [])


def lineage(
    experiment: str, profile: str, dataset: str, spine: tuple[tuple[str, str], ...] = SPINE
) -> Markup:
    """An SVG of boxes and arrows, coloured by the page's own variables, with the text
    selectable."""
    boxes = steps(experiment, profile, dataset, spine)
    width = len(boxes) * (WIDTH + GAP) - GAP
    size = (
        f'viewBox="0 0 {width} {HEIGHT}" width="{round(SHOWN * width)}" '
        f'height="{round(SHOWN * HEIGHT)}"'
    )
    parts = [f'<svg {size} role="img" aria-label="lineage of {escape(dataset)}" class="lineage">']
    for index, (stage, title, lines) in enumerate(boxes):
        x = index * (WIDTH + GAP)
        parts.append(f'<rect x="{x + 1}" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="8"/>')
        parts.append(f'<text x="{x + 12}" y="22" class="title">{escape(title)}</text>')
        parts.append(f'<text x="{x + WIDTH - 12}" y="22" text-anchor="end">{escape(stage)}</text>')
        parts += [
            f'<text x="{x + 12}" y="{42 + 16 * i}">{escape(line)}</text>'
            for i, line in enumerate(lines[:3])
        ]
        if index:
            parts.append(
                f'<path d="M{x - GAP + 4} {HEIGHT / 2} h{GAP - 12} m-7 -5 l8 5 l-8 5" '
                'class="arrow"/>'
            )
    return Markup("".join(parts) + "</svg>")
