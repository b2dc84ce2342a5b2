"""Good tables for the validation tests, to be spoiled one rule at a time."""

import numpy as np
import polars as pl

from stages.winds.validation.winds import SCHEMA

START_S = 1_600_000_000.0


def winds(rows_each: int = 60, aircraft: int = 8) -> pl.DataFrame:
    """Winds that break no rule: smooth over ten minutes, every 10 s, of eight aircraft."""
    draw = np.random.default_rng(3)
    n = rows_each * aircraft
    t = np.repeat(START_S + 10.0 * np.arange(rows_each), aircraft) + np.tile(
        0.1 * np.arange(aircraft), rows_each
    )
    return pl.DataFrame(
        {
            "ts_s": t,
            "icao": [f"40{i:04X}" for i in range(aircraft)] * rows_each,
            "lat_deg": draw.uniform(45, 49, n),
            "lon_deg": draw.uniform(5, 9, n),
            "alt_ft": draw.integers(100, 1600, n) * 25.0,
            "u_m_s": 20 + draw.normal(0, 1, n),
            "v_m_s": -5 + draw.normal(0, 1, n),
            "u_true_m_s": [None] * n,
            "v_true_m_s": [None] * n,
            "file": ["a.csv"] * n,
            "record": np.arange(n),
        },
        schema_overrides={"u_true_m_s": pl.Float64, "v_true_m_s": pl.Float64, "record": pl.UInt32},
    )


def states() -> pl.DataFrame:
    """States that break no rule."""
    n = 200
    steady = {
        "lat_deg": 47.0,
        "lon_deg": 7.0,
        "alt_ft": 30000.0,
        "gs_kt": 450.0,
        "trk_deg": 90.0,
        "hdg_mag_deg": 88.0,
        "ias_kt": 280.0,
        "mach": 0.78,
        "tas_kt": 460.0,
        "roll_deg": None,
    }
    return pl.DataFrame(
        {
            "ts_s": START_S + np.arange(n),
            "icao": ["400001"] * n,
            **{k: [v] * n for k, v in steady.items()},
            "file": ["a.csv"] * n,
            "record": np.arange(n),
        },
        schema_overrides={"roll_deg": pl.Float64, "record": pl.UInt32},
    )


def set_rows(table: pl.DataFrame, rows: list[int], **values) -> pl.DataFrame:
    """The table with some columns overwritten in some rows."""
    there = pl.int_range(pl.len()).is_in(rows)
    return table.with_columns(
        pl.when(there).then(pl.lit(v, table.schema[k])).otherwise(pl.col(k)).alias(k)
        for k, v in values.items()
    )


assert list(winds().schema) == list(SCHEMA)
