"""`python -m stages.dynamics.series.prepare PROFILE DATASET`: a series read, parted, standardised.

Writes series.npy (1, T, O), float64, each column standardised by the known values that train,
masked cells carried forward; known.npy (T, O), which cells were not masked; starts.npy (B, 2), 0
and the row of each test forecast's last given row; about.json. No row of a forecast is masked.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages import files, records, runner
from stages.dynamics.layout import ABOUT, SERIES, STARTS
from stages.dynamics.series.read import Array, Table, carried, read
from stages.dynamics.series.settings import DAY_S, Ahead, Borders, Reading, series_of
from stages.dynamics.series.settings import SERIES as FAMILY
from stages.errors import DataError, InputError

MODULE = "stages.dynamics.series.prepare"
KNOWN = "known.npy"


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set that is no series of the
    profile."""
    profile, dataset = asked["profile"], asked["dataset"]
    told = series_of(asked.parameters, profile)
    runner.known("series", dataset, told.datasets, f"profiles.{profile}.families.{FAMILY}")
    reading, borders = told.reading[dataset], told.borders[dataset]
    ahead = told.forecasts[dataset]
    raw, final = asked.data("raw"), asked.data("prepared")

    def do() -> dict[str, Path]:
        with files.atomic_folder(final) as folder:
            write(read(raw, reading), folder, reading, borders, ahead)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{profile}/{dataset}",
        record=records.location("prepare", profile, dataset),
        do=do,
        inputs=[raw],
        code=[MODULE],
        params={
            "reading": reading.model_dump(mode="json"),
            "borders": borders.model_dump(mode="json"),
            "forecasts": ahead.model_dump(mode="json"),
        },
    )


def parts(rows: int, borders: Borders) -> dict[str, tuple[int, int]]:
    """Each part's first row and the one after its last. InputError where they do not fit."""
    if borders.convention == "months":
        train, val, test = borders.parts
    else:
        whole = sum(borders.parts)
        train, test = (rows * borders.parts[k] // whole for k in (0, 2))
        val = rows - train - test
    if train + val + test > rows or not min(train, val, test):
        raise InputError(
            "the parts do not fit the series",
            where="borders.DATASET.parts",
            expected=f"at most {rows} rows in all, none empty",
            found=f"{train} + {val} + {test}",
            remedy="mend borders",
        )
    return {
        "train": (0, train),
        "val": (train, train + val),
        "test": (train + val, train + val + test),
    }


def starting(known: Array, part: tuple[int, int], ahead: Ahead, reach: int) -> Array:
    """The rows (B,) of the last given rows of the test's forecasts, evenly over those places where
    no row given or forecast is masked. InputError where they are too few.

    reach: how many rows before its part a context may begin.
    """
    first, end = part[0] - reach, part[1]
    whole = known.all(1)
    lost = np.concatenate(([0], np.cumsum(~whole)))
    last = np.arange(first + ahead.context - 1, end - ahead.horizon)
    last = last[last >= part[0] - 1]
    clean = lost[last + ahead.horizon + 1] == lost[last + 1 - ahead.context]
    places = last[clean]
    if len(places) < ahead.starts:
        raise InputError(
            "the test part does not hold the forecasts",
            where="forecasts.DATASET",
            expected=f"{ahead.starts} starts, each with {ahead.context} rows given and "
            f"{ahead.horizon} ahead, none of them masked",
            found=f"{len(places)} places where one may start",
            remedy="take fewer or shorter forecasts",
        )
    found: Array = places[np.linspace(0, len(places) - 1, ahead.starts).round().astype(np.int64)]
    return found


def write(table: Table, folder: Path, reading: Reading, borders: Borders, ahead: Ahead) -> None:
    """Fill the prepared folder. DataError for a column that does not change while it trains."""
    where = parts(len(table.values), borders)
    train = slice(*where["train"])
    known = np.isfinite(table.values)
    mean, scale = np.nanmean(table.values[train], 0), np.nanstd(table.values[train], 0)
    if not (np.isfinite(scale) & (scale > 0)).all():
        place = int((~(np.isfinite(scale) & (scale > 0))).argmax())
        raise DataError(
            "a column does not change in the part that trains",
            where=reading.file,
            expected="values that vary",
            found=f"column {table.columns[place]!r}",
            remedy="widen the part that trains, or drop the column from the file",
        )
    series = (carried(table.values) - mean) / scale
    reach = ahead.context if borders.convention == "months" else 0
    starts = starting(known, where["test"], ahead, reach)
    moved = np.diff(series[train], axis=0)
    for name, array in (
        (SERIES, series[None]),
        (KNOWN, known),
        (STARTS, np.stack((np.zeros_like(starts), starts), 1)),
    ):
        with files.atomic_file(folder / name) as stream:
            np.save(stream, array)
    about: dict[str, Any] = {
        "columns": list(table.columns),
        "mended": table.mended,
        "rows": len(series),
        "masked": int((~known).sum()),
        "mean": mean.tolist(),
        "sd": scale.tolist(),
        "change": float(moved.std()),
        "step": reading.step_s / DAY_S,
        "convention": borders.convention,
        "reach": reach,
        "parts": where,
        "printed_exponent": 1.0,  # R, section 6.2: a valid time of 1 is a day
    }
    files.write_json(folder / ABOUT, about)


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare a series: read strictly, standardised by what trains, parted, with starts."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
