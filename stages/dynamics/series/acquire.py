"""`python -m stages.dynamics.series.acquire PROFILE DATASET`: a series into data/P/raw/D, verbatim
as pinned, or made here."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from stages import files, runner, seeds
from stages.acquisition import acquire
from stages.dynamics.series.settings import Made, made_of, series_of
from stages.params import Dataset

MODULE = "stages.dynamics.series.acquire"
TIDES_H = (24.0, 12.42)
KEEPS = 0.98  # of a walk's value, from hour to hour
MADE = "tides.csv"


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set that is no series of the profile."""
    known = series_of(asked.parameters, asked["profile"]).datasets

    def own(dataset: Dataset) -> acquire.Own | None:
        told = made_of(asked.parameters, asked["dataset"])
        if told is None:
            return None
        return acquire.Own(partial(make, told), 20.0 * told.rows * (told.columns + 1))

    return acquire.work(asked, known, MODULE, own)


def make(told: Made, folder: Path) -> None:
    """Write a made series, as comma-separated values with stamps."""
    rng = seeds.stream(told.seed, "series", "tides")
    hours = np.arange(told.rows)[:, None]
    size = rng.uniform(0.5, 1.5, (len(TIDES_H), told.columns))
    begin = rng.uniform(0, 2 * np.pi, size.shape)
    values = sum(
        size[k] * np.sin(2 * np.pi * hours / TIDES_H[k] + begin[k]) for k in range(len(TIDES_H))
    )
    walk = np.zeros((told.rows, told.columns))
    for row, push in enumerate(0.1 * rng.standard_normal(walk.shape)):
        walk[row] = (KEEPS * walk[row - 1] if row else 0.0) + push
    stamps = np.datetime64("2026-01-01T00:00:00") + np.arange(told.rows) * np.timedelta64(1, "h")
    lines = [f"date,{','.join(f'c{k}' for k in range(told.columns))}"]
    for stamp, row in zip(stamps, values + walk, strict=True):
        lines.append(f"{str(stamp).replace('T', ' ')},{','.join(f'{one:.5f}' for one in row)}")
    with files.atomic_file(folder / MADE, "w") as stream:
        stream.write("\n".join(lines) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Fetch or make a series of numbers at equal times."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
