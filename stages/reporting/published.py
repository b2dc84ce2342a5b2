"""The documents' printed numbers (data/published, long CSV) beside ours.

An experiment's `companions.csv` says which printed rows belong to which of its arms; misprints carry the note of the
transcription with them.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stages.errors import DataError

PUBLISHED = Path("data/published")
COLUMNS = ("table", "dataset", "model", "variant", "size", "split", "metric", "unit", "mean", "std", "note")


@dataclass(frozen=True)
class Printed:
    """One printed RMSE per wind component, in knots."""

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
            raise DataError("a transcription lacks columns", where=str(path), expected=", ".join(COLUMNS), found=f"no {sorted(missing)}")
        frames.append(frame.select(COLUMNS))
    if not frames:
        raise DataError("there are no transcribed tables", where=str(PUBLISHED), expected="CSV files, which are in git")
    return pl.concat(frames).with_columns(pl.col("mean", "std").cast(pl.Float64, strict=False)).filter(pl.col("mean").is_not_null())


def companions(experiment: str) -> dict[str, list[Printed]]:
    """For each arm of an experiment, the printed RMSE values (kn) that belong beside it.

    DataError for a row that finds none, or for an arm that stands twice.
    """
    printed = read().filter((pl.col("metric") == "rmse") & (pl.col("unit") == "kn") & pl.col("dataset").str.starts_with("wind"))
    found: dict[str, list[Printed]] = {}
    for row in pl.read_csv(Path("reports") / experiment / "companions.csv", infer_schema_length=0).iter_rows(named=True):
        if row["arm"] in found:
            raise DataError("an arm stands twice among the companions", where=f"reports/{experiment}/companions.csv", found=row["arm"])
        here = printed.filter((pl.col("table") == row["table"]) & (pl.col("model") == row["model"]))
        for key in ("variant", "size"):
            if row[key]:
                here = here.filter(pl.col(key) == row[key])
        if here.is_empty():
            raise DataError("a companion names no printed row", where=f"reports/{experiment}/companions.csv", found=str(row))
        found[row["arm"]] = [Printed(r["table"], r["dataset"], r["mean"], r["std"], r["note"] or "") for r in here.iter_rows(named=True)]
    return found


def shown(rows: list[Printed]) -> str:
    """'8.07 ± 0.11 (thesis 3.2)', or the range over several data sets."""
    if not rows:
        return "–"
    if len(rows) == 1:
        spread = f" ± {rows[0].std:.2f}" if rows[0].std is not None else ""
        return f"{rows[0].mean:.2f}{spread} ({rows[0].table})"
    values = [row.mean for row in rows]
    return f"{min(values):.2f}–{max(values):.2f} ({rows[0].table}, {len(rows)} days)"
