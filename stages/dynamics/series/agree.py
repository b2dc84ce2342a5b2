"""Whether what was prepared and evaluated of series says one thing (stages/audit/agreeing.py): the
prepared rows are the raw table's, and dynamics/agree.py. No stage runs this."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stages import params
from stages.audit import agreeing
from stages.audit.agreeing import Found
from stages.dynamics import agree
from stages.dynamics.layout import ABOUT, SERIES, STARTS
from stages.dynamics.series.prepare import KNOWN
from stages.dynamics.series.read import carried, read
from stages.dynamics.series.settings import series_of
from stages.files import read_json

TOLD = ("step", "change", "columns", "mended", "rows", "masked", "convention", "parts")


def prepared(home: Path) -> Found:
    """What in a prepared series contradicts the raw table, or itself."""
    profile, dataset = home.parts[1], home.name
    told = series_of(params.load(), profile)
    table = read(home.parents[1] / "raw" / dataset, told.reading[dataset])
    about, where = read_json(home / ABOUT), (home / SERIES).as_posix()
    series = np.load(home / SERIES, allow_pickle=False)
    known = np.load(home / KNOWN, allow_pickle=False)
    if not np.array_equal(known, np.isfinite(table.values)):
        yield (home / KNOWN).as_posix(), "it masks other cells than the raw table"
    seen = carried(table.values)[None]
    yield from agree.standardised(where, series, seen, table.values[None], about)
    starts = np.load(home / STARTS, allow_pickle=False)
    if not agree.within(starts, about["parts"]["test"], series.shape):
        yield (home / STARTS).as_posix(), "a forecast starts outside of the part that tests"
    yield from agree.states(where, series, about["parts"])


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    where, told = (home / "metrics.json").as_posix(), read_json(home / "metrics.json")
    own = read_json(Path("data", home.parts[2], "prepared", home.name) / ABOUT)
    for key in TOLD:
        if told["about"][key] != own[key]:
            yield where, f"it tells another {key} of the series than what was prepared"
    yield from agree.runs(home, told, whole=True)
    yield from agreeing.common(home)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.dynamics.series.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
