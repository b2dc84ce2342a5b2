"""The documents' printed numbers of searches: comparisons, times."""

import polars as pl

from stages.tables.published import listed, named, read

SEARCHED = {
    "comparisons": "comparisons",
    "query_time": "query_ms",
    "creation_time": "build_s",
}  # as printed: as we call it


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
