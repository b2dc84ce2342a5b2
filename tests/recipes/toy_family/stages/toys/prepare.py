"""Tosses prepared: each with its split and the record that it comes from, and what is known of the
coins.

The first tosses of a coin train, the next select, the last test: a toss stands in one split.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stages import files, records, runner
from stages.errors import DataError
from stages.splits import SPLITS
from stages.toys.acquire import TOSSES
from stages.toys.settings import FAMILY, coins_of, toys_of

MODULE = "stages.toys.prepare"
ROWS, ABOUT = "tosses.parquet", "coins.json"


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family."""
    profile, dataset = asked["profile"], asked["dataset"]
    toys = toys_of(asked.parameters, profile)
    runner.known("set of toys", dataset, toys.datasets, f"profiles.{profile}.families.{FAMILY}")
    coins = coins_of(asked.parameters, dataset)
    raw, final = asked.data("raw"), asked.data("prepared")

    def do() -> dict[str, Path]:
        rows = split(raw / TOSSES, toys.train, toys.val)
        with files.atomic_folder(final) as folder:
            rows.write_parquet(folder / ROWS)
            files.write_json(folder / ABOUT, {"chances": list(coins.chances)})
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{profile}/{dataset}",
        record=records.location("prepare", profile, dataset),
        do=do,
        inputs=[raw],
        code=[MODULE],
        params={"train": toys.train, "val": toys.val},
    )


def split(raw: Path, train: float, val: float) -> pl.DataFrame:
    """coin, heads, split (its place in SPLITS), file and record of every toss. DataError for a file
    that is missing or none of tosses."""
    if not raw.is_file():
        raise DataError("the raw tosses are missing", where=str(raw), remedy="run `dvc repro`")
    rows = pl.read_csv(raw, schema={"coin": pl.Int64, "heads": pl.Int64})
    place = pl.int_range(pl.len()).over("coin") / pl.len().over("coin")
    part = (place >= train).cast(pl.Int64) + (place >= train + val).cast(pl.Int64)
    assert SPLITS == ("train", "val", "test")
    return rows.with_columns(split=part, file=pl.lit(raw.name), record=pl.int_range(pl.len()))


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare tosses: the split of each, and where it comes from."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
