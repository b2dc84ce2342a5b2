"""The documents' printed numbers of winds: errors in knots, durations of epochs, weather
metrics."""

import polars as pl

from stages.tables.published import Printed, listed, named, read


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


def weather() -> dict[str, dict[str, Printed]]:
    """Thesis table 3.3: model -> metric as printed (rmse, angle_mae, ...) -> the printed number
    of its largest size."""
    found: dict[str, dict[str, Printed]] = {}
    for r in read().filter(pl.col("table") == "thesis 3.3").iter_rows(named=True):
        found.setdefault(r["model"], {})[r["metric"]] = Printed(
            r["table"], r["dataset"], r["mean"], r["std"], r["note"] or ""
        )
    return found


def format_printed(rows: list[Printed]) -> str:
    """'8.07 ± 0.11 (thesis 3.2)', or the range over several data sets."""
    if not rows:
        return "–"
    if len(rows) == 1:
        spread = f" ± {rows[0].std:.2f}" if rows[0].std is not None else ""
        return f"{rows[0].mean:.2f}{spread} ({rows[0].table})"
    values = [row.mean for row in rows]
    return f"{min(values):.2f}–{max(values):.2f} ({rows[0].table}, {len(rows)} days)"
