"""Rules on sets of tokens: the raw files as acquired; every split filled; classes none of which
stands for nearly all; few rows left out."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stages import files, runner
from stages.tokens.layout import ABOUT, TARGETS
from stages.tokens.settings import tokens_of
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired

MODULE = "stages.tokens.validate"
RULES = [
    *MANIFEST,
    Rule("tokens.parts", "parts", "rows", "critical",
         "a split has too few rows: mend splits, or make more", low=50),
    Rule("tokens.dropped", "set", "dropped", "warning",
         "many rows were left out: see dropped in about.json", high=0.2),
    Rule("tokens.classes", "set", "largest", "critical",
         "one class stands for nearly all rows: nothing is to be learnt", high=0.9),
]  # fmt: skip


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    known = tokens_of(asked.parameters, asked["profile"]).datasets
    runner.known("set of tokens", asked["dataset"], known)
    return stage.work(asked, MODULE, "prepared", gather, {})


def gather(
    raw: Path, prepared: Path, judged: dict[str, str]
) -> tuple[dict[str, Table], list[Rule]]:
    """The summaries of a set and the rules on them."""
    about = files.read_json(prepared / ABOUT)
    targets = np.load(prepared / TARGETS, allow_pickle=False)
    kept, lost = sum(about["rows"].values()), sum(about["dropped"].values())
    largest = float(np.bincount(targets).max() / len(targets)) if targets.ndim == 1 else 0.0
    row = {"set": raw.name, "dropped": lost / (kept + lost), "largest": largest}
    parts = [{"part": name, "rows": count} for name, count in about["rows"].items()]
    manifest = files.read_json(raw / "manifest.json")
    tables = {"parts": Table(parts, "part"), "set": Table([row], "set")}
    return {**acquired(raw, manifest, judged), **tables}, RULES


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge a set of tokens: its splits and classes."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
