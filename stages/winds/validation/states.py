"""Rules on decoded aircraft states (states.parquet): the agreed columns, time order, and what an
airliner can do.

Nulls are no failure here: which fields a state must have is decided, and counted, where winds are
derived from it.
Units in the column names: s (Unix), degrees, ft (pressure altitude), kt; Mach has none.
"""

from pathlib import Path

import polars as pl

from stages.validation import reduce
from stages.validation.reduce import outside, share
from stages.validation.rules import Rule, Table, both

SCHEMA = {
    "ts_s": "Float64",
    "icao": "String",
    "lat_deg": "Float64",
    "lon_deg": "Float64",
    "alt_ft": "Float64",
    "gs_kt": "Float64",
    "trk_deg": "Float64",
    "hdg_mag_deg": "Float64",
    "ias_kt": "Float64",
    "mach": "Float64",
    "tas_kt": "Float64",
    "roll_deg": "Float64",
    "file": "String",
    "record": "UInt32",
}
LIMITS = {
    "lat_deg": (-90, 90),
    "lon_deg": (-180, 180),
    "alt_ft": (-2000, 60000),
    "gs_kt": (0, 800),
    "trk_deg": (-180, 360),
    "hdg_mag_deg": (-180, 360),
    "ias_kt": (0, 500),
    "mach": (0, 1),
    "tas_kt": (0, 700),
    "roll_deg": (-90, 90),
}
BACK = pl.col("ts_s") < pl.col("ts_s").shift(1)

RULES = [
    Rule(
        "states.schema",
        "states schema",
        "column",
        "critical",
        "the decode step must write the agreed columns",
        allowed=tuple(f"{name}: {dtype}" for name, dtype in SCHEMA.items()),
    ),
    Rule(
        "states.time_order",
        "states",
        "back",
        "critical",
        "the decode step must sort by time",
        high=0,
        rows=BACK,
    ),
    *(
        rule
        for name, limits in LIMITS.items()
        for rule in both(
            f"states.{name}",
            "states",
            name,
            "look at the register's decoder and at the source's units",
            warn=0,
            stop=0.01,
            rows=outside(name, *limits),
        )
    ),
]


def tables(path: Path) -> dict[str, Table]:
    """Shares of rows outside each limit; only the schema when it is wrong."""
    lazy = pl.scan_parquet(path)
    schema = Table(reduce.schema_rows(lazy), "column")
    if {row["column"] for row in schema.rows} != {
        f"{name}: {dtype}" for name, dtype in SCHEMA.items()
    }:
        return {"states schema": schema}
    one = reduce.summary(
        lazy,
        back=share(BACK),
        **{name: share(outside(name, *limits)) for name, limits in LIMITS.items()},
    )
    return {"states schema": schema, "states": Table([{"set": "states", **one}], "set", lazy)}
