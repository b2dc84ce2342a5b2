"""Rules on tosses: the raw file as acquired, all splits filled, a coin shows heads or tails."""

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stages import files, runner
from stages.splits import SPLITS
from stages.toys.prepare import ROWS
from stages.toys.settings import toys_of
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired

MODULE = "stages.toys.validate"
EMPTY = "a split has no tosses: toss the coins more often"
OTHER = "a coin showed neither heads (1) nor tails (0): look at the raw file"
RULES = [
    *MANIFEST,
    Rule("toys.splits", "splits", "split", "critical", EMPTY, allowed=SPLITS),
    Rule("toys.heads", "splits", "other", "critical", OTHER, high=0),
]


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    known = toys_of(asked.parameters, asked["profile"]).datasets
    runner.known("set of toys", asked["dataset"], known)
    return stage.work(asked, MODULE, "prepared", gather, {})


def gather(
    raw: Path, prepared: Path, judged: dict[str, str]
) -> tuple[dict[str, Table], list[Rule]]:
    """The summaries of a set and the rules on them."""
    rows = pl.read_parquet(prepared / ROWS)
    shares = rows.group_by("split").agg(other=(~pl.col("heads").is_in([0, 1])).sum()).sort("split")
    told = [{**row, "split": SPLITS[row["split"]]} for row in shares.to_dicts()]
    manifest = files.read_json(raw / "manifest.json")
    return {**acquired(raw, manifest, judged), "splits": Table(told, "split")}, RULES


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    return runner.command(MODULE, "Judge tosses.", ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
