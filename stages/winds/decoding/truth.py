"""Decoded registers and derived winds against the simulator's truth (truth.parquet: every 4 s per
aircraft).

Truth is interpolated linearly between an aircraft's two rows around a moment, each at most 4 s away
(angles the short way round); no truth there means the aircraft did not exist. Used for metrics and
for the truth columns beside each wind, never to decide anything. Units in the column names; winds
in m/s, towards.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.winds.decoding import winds
from stages.winds.decoding.declination import declination_deg

AGE_MAX_S = 4.0
LINEAR = ["lat_deg", "lon_deg", "u_true_m_s", "v_true_m_s", "gs_kt", "tas_kt", "roll_deg"]
ANGLES = ["trk_deg", "hdg_true_deg"]
# An accepted register is false where it is further from the truth than noise, register steps and
# interpolation in a turn explain.
ANGLE_MAX_DEG, SPEED_MAX_KT = 8.0, 20.0


def load(path: Path, start_s: float, end_s: float) -> pl.DataFrame:
    """Truth of [start_s, end_s] with a margin, sorted by time."""
    rows = pl.scan_parquet(path).filter(
        pl.col("ts_s").is_between(start_s - AGE_MAX_S, end_s + AGE_MAX_S)
    )
    return rows.select("ts_s", "icao", *LINEAR, *ANGLES).sort("ts_s", maintain_order=True).collect()


def at(rows: pl.DataFrame, truth: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """`names` of the truth at each row's icao and ts_s, as `true_<name>` columns in row order;
    null where there is no truth."""
    rows = rows.select("ts_s", "icao").with_row_index("row").sort("ts_s", maintain_order=True)
    sides = {}
    strategy: Any
    for side, strategy in (("a", "backward"), ("b", "forward")):
        source = truth.select(
            "ts_s",
            "icao",
            pl.col("ts_s").alias("t_" + side),
            *(pl.col(n).alias(f"{n}_{side}") for n in names),
        )
        rows = rows.join_asof(
            source,
            on="ts_s",
            by="icao",
            strategy=strategy,
            tolerance=AGE_MAX_S,
            check_sortedness=False,
        )
        sides[side] = [f"{n}_{side}" for n in names]
    span = pl.col("t_b") - pl.col("t_a")
    share = pl.when(span > 0).then((pl.col("ts_s") - pl.col("t_a")) / span).otherwise(0.0)
    values = []
    for name in names:
        before, after = (pl.coalesce(f"{name}_{x}", f"{name}_{y}") for x, y in ("ab", "ba"))
        step = after - before
        step = (step + 180.0) % 360.0 - 180.0 if name in ANGLES else step
        values.append((before + pl.coalesce(share, 0.0) * step).alias("true_" + name))
    return rows.sort("row").select(values)


def attach(table: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """The winds table with u_true_m_s and v_true_m_s."""
    found = at(table, truth, ["u_true_m_s", "v_true_m_s"])
    return table.with_columns(
        u_true_m_s=found["true_u_true_m_s"], v_true_m_s=found["true_v_true_m_s"]
    )


def _apart(rows: pl.DataFrame, measured: str, true: str, limit: float) -> np.ndarray:
    """Mask: a measured value is there and further than `limit` from the truth (the short way
    round for angles)."""
    gap = (rows[measured] - rows[true]).to_numpy()
    gap = (gap + 180.0) % 360.0 - 180.0 if measured.endswith("_deg") else gap
    return np.abs(gap) > limit  # NaN is not apart


def false_accepted(registers: pl.DataFrame, truth: pl.DataFrame) -> Counter:
    """Counts per register of 5,0 and 6,0: `accepted`, and `false`: no such aircraft, or not what
    it did at that moment."""
    accepted = registers.filter(pl.col("drop").is_null() & pl.col("bds").is_in(["50", "60"]))
    names = [*LINEAR, *ANGLES]
    rows = pl.concat([accepted, at(accepted, truth, names)], how="horizontal")
    standard = winds.standard_tas_kt(rows)
    place = (rows[name].to_numpy() for name in ("ts_s", "true_lat_deg", "true_lon_deg"))
    rows = rows.with_columns(
        standard_kt=pl.Series(standard),
        magnetic_deg=rows["true_hdg_true_deg"] - pl.Series(declination_deg(*place)),
    )
    nobody = rows["true_tas_kt"].is_null().to_numpy()
    fifty = (
        _apart(rows, "roll_deg", "true_roll_deg", ANGLE_MAX_DEG)
        | _apart(rows, "trk50_deg", "true_trk_deg", ANGLE_MAX_DEG)
        | _apart(rows, "gs50_kt", "true_gs_kt", SPEED_MAX_KT)
        | _apart(rows, "tas_kt", "true_tas_kt", SPEED_MAX_KT)
    )
    sixty = _apart(rows, "hdg_mag_deg", "magnetic_deg", ANGLE_MAX_DEG) | _apart(
        rows, "standard_kt", "true_tas_kt", SPEED_MAX_KT
    )
    result = Counter()
    for register, wrong in (("50", fifty), ("60", sixty)):
        here = (rows["bds"] == register).to_numpy()
        result[f"accepted_{register}"] += int(here.sum())
        result[f"false_{register}"] += int((here & (wrong | nobody)).sum())
    return result


def wind_errors(path: Path) -> dict[Any, Any]:
    """Error of derived winds against truth, over the rows of winds.parquet that have one; m/s,
    derived minus true."""
    rows = (
        pl.scan_parquet(path)
        .select(
            east=pl.col("u_m_s") - pl.col("u_true_m_s"),
            north=pl.col("v_m_s") - pl.col("v_true_m_s"),
        )
        .drop_nulls()
        .collect()
    )
    if rows.is_empty():
        return {"n": 0}
    east, north = rows["east"].to_numpy(), rows["north"].to_numpy()
    size = np.hypot(east, north)
    return {
        "n": len(rows),
        "rmse_component_m_s": float(np.sqrt(np.mean((east**2 + north**2) / 2))),
        "rmse_east_m_s": float(np.sqrt(np.mean(east**2))),
        "rmse_north_m_s": float(np.sqrt(np.mean(north**2))),
        "bias_east_m_s": float(np.mean(east)),
        "bias_north_m_s": float(np.mean(north)),
        "median_vector_m_s": float(np.median(size)),
        "p95_vector_m_s": float(np.percentile(size, 95)),
        "max_vector_m_s": float(size.max()),
    }
