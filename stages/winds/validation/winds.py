"""Rules on derived winds (winds.parquet), whatever they were derived from.

Limits: 250 m/s is beyond any wind measured in the atmosphere aircraft fly in (jet streams reach
about 110); lat, lon, alt as an aircraft's can be. A column that never changes was not measured:
junzis/acsmc a320_406471.csv carries vwx = vwy = 0 throughout (data notes). Of a large set a few bad
rows are normal (the real hour has 8 over 250 m/s of 39,845): they are warned of, named, and dropped
by prepare; many of them mean the decoding is wrong, and stop. Units: s (Unix), degrees, feet, m/s
towards east and north.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.validation import reduce
from stages.validation.reduce import absent, outside, share
from stages.validation.rules import Rule, Table, both

SCHEMA = {
    "ts_s": "Float64",
    "icao": "String",
    "lat_deg": "Float64",
    "lon_deg": "Float64",
    "alt_ft": "Float64",
    "u_m_s": "Float64",
    "v_m_s": "Float64",
    "u_true_m_s": "Float64",
    "v_true_m_s": "Float64",
    "file": "String",
    "record": "UInt32",
}
MEASURED = ("lat_deg", "lon_deg", "alt_ft", "u_m_s", "v_m_s")
SPEED_MAX_M_S = 250.0
CELL_S, CELL_ROWS = 600.0, 5  # an aircraft's ten minutes, of at least five rows, for the scatter
STRETCH = 4_000_000  # rows of the file whose cells are in memory at once
STUCK_ROWS = 30  # an aircraft with this many rows and one single wind has a stuck sensor

SPEED = (pl.col("u_m_s") ** 2 + pl.col("v_m_s") ** 2).sqrt()
FAST = SPEED.is_not_nan() & (SPEED > SPEED_MAX_M_S)
OUTSIDE = {
    "lat_deg": outside("lat_deg", -90, 90),
    "lon_deg": outside("lon_deg", -180, 180),
    "alt_ft": outside("alt_ft", -2000, 60000),
}
STILL = (pl.col("u_m_s") == 0) & (pl.col("v_m_s") == 0)
LATE = outside("ts_s", reduce.YEAR_2000_S, reduce.YEAR_2100_S)
BACK = pl.col("ts_s") < pl.col("ts_s").shift(1)
FORM = ~pl.col("icao").str.contains("^[0-9A-F]{6}$")
# In time order, copies of a row stand beside each other: only rows with a neighbour of the same
# moment and aircraft are compared.
BESIDE = pl.any_horizontal(
    (pl.col("ts_s") == pl.col("ts_s").shift(n)) & (pl.col("icao") == pl.col("icao").shift(n))
    for n in (1, -1)
)
COPY, CONFLICT = pl.col("copy"), pl.col("conflict")  # made on those rows alone

AGAIN = "look at the decode step and at the units of the source"
RULES = [
    Rule(
        "winds.schema",
        "schema",
        "column",
        "critical",
        "the decode step must write the agreed columns",
        allowed=tuple(f"{name}: {dtype}" for name, dtype in SCHEMA.items()),
    ),
    Rule(
        "winds.rows",
        "winds",
        "rows",
        "critical",
        "too little data to learn from: look at the drop counts of the decode step",
        low=100,
    ),
    *both(
        "winds.absent",
        "columns",
        "absent_share",
        "rows without a number are dropped by prepare; many mean a broken source",
        warn=0,
        stop=0.05,
        rows=pl.any_horizontal(absent(name) for name in MEASURED),
    ),
    Rule(
        "winds.identity",
        "winds",
        "unidentified",
        "critical",
        "every row needs time, aircraft, file and record",
        high=0,
        rows=absent("ts_s") | pl.any_horizontal(pl.col("icao", "file", "record").is_null()),
    ),
    *(
        rule
        for name, rows in OUTSIDE.items()
        for rule in both(
            f"winds.{name}", "winds", f"{name}_outside", AGAIN, warn=0, stop=0.001, rows=rows
        )
    ),
    *both(
        "winds.speed",
        "winds",
        "fast",
        "prepare drops these rows; many of them mean wrong units or a wrong register",
        warn=0,
        stop=0.01,
        rows=FAST,
    ),
    Rule(
        "winds.constant",
        "columns",
        "extent",
        "critical",
        "the column was not measured: take the set off profiles.*.wind",
        low=1e-9,
    ),
    *both(
        "winds.still",
        "winds",
        "still",
        "a wind of exactly zero is a missing one",
        warn=0.01,
        stop=0.05,
        rows=STILL,
    ),
    *both(
        "winds.stuck",
        "winds",
        "stuck",
        "aircraft that report one single wind: drop them from the source",
        warn=0,
        stop=0.2,
    ),
    *both(
        "winds.duplicates",
        "copies",
        "copies",
        "prepare drops the copies; many of them mean a file was read twice",
        warn=0,
        stop=0.05,
        rows=COPY,
    ),
    *both(
        "winds.conflicts",
        "copies",
        "conflicts",
        "one aircraft with two winds at one moment: look at the decode step",
        warn=0.01,
        stop=0.5,
        rows=CONFLICT,
    ),
    Rule(
        "winds.time_order",
        "winds",
        "back",
        "critical",
        "the decode step must sort by time",
        high=0,
        rows=BACK,
    ),
    Rule(
        "winds.time_range",
        "winds",
        "late",
        "critical",
        "stamps outside the years 2000 to 2099: is the time in Unix seconds?",
        high=0,
        rows=LATE,
    ),
    Rule(
        "winds.icao",
        "winds",
        "malformed",
        "warning",
        "addresses are six hexadecimal digits, upper case",
        high=0,
        rows=FORM,
    ),
    Rule(
        "winds.aircraft",
        "winds",
        "aircraft",
        "warning",
        "winds of few aircraft cover little of the sky",
        low=5,
    ),
    Rule(
        "winds.rows_per_aircraft",
        "winds",
        "rows_median",
        "warning",
        "short tracks: look at the drop counts of the decode step",
        low=10,
    ),
    Rule(
        "winds.largest_aircraft",
        "winds",
        "rows_largest_share",
        "warning",
        "one aircraft dominates the set",
        high=0.5,
    ),
    Rule(
        "winds.rate",
        "winds",
        "rate_max_per_s",
        "warning",
        "more rows per second than any radar makes: is a file there twice?",
        high=10,
    ),
    Rule("winds.spread", "spread", "std_m_s", "critical", AGAIN, low=0.1, high=60),
    Rule(
        "winds.scatter",
        "winds",
        "scatter_m_s",
        "warning",
        "an aircraft's wind jumps about within ten minutes: " + AGAIN,
        high=15,
    ),
]


def tables(path: Path) -> dict[str, Table]:
    """Summaries of winds.parquet. With a wrong schema only the schema's own, as nothing else can
    be asked then."""
    lazy = pl.scan_parquet(path)
    schema = Table(reduce.schema_rows(lazy), "column")
    if {row["column"] for row in schema.rows} != {
        f"{name}: {dtype}" for name, dtype in SCHEMA.items()
    }:
        return {"schema": schema}
    one = summary(lazy)
    columns = [
        {
            "column": name,
            "absent_share": one[f"{name} absent_share"],
            "extent": extent(one[f"{name} min"], one[f"{name} max"]),
        }
        for name in MEASURED
    ]
    spread = [{"column": name, "std_m_s": one[f"{name} std"]} for name in ("u_m_s", "v_m_s")]
    whole = {name: value for name, value in one.items() if " " not in name}
    row = {
        "set": "winds",
        **whole,
        **per_aircraft(lazy, one["rows"]),
        "scatter_m_s": scatter(lazy, one["rows"]),
    }
    beside = lazy.filter(BESIDE).collect(engine="streaming")
    beside = beside.with_columns(
        copy=~pl.struct("ts_s", "icao", *MEASURED).is_first_distinct()
    ).with_columns(conflict=~COPY & ~pl.struct("ts_s", "icao").is_first_distinct())
    n = max(one["rows"], 1)
    copies = {
        "set": "winds",
        "copies": beside["copy"].sum() / n,
        "conflicts": beside["conflict"].sum() / n,
    }
    return {
        "schema": schema,
        "winds": Table([row], "set", lazy),
        "columns": Table(columns, "column", lazy),
        "spread": Table(spread, "column"),
        "copies": Table([copies], "set", beside.lazy()),
    }


def summary(lazy: pl.LazyFrame) -> dict[str, Any]:
    """One pass over the file: shares of rows that break a rule, and each measured column's own."""
    return reduce.summary(
        lazy,
        rows=pl.len(),
        unidentified=share(
            absent("ts_s") | pl.any_horizontal(pl.col("icao", "file", "record").is_null())
        ),
        **{f"{name}_outside": share(rows) for name, rows in OUTSIDE.items()},
        fast=share(FAST),
        still=share(STILL),
        back=share(BACK),
        late=share(LATE),
        malformed=share(FORM),
        **{
            f"{name} {what}": expression
            for name in MEASURED
            for what, expression in (
                ("absent_share", share(absent(name))),
                ("min", pl.col(name).min()),
                ("max", pl.col(name).max()),
            )
        },
        **{
            f"{name} std": pl.col(name).filter(SPEED <= SPEED_MAX_M_S).std()
            for name in ("u_m_s", "v_m_s")
        },
    )


def extent(low: float | None, high: float | None) -> float | None:
    """How far a column reaches; None if it holds nothing."""
    return None if low is None or high is None else high - low


def per_aircraft(lazy: pl.LazyFrame, rows: int) -> dict[str, float]:
    """Rows per aircraft (median, largest share, most per second) and the share of aircraft whose
    wind never changes."""
    each: Any = (
        lazy.group_by("icao")
        .agg(
            n=pl.len(),
            seconds=pl.col("ts_s").max() - pl.col("ts_s").min(),
            moves=(pl.col("u_m_s").max() > pl.col("u_m_s").min())
            | (pl.col("v_m_s").max() > pl.col("v_m_s").min()),
        )
        .collect(engine="streaming")
    )
    long: Any = each.filter(pl.col("n") >= STUCK_ROWS)
    rate: Any = (long["n"] / long["seconds"].clip(1.0)).max()
    return {
        "aircraft": len(each),
        "rows_median": each["n"].median() or 0.0,
        "rows_largest_share": (each["n"].max() or 0) / max(rows, 1),
        "rate_max_per_s": rate or 0.0,
        "stuck": (~long["moves"].fill_null(False)).sum() / max(len(long), 1),
    }


def scatter(lazy: pl.LazyFrame, rows: int) -> float:
    """Median, over an aircraft's ten-minute cells, of the wind vector's standard deviation; 0
    without such cells. m/s.

    By stretches of the file, as a month of traffic has tens of millions of cells; a cell that a
    seam cuts counts as two.
    """
    found = [np.empty(0)]
    for offset in range(0, rows, STRETCH):
        held = (
            lazy.slice(offset, STRETCH)
            .filter(SPEED.is_finite())
            .select("icao", (pl.col("ts_s") / CELL_S).floor().alias("cell"), "u_m_s", "v_m_s")
            .collect()
            .sort("icao", "cell", maintain_order=True)
        )
        found.append(_spreads(held))
    every = np.concatenate(found)
    return float(np.median(every)) if len(every) else 0.0


def _spreads(held: pl.DataFrame) -> np.ndarray:
    """The standard deviation of the wind vector in each cell of CELL_ROWS rows or more, m/s; rows
    lie cell by cell. Sums go row by row: Polars' own meet in the order in which threads end."""
    cell = held.select(pl.struct("icao", "cell").rle_id()).to_series().to_numpy()
    n = np.bincount(cell)
    variance = np.zeros(len(n))
    for name in ("u_m_s", "v_m_s"):
        value = held[name].to_numpy().astype(np.float64)
        mean = np.bincount(cell, value) / n
        variance += np.bincount(cell, (value - mean[cell]) ** 2) / np.maximum(n - 1, 1)
    return np.sqrt(variance[n >= CELL_ROWS])
