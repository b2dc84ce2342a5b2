"""Rules on series: the raw files as acquired; parts that are not empty; few cells masked; what
tests is of the level of what trains.

Levels are in standard deviations of the part that trains, column by column.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages import files, runner
from stages.dynamics.layout import ABOUT, SERIES
from stages.dynamics.series.prepare import KNOWN
from stages.dynamics.series.settings import series_of
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired

MODULE = "stages.dynamics.series.validate"
SHIFTED = "a column's level moves from what trains to what tests: read its errors with care"
RULES = [
    *MANIFEST,
    Rule("series.parts", "parts", "rows", "critical",
         "a part of the series is empty: mend its borders", low=1),
    Rule("series.masked", "columns", "masked", "critical",
         "more than a tenth of a column is masked: drop it from the file", high=0.1),
    Rule("series.finite", "columns", "lost", "critical",
         "a prepared column holds numbers that are not finite: prepare it again", high=0),
    Rule("series.level", "columns", "shift", "warning", SHIFTED, high=3.0),
]  # fmt: skip


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set that is no series."""
    told = series_of(asked.parameters, asked["profile"])
    runner.known("series", asked["dataset"], told.datasets)
    used = {"reading": told.reading[asked["dataset"]].model_dump(mode="json")}

    def gather(
        raw: Path, prepared: Path, judged: dict[str, str]
    ) -> tuple[dict[str, Table], list[Rule]]:
        return summed(raw, prepared, judged), RULES

    return stage.work(asked, MODULE, "prepared", gather, used)


def summed(raw: Path, prepared: Path, judged: dict[str, str]) -> dict[str, Table]:
    """The summaries of a set."""
    manifest, about = files.read_json(raw / "manifest.json"), files.read_json(prepared / ABOUT)
    (series,) = np.load(prepared / SERIES, allow_pickle=False)
    known = np.load(prepared / KNOWN, allow_pickle=False)
    parts = [{"part": name, "rows": end - first} for name, (first, end) in about["parts"].items()]
    test = series[slice(*about["parts"]["test"])]
    columns: list[dict[str, Any]] = [
        {
            "column": name,
            "masked": float((~known[:, place]).mean()),
            "lost": int((~np.isfinite(series[:, place])).sum()),
            "shift": abs(float(test[:, place].mean())),
        }
        for place, name in enumerate(about["columns"])
    ]
    return {
        **acquired(raw, manifest, judged),
        "parts": Table(parts, "part"),
        "columns": Table(columns, "column"),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge a series: its parts, its masked cells, its levels."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
