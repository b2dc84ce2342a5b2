"""Wind = ground vector - air vector, in one convention: u east, v north, m/s, the direction the
wind blows TOWARDS.

The ground vector is ADS-B's speed over ground along the true track; the air vector is the true
airspeed (from BDS 6,0's indicated airspeed taken as calibrated, else from its Mach number, in the
standard atmosphere) along the true heading (BDS 6,0's magnetic heading + declination). A banked
aircraft's heading and track belong to different moments: the roll filter drops it, and drops what
it cannot see where replies could have told the roll. No wind is dropped for its size here: the gate
must see the impossible ones.
"""

from typing import Any

import numpy as np
import polars as pl

from stages.params import Decode
from stages.units import KNOT_M_S
from stages.winds.decoding import atmosphere
from stages.winds.decoding.declination import covers, declination_deg

COLUMNS = {
    "ts_s": pl.Float64,
    "icao": pl.String,
    "lat_deg": pl.Float64,
    "lon_deg": pl.Float64,
    "alt_ft": pl.Float64,
    "u_m_s": pl.Float64,
    "v_m_s": pl.Float64,
    "u_true_m_s": pl.Float64,
    "v_true_m_s": pl.Float64,
    "file": pl.String,
    "record": pl.UInt32,
}
ORDER = ["ts_s", "icao", "file", "record"]


def towards(speed: pl.Expr, origin_deg: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """East and north parts, blowing towards, of a wind given by speed and the direction it comes
    FROM (degrees from north)."""
    angle = origin_deg.radians()
    return -speed * angle.sin(), -speed * angle.cos()


def wind_m_s(
    gs_kt: np.ndarray, trk_deg: np.ndarray, tas_kt: np.ndarray, hdg_deg: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(u, v) in m/s, towards, from ground speed and true airspeed (kn) along true track and true
    heading (degrees)."""
    track, heading = np.radians(trk_deg), np.radians(hdg_deg)
    return (
        KNOT_M_S * (gs_kt * np.sin(track) - tas_kt * np.sin(heading)),
        KNOT_M_S * (gs_kt * np.cos(track) - tas_kt * np.cos(heading)),
    )


def tally(reasons: pl.Series) -> dict[str, int]:
    """How many rows were dropped for each reason; null means kept."""
    counted = reasons.drop_nulls().value_counts().sort(reasons.name)
    return dict(counted.iter_rows())


def split(rows: pl.DataFrame) -> tuple[pl.DataFrame, dict[Any, Any]]:
    """Rows whose `drop` is null (without that column), and {"read", "kept", "dropped": {reason:
    n}}."""
    kept = rows.filter(pl.col("drop").is_null()).drop("drop")
    return kept, {"read": len(rows), "kept": len(kept), "dropped": tally(rows["drop"])}


def standard_tas_kt(states: pl.DataFrame, air: atmosphere.Air = atmosphere.ICAO) -> np.ndarray:
    """True airspeed (kn) of each state in the standard atmosphere: from IAS where there is one,
    else from Mach, else NaN."""
    ias, mach, alt = (states[name].to_numpy() for name in ("ias_kt", "mach", "alt_ft"))
    from_ias = atmosphere.tas_from_cas(ias, alt, air)
    return np.where(np.isfinite(from_ias), from_ias, atmosphere.tas_from_mach(mach, alt))


def derive(
    states: pl.DataFrame, decode: Decode, roll_needed: bool, air: atmosphere.Air = atmosphere.ICAO
) -> tuple[pl.DataFrame, dict[Any, Any]]:
    """Winds of a states table, in its row order, and the counts of what was read, kept and dropped
    for which reason.

    A state without a roll (no fresh BDS 5,0) may be in a turn: with `roll_needed` (sets that enter
    as frames) it is dropped as `roll_unknown`; without (sets that enter as states: a published
    table has no roll to ask for) it passes. `decode.declination` off leaves headings magnetic, as
    the published wind.csv has them.
    """
    tas = standard_tas_kt(states, air)
    known = pl.col("hdg_mag_deg").is_finite() & pl.Series(np.isfinite(tas))
    reason = (
        pl.when(~pl.col("alt_ft").is_finite() | pl.col("alt_ft").is_null())
        .then(pl.lit("no_altitude"))
        .when(~(pl.col("gs_kt").is_finite() & pl.col("trk_deg").is_finite()).fill_null(False))
        .then(pl.lit("no_velocity"))
        .when(~(pl.col("lat_deg").is_finite() & pl.col("lon_deg").is_finite()).fill_null(False))
        .then(pl.lit("no_position"))
        .when(~known.fill_null(False))
        .then(pl.lit("no_air_vector"))
        .when(~pl.Series(covers(states["ts_s"].to_numpy()) | (not decode.declination)))
        .then(pl.lit("time_outside_model"))
        .when((pl.col("roll_deg").abs() > decode.roll_max_deg).fill_null(False))
        .then(pl.lit("banked"))
        .when(~pl.col("roll_deg").is_finite().fill_null(False) & roll_needed)
        .then(pl.lit("roll_unknown"))
        .otherwise(None)
    )
    rows, counts = split(states.with_columns(drop=reason, tas_kt=pl.Series(tas)))
    heading = rows["hdg_mag_deg"].to_numpy()
    if decode.declination:
        heading = heading + declination_deg(
            *(rows[name].to_numpy() for name in ("ts_s", "lat_deg", "lon_deg"))
        )
    u, v = wind_m_s(
        rows["gs_kt"].to_numpy(), rows["trk_deg"].to_numpy(), rows["tas_kt"].to_numpy(), heading
    )
    return conform(rows.with_columns(u_m_s=pl.Series(u), v_m_s=pl.Series(v))), counts


def conform(winds: Any, *more: str) -> Any:
    """The winds table's columns in order and type, then `more`; truth is null where not known.
    Takes a frame or a lazy frame."""
    have = winds.collect_schema().names()
    return winds.select(
        *((pl.col(n) if n in have else pl.lit(None).alias(n)).cast(t) for n, t in COLUMNS.items()),
        *more,
    )
