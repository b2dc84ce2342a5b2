"""A small sky for the preparation tests: three hours of winds of twelve aircraft with pauses,
made by plain rules."""

from pathlib import Path

import numpy as np
import polars as pl

from stages.params import Prepare
from stages.winds import rows

START_S = 1_600_000_020.0  # not on a full minute: 40 s later one begins
SETTINGS = Prepare(
    slice_s=60,
    lead_s=600,
    embargo_s=300,
    split={"train": ((660, 3600),), "val": ((4560, 5700),), "test": ((6660, 9000),)},
)
WIND_MAX_M_S = 128.61


def winds(hours: float = 3.0, seed: int = 0, truth: bool = False) -> pl.DataFrame:
    """A good winds table; each aircraft reports every 20 s and is silent now and then for up to
    half an hour."""
    draw = np.random.default_rng(seed)
    parts = []
    for aircraft in range(12):
        steps = draw.choice(
            [20.0, 900.0, 901.0, 1500.0], int(hours * 180), p=[0.985, 0.005, 0.005, 0.005]
        )
        t = START_S + draw.uniform(0, 20) + np.cumsum(steps)
        t = t[t < START_S + hours * 3600].round(1)
        n = len(t)
        parts.append(
            pl.DataFrame(
                {
                    "ts_s": t,
                    "icao": [f"40{aircraft:04X}"] * n,
                    "lat_deg": 45 + draw.uniform(0, 4, n),
                    "lon_deg": 5 + draw.uniform(0, 4, n),
                    "alt_ft": draw.integers(100, 1600, n) * 25.0,
                    "u_m_s": draw.normal(20, 8, n),
                    "v_m_s": draw.normal(-5, 8, n),
                }
            )
        )
    both = pl.concat(parts).with_columns(
        file=pl.when(pl.col("ts_s") < START_S + 3600)
        .then(pl.lit("b.csv"))
        .otherwise(pl.lit("a.csv"))
    )
    return tidy(
        both.with_columns(
            u_true_m_s=pl.col("u_m_s") + 0.5 if truth else pl.lit(None, pl.Float64),
            v_true_m_s=pl.col("v_m_s") - 0.5 if truth else pl.lit(None, pl.Float64),
            record=pl.int_range(pl.len(), dtype=pl.UInt32),
        )
    )


def tidy(table: pl.DataFrame) -> pl.DataFrame:
    """The agreed column order and row order."""
    names = [
        "ts_s",
        "icao",
        "lat_deg",
        "lon_deg",
        "alt_ft",
        "u_m_s",
        "v_m_s",
        "u_true_m_s",
        "v_true_m_s",
        "file",
        "record",
    ]
    return table.select(names).sort("ts_s", "icao", "file", "record")


def prepared(table: pl.DataFrame, folder: Path, settings: Prepare = SETTINGS) -> dict:
    """Write the table, prepare it, return prepared.json's content; rows.parquet lies in
    `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    table.write_parquet(folder / "winds.parquet")
    return rows.prepare(folder / "winds.parquet", folder, settings, WIND_MAX_M_S, "toy", "sky")
