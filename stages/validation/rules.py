"""Rules in data: bounds on one column of a small summary table, and what a gate is asked with.

A family says its rules with these; Great Expectations judges them (gate.py) and is not imported
here. MANIFEST holds for every data set: its raw files are the ones that were acquired.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl


@dataclass(frozen=True)
class Rule:
    """Bounds on `column` of the summary `table`: every row within [low, high], or (allowed)
    exactly these values."""

    name: str
    table: str
    column: str
    severity: Literal["critical", "warning"]
    remedy: str
    low: float | None = None
    high: float | None = None
    allowed: tuple[str, ...] | None = None
    rows: pl.Expr | None = None  # picks the rows behind a failure in the table's source

    @property
    def key(self) -> str:
        """Unique among rules: one name may warn early and stop late."""
        return f"{self.name}/{self.severity}"

    @property
    def limit(self) -> str:
        """The bound in words."""
        if self.allowed is not None:
            return "exactly " + ", ".join(self.allowed)
        low, high = (None if x is None else f"{x:g}" for x in (self.low, self.high))
        return (
            f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        )


@dataclass(frozen=True)
class Table:
    """A summary: rows (dicts), the column that names a row, and what it sums up, whole or by row
    name, to look examples up in."""

    rows: list[dict[str, Any]]
    key: str
    source: pl.LazyFrame | dict[str, pl.LazyFrame] | None = None

    def behind(self, places: list[str]) -> list[pl.LazyFrame]:
        """The large tables behind the named rows."""
        if isinstance(self.source, dict):
            return [self.source[place] for place in places]
        return [] if self.source is None else [self.source]


def both(
    name: str,
    table: str,
    column: str,
    remedy: str,
    *,
    warn: float,
    stop: float,
    rows: pl.Expr | None = None,
) -> list[Rule]:
    """Two upper bounds on one number: above `warn` it is recorded, above `stop` nothing goes on."""
    return [
        Rule(name, table, column, "warning", remedy, high=warn, rows=rows),
        Rule(name, table, column, "critical", remedy, high=stop, rows=rows),
    ]


MANIFEST = [
    Rule(
        "raw.files",
        "raw",
        "files",
        "critical",
        "the acquisition left nothing: run `dvc repro` again",
        low=1,
    ),
    Rule(
        "raw.bytes",
        "manifest",
        "differs",
        "critical",
        "a raw file is not the one acquired: acquire the set again",
        high=0,
    ),
]


def acquired(raw: Path, manifest: dict[str, Any], judged: dict[str, str]) -> dict[str, Table]:
    """Summaries of a raw folder for MANIFEST: how many files, and which differ from the manifest.

    `judged` is the SHA-256 of each file by path, taken from disk.
    """
    named = manifest["files"]
    matches = [
        {"file": name, "differs": int(judged.get((raw / name).as_posix()) != entry["sha256"])}
        for name, entry in sorted(named.items())
    ]
    return {
        "raw": Table([{"set": raw.name, "files": len(named)}], "set"),
        **({"manifest": Table(matches, "file")} if matches else {}),
    }
