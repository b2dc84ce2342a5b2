"""The gate of winds: raw files and drop counts always; frame files where a set enters as frames;
states and winds where decode wrote them. A set that the profile prepares must reach winds.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import polars as pl

from stages import files, runner
from stages.errors import DataError
from stages.validation import stage
from stages.validation.rules import Rule, Table
from stages.winds.validation import frames, states, winds


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/decoded/D. InputError for a data set without winds' stages."""
    where = f"profiles.{asked['profile']}.datasets"
    runner.known("data set", asked["dataset"], asked.profile.datasets, where)
    wind = asked["dataset"] in asked.profile.wind
    return stage.work(
        asked, "stages.winds.validate", "decoded", partial(gather, wind), {"wind": wind}
    )


def gather(
    wind: bool, raw: Path, decoded: Path, judged: dict[str, str]
) -> tuple[dict[str, Table], list[Rule]]:
    """All summaries of a data set and the rules on them; `wind`: the profile prepares it. A parquet
    file that Polars cannot read is a DataError."""
    manifest = files.read_json(raw / "manifest.json")
    counts = files.read_json(decoded / "counts.json")
    found, rules = frames.tables(raw, manifest, judged, counts), frames.rules(wind)
    for path, part in ((decoded / "states.parquet", states), (decoded / "winds.parquet", winds)):
        if path.exists():
            try:
                if wind or pl.scan_parquet(path).head(1).collect().height:
                    found |= part.tables(path)
            except (pl.exceptions.ComputeError, OSError) as error:
                raise DataError(
                    "a table cannot be read",
                    where=str(path),
                    found=str(error),
                    remedy="decode the data set again",
                ) from None
            rules = [*rules, *part.RULES]
        elif wind and part is winds:
            raise DataError(
                "the profile prepares this set, but decode made no winds of it",
                where=str(path),
                remedy="take it off profiles.*.wind in params.yaml, or look at the drops in "
                "counts.json",
            )
    return found, rules


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge a data set of winds: raw files, drops, states, winds."
    return runner.command("stages.winds.validate", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
