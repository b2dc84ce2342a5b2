"""The documents' printed numbers (data/published, long CSV) beside ours.

An experiment's `companions.csv` says which printed rows belong to which of its arms; misprints
carry the note of the transcription with them.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stages.errors import DataError

PUBLISHED = Path("data/published")
COLUMNS = (
    "table",
    "dataset",
    "model",
    "variant",
    "size",
    "split",
    "metric",
    "unit",
    "mean",
    "std",
    "note",
)


@dataclass(frozen=True)
class Printed:
    """One printed number, with its table, data set, spread and the transcription's note."""

    table: str
    dataset: str
    mean: float
    std: float | None
    note: str


def read() -> pl.DataFrame:
    """All transcribed rows with a value; DataError if there are none or a column is missing."""
    frames = []
    for path in sorted(PUBLISHED.glob("*.csv")):
        frame = pl.read_csv(path, infer_schema_length=0)
        if missing := set(COLUMNS) - set(frame.columns):
            raise DataError(
                "a transcription lacks columns",
                where=str(path),
                expected=", ".join(COLUMNS),
                found=f"no {sorted(missing)}",
            )
        frames.append(frame.select(COLUMNS))
    if not frames:
        raise DataError(
            "there are no transcribed tables",
            where=str(PUBLISHED),
            expected="CSV files, which are in git",
        )
    return (
        pl.concat(frames)
        .with_columns(pl.col("mean", "std").cast(pl.Float64, strict=False))
        .filter(pl.col("mean").is_not_null())
    )


def listed(experiment: str, key: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of an experiment's companions.csv. DataError if one stands twice, by the columns
    of `key`."""
    path = Path("reports") / experiment / "companions.csv"
    rows = [
        {name: value or "" for name, value in row.items()}
        for row in pl.read_csv(path, infer_schema_length=0).iter_rows(named=True)
    ]
    seen = set()
    for row in rows:
        if (one := tuple(row[name] for name in key)) in seen:
            raise DataError(
                "an arm stands twice among the companions", where=str(path), found=", ".join(one)
            )
        seen.add(one)
    return rows


def named(
    printed: pl.DataFrame, row: dict[str, str], keys: tuple[str, ...], experiment: str
) -> pl.DataFrame:
    """The printed rows that a row of companions.csv names: `table`, `model`, and those of `keys`
    that it fills. DataError for none."""
    here = printed.filter(
        *(pl.col(key) == row[key] for key in ("table", "model", *(key for key in keys if row[key])))
    )
    if here.is_empty():
        raise DataError(
            "a companion names no printed row",
            where=f"reports/{experiment}/companions.csv",
            found=str(row),
        )
    return here
