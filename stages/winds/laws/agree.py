"""Whether what was prepared and evaluated of neural processes on winds says one thing
(stages/audit/agreeing.py): all that winds are held to (stages/winds/agree.py), and the coverage
that is told is that of the predictions, the flow that of the levels. No stage runs this."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stages.audit import agreeing
from stages.files import read_json
from stages.winds import agree
from stages.winds.laws import flow
from stages.winds.laws.coverage import covered
from stages.winds.laws.layout import COVERAGE, LEVELS, TRUE


def evaluated(home: Path) -> Iterator[tuple[str, str]]:
    """What in the folder of an evaluation contradicts."""
    yield from agree.evaluated(home)
    for cell, entry in sorted(read_json(home / "metrics.json")["cells"].items()):
        file = home / f"predictions-{cell}.parquet"
        inside, told = covered(pl.read_parquet(file)), entry["metrics"].get(COVERAGE)
        if inside is None or told is None:
            if (inside is None) != (told is None):
                yield file.as_posix(), f"{COVERAGE} stands in metrics.json without a spread, or not"
        elif told["n"] != len(inside) or not agree.near(inside.mean(), told["value"], agree.SEEN):
            text = f"it gives {COVERAGE} {float(inside.mean())!r}"
            yield file.as_posix(), f"{text}, metrics.json {told['value']!r}"
        yield from flowing(home / f"{LEVELS}-{cell}.parquet", entry["metrics"])


def flowing(file: Path, metrics: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a cell's levels say otherwise than its metrics of how they flow."""
    names = {f"{name}{after}" for name in flow.TOLD for after in ("", TRUE)}
    told = {name: one for name, one in metrics.items() if name in names}
    if not file.is_file():
        if told:
            yield file.as_posix(), f"is missing, and metrics.json tells {', '.join(sorted(told))}"
        return
    found = flow.told(pl.read_parquet(file))
    for name in sorted(found.keys() ^ told.keys()):
        yield file.as_posix(), f"{name} stands in metrics.json or follows from it, not both"
    for name in sorted(found.keys() & told.keys()):
        if not agree.near(found[name]["value"], told[name]["value"], agree.SEEN):
            text = f"it gives {name} {found[name]['value']!r}"
            yield file.as_posix(), f"{text}, metrics.json {told[name]['value']!r}"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": agree.prepared, "evaluated": evaluated}
    return agreeing.main("stages.winds.laws.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
