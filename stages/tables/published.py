"""The documents' printed numbers (data/published, long CSV) beside ours.

An experiment's `companions.csv` says which printed rows belong to which of its arms; misprints
carry the note of the transcription with them.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stages.errors import DataError

PUBLISHED = Path("data/published")
SEARCHED = {
    "comparisons": "comparisons",
    "query_time": "query_ms",
    "creation_time": "build_s",
}  # as printed: as we call it
SET_METRICS = ("mse", "rmse", "error_ratio", "error")
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
    """One printed error: of winds the RMSE per component, in knots; of sets of points as `sets`
    says."""

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


def companions(experiment: str) -> dict[str, list[Printed]]:
    """For each arm of an experiment, the printed RMSE values (kn) that belong beside it.

    DataError for a row that finds none, or for an arm that stands twice.
    """
    printed = read().filter(
        (pl.col("metric") == "rmse")
        & (pl.col("unit") == "kn")
        & pl.col("dataset").str.starts_with("wind")
    )
    return {
        row["arm"]: [
            Printed(r["table"], r["dataset"], r["mean"], r["std"], r["note"] or "")
            for r in named(printed, row, ("variant", "size"), experiment).iter_rows(named=True)
        ]
        for row in listed(experiment, ("arm",))
    }


def epochs(experiment: str) -> dict[str, float]:
    """For each arm, the printed duration of an epoch over one day (a million points), seconds;
    arms without one are left out."""
    printed = read().filter(
        (pl.col("metric") == "epoch_duration") & (pl.col("dataset") == "wind_1day")
    )
    found = {
        row["arm"]: printed.filter(*(pl.col(key) == row[key] for key in ("table", "model")))
        for row in listed(experiment, ("arm",))
    }
    return {arm: rows["mean"][0] for arm, rows in found.items() if len(rows)}


def searches(experiment: str) -> dict[tuple[str, str], dict[str, tuple[float, str]]]:
    """For each (set, arm) of a search experiment: metric -> (printed value, its table); the first
    table that prints one counts.

    Metrics: comparisons (a query), query_ms, build_s. DataError for a row that finds none, or that
    stands twice.
    """
    printed, found = read().filter(pl.col("metric").is_in(list(SEARCHED))), {}
    for row in listed(experiment, ("set", "arm", "table")):
        values = found.setdefault((row["set"], row["arm"]), {})
        for r in named(printed, row, ("dataset", "variant"), experiment).iter_rows(named=True):
            name = SEARCHED[r["metric"]]
            values.setdefault(
                name,
                (r["mean"] / (1000 if name == "build_s" and r["unit"] == "ms" else 1), r["table"]),
            )
    return found


def sets(experiment: str) -> dict[tuple[str, str], dict[str, Printed]]:
    """For each (data set as printed, arm) of an experiment on sets of points: metric -> the printed
    number; the first table that prints one counts.

    Metrics: mse, rmse (problem's units), error_ratio (%), error (not named); of training sets with
    `_train`. DataError for a row that finds none, or that stands twice.
    """
    printed, found = read().filter(pl.col("metric").is_in(SET_METRICS)), {}
    for row in listed(experiment, ("arm", "table")):
        for r in named(printed, row, ("variant", "size"), experiment).iter_rows(named=True):
            scale = 1e-4 if r["unit"] == "1e-4" else 1.0
            spread = None if r["std"] is None else scale * r["std"]
            one = Printed(r["table"], r["dataset"], scale * r["mean"], spread, r["note"] or "")
            found.setdefault((r["dataset"], row["arm"]), {}).setdefault(
                r["metric"] + ("_train" if r["split"] == "train" else ""), one
            )
    return found


def weather() -> dict[str, dict[str, Printed]]:
    """Thesis table 3.3: model -> metric as printed (rmse, angle_mae, ...) -> the printed number
    of its largest size."""
    found: dict[str, dict[str, Printed]] = {}
    for r in read().filter(pl.col("table") == "thesis 3.3").iter_rows(named=True):
        found.setdefault(r["model"], {})[r["metric"]] = Printed(
            r["table"], r["dataset"], r["mean"], r["std"], r["note"] or ""
        )
    return found


def tightness() -> dict[str, dict[str, Printed]]:
    """Thesis table C.7, of winds (kn by its magnitude): model -> bin of distance ('0.5-1',
    '2.5-inf') -> the printed error."""
    found: dict[str, dict[str, Printed]] = {}
    for r in read().filter(pl.col("table") == "thesis C.7").iter_rows(named=True):
        low, high = r["variant"].removeprefix("dist=").split("-")
        name = f"{float(low):g}-{float('inf') if high == 'end' else float(high):g}"
        found.setdefault(r["model"], {})[name] = Printed(
            r["table"], r["dataset"], r["mean"], r["std"], r["note"] or ""
        )
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
