"""Whether what was evaluated of a search says one thing (stages/audit/agreeing.py): its counts are
the means of its queries', and no search sees other points than the linear one. No stage runs this.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stages.audit import agreeing
from stages.audit.agreeing import Found, near
from stages.files import read_json


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    where, cells = (home / "queries.parquet").as_posix(), read_json(home / "metrics.json")["cells"]
    table = pl.read_parquet(where)
    sums = table.group_by("cell").agg(
        pl.len(), pl.col("comparisons", "seen").sum(), pl.col("wrong").sum()
    )
    found = {cell: rest for cell, *rest in sums.iter_rows()}
    for cell in sorted(found.keys() ^ cells.keys()):
        yield where, f"{cell} stands in {'it' if cell in found else 'metrics.json'} alone"
    for cell in sorted(found.keys() & cells.keys()):
        count, comparisons, seen, wrong = found[cell]
        told = cells[cell]["metrics"]
        mine = {
            "comparisons": comparisons / count,
            "seen": seen / count,
            "comparisons_share": comparisons / seen,
            "wrong_rows": wrong,
        }
        for name, value in mine.items():
            if not near(value, told[name]["value"]) or told[name]["n"] != count:
                text = f"{count:,} queries of {cell} give {name} {value}"
                yield where, f"{text}, metrics.json {told[name]['value']} of {told[name]['n']:,}"
    yield from agreeing.common(home)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"evaluated": evaluated}
    return agreeing.main("stages.neighbours.experiment.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
