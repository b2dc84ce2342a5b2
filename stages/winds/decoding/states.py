"""Decoded Mode-S messages to aircraft states: one state for each accepted BDS 6,0, with the newest
of everything else.

A Comm-B reply says neither which register it holds nor, beyond doubt, who sent it: the address
comes out of the parity, so a damaged reply names another aircraft, and the register is inferred.
Both are checked here against what the same aircraft said in frames that carry a CRC (ADS-B):
altitude, ground speed and track; and 6,0 against itself (airspeed, Mach and altitude) and against
5,0 (true airspeed). A reply that fits 5,0 and 6,0 is used only when exactly one reading agrees and
the other is contradicted. Values are joined from the past only. Units in the column names; `drop`
holds a reason, null means kept.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stages.params import Decode
from stages.winds.decoding import winds
from stages.winds.modes import identify, position

CRC_FORMATS, PARITY_FORMATS, COMM_B = (11, 17, 18), (0, 4, 5, 16, 20, 21), (20, 21)
REPEATS = 2  # replies that confirm an address where no frame of the capture has a CRC
FILE_ORDER = ["ts_s", "file", "record"]
COLUMNS = {
    "ts_s": pl.Float64,
    "icao": pl.String,
    "lat_deg": pl.Float64,
    "lon_deg": pl.Float64,
    "alt_ft": pl.Float64,
    "gs_kt": pl.Float64,
    "trk_deg": pl.Float64,
    "hdg_mag_deg": pl.Float64,
    "ias_kt": pl.Float64,
    "mach": pl.Float64,
    "tas_kt": pl.Float64,
    "roll_deg": pl.Float64,
    "file": pl.String,
    "record": pl.UInt32,
}


@dataclass(frozen=True)
class Assembled:
    """States, the registers they rest on (accepted and dropped), and the counts of each level."""

    states: pl.DataFrame
    registers: pl.DataFrame
    levels: dict[str, dict[Any, Any]]


def confirm(messages: pl.DataFrame, known: frozenset[str]) -> tuple[pl.DataFrame, frozenset[str]]:
    """Drop, as `address_unconfirmed`, replies whose address was never seen in a frame with a CRC;
    also returns all those seen.

    `known` are the addresses of earlier files of the capture. A capture without any such frame
    (Comm-B only) confirms an address by `REPEATS` replies: damage would have to give the same wrong
    24 bits twice.
    """
    whole = messages.filter(pl.col("drop").is_null())
    known = known | frozenset(
        whole.filter(pl.col("df").is_in(CRC_FORMATS))["icao"].drop_nulls().unique()
    )
    replies = whole.filter(pl.col("df").is_in(PARITY_FORMATS))["icao"]
    trusted = known or frozenset(
        replies.value_counts().filter(pl.col("count") >= REPEATS)["icao"].drop_nulls()
    )
    unsure = pl.col("df").is_in(PARITY_FORMATS) & ~pl.col("icao").is_in(list(trusted))
    drop = pl.coalesce("drop", pl.when(unsure.fill_null(True)).then(pl.lit("address_unconfirmed")))
    return messages.with_columns(drop=drop), known


def latest(
    rows: pl.DataFrame, source: pl.DataFrame, columns: list[str], age_max_s: float
) -> pl.DataFrame:
    """Attach the newest values of `columns` that the same aircraft has in `source` at or before
    each row, if young enough."""
    source = source.select("ts_s", "icao", *columns).drop_nulls()
    return rows.join_asof(
        source,
        on="ts_s",
        by="icao",
        strategy="backward",
        tolerance=age_max_s,
        check_sortedness=False,
    )


def assemble(messages: pl.DataFrame, decode: Decode) -> Assembled:
    """States of a time span. messages: frames + decoded columns + `drop`; `carried` rows are
    evidence from the span before.

    Rows that are carried are neither counted nor turned into states again. A frame whose register
    was not found (bds_...) is a drop of the level `registers`; its own altitude is still used.
    """
    unfound = pl.col("drop").str.starts_with("bds_").fill_null(False)
    good = messages.filter(pl.col("drop").is_null() | unfound).sort(FILE_ORDER)
    adsb = good.filter(pl.col("df").is_in(CRC_FORMATS))
    places, position_counts = positions(adsb, decode)
    registers = judge(evidence(good.filter(pl.col("df").is_in(COMM_B)), adsb, good, decode), decode)
    fresh = registers.filter(~pl.col("carried"))
    _, register_counts = winds.split(fresh)
    states, state_counts = winds.split(_states(registers, places, decode))
    levels = {"positions": position_counts, "registers": register_counts, "states": state_counts}
    return Assembled(states.select(pl.col(n).cast(t) for n, t in COLUMNS.items()), fresh, levels)


def positions(adsb: pl.DataFrame, decode: Decode) -> tuple[pl.DataFrame, dict[Any, Any]]:
    """Positions (ts_s, icao, lat_deg, lon_deg) of the airborne position frames, and the counts
    of those not carried."""
    rows = adsb.filter(pl.col("cpr_lat").is_not_null())
    found = position.positions(
        rows["ts_s"].to_numpy(),
        rows["icao"].str.to_integer(base=16).to_numpy(),
        rows["cpr_odd"].to_numpy(),
        rows["cpr_lat"].to_numpy(),
        rows["cpr_lon"].to_numpy(),
        decode.position_pair_max_s,
    )
    rows = pl.concat([rows.select("ts_s", "icao", "carried"), found], how="horizontal")
    _, counts = winds.split(rows.filter(~pl.col("carried")))
    return rows.filter(pl.col("drop").is_null()), counts


def evidence(
    registers: pl.DataFrame, adsb: pl.DataFrame, good: pl.DataFrame, decode: Decode
) -> pl.DataFrame:
    """Attach what else is known of the aircraft: gs_kt and trk_deg (ADS-B), alt_adsb_ft, alt_ft
    (own, else the newest)."""
    age = decode.state_age_max_s
    registers = latest(registers.drop("gs_kt", "trk_deg"), adsb, ["gs_kt", "trk_deg"], age)
    heights = adsb.select("ts_s", "icao", alt_adsb_ft="altitude_ft")
    registers = latest(registers, heights, ["alt_adsb_ft"], age)
    replies = latest(good.filter(pl.col("df").is_in(PARITY_FORMATS)), heights, ["alt_adsb_ft"], age)
    apart = (
        (pl.col("altitude_ft") - pl.col("alt_adsb_ft")).abs() > decode.altitude_difference_max_ft
    ).fill_null(False)
    heights = pl.concat(
        [
            heights.rename({"alt_adsb_ft": "alt_ft"}),
            replies.filter(~apart).select("ts_s", "icao", alt_ft="altitude_ft"),
        ]
    )
    registers = latest(registers, heights.sort("ts_s", maintain_order=True), ["alt_ft"], age)
    undecided = pl.when(pl.col("bds") != "50|60").then(
        pl.col("drop")
    )  # of what protocol leaves open, only this pair is decided
    return registers.with_columns(
        alt_ft=pl.coalesce("altitude_ft", "alt_ft"),
        drop=pl.when(apart).then(pl.lit("altitude_contradicts_adsb")).otherwise(undecided),
    )


def judge(registers: pl.DataFrame, decode: Decode) -> pl.DataFrame:
    """Decide `bds` where it is ambiguous, and drop what the aircraft's state contradicts. Adds
    `checked` (evidence was there).

    Reasons: altitude_contradicts_adsb, velocity_contradicts_adsb (5,0), airspeed_contradicts_mach
    and tas_contradicts_50 (6,0), and for replies that fit both ambiguous_both and ambiguous_neither
    (readings that agree) and ambiguous_unknown.
    """
    fits_50, against_50 = _reading_50(registers, decode)
    sure = registers.filter((pl.col("bds") == "50") & pl.Series(fits_50) & pl.col("drop").is_null())
    registers = latest(
        registers,
        sure.select("ts_s", "icao", tas50_kt="tas_kt"),
        ["tas50_kt"],
        decode.state_age_max_s,
    )
    against_mach, against_tas, agrees_60, wild = _reading_60(registers, decode)
    against_60 = against_mach | against_tas
    bds = registers["bds"].to_numpy().astype(str)
    pair = bds == "50|60"
    as_50 = pair & fits_50 & (against_60 | wild)
    as_60 = pair & agrees_60 & ~wild & against_50
    both, neither = pair & fits_50 & agrees_60 & ~wild, pair & against_50 & (against_60 | wild)
    bds = np.where(as_50, "50", np.where(as_60, "60", bds))
    reason = np.select(
        [
            both,
            neither,
            pair & ~as_50 & ~as_60,
            (bds == "50") & against_50,
            (bds == "60") & against_mach,
            (bds == "60") & against_tas,
        ],
        [
            "ambiguous_both",
            "ambiguous_neither",
            "ambiguous_unknown",
            "velocity_contradicts_adsb",
            "airspeed_contradicts_mach",
            "tas_contradicts_50",
        ],
        "",
    )
    checked = np.where(
        bds == "50", fits_50 | against_50, np.where(bds == "60", agrees_60 | against_60, False)
    )
    reasons = pl.Series(reason, dtype=pl.String).replace("", None)
    return registers.with_columns(
        bds=pl.Series(bds, dtype=pl.String),
        checked=pl.Series(checked),
        drop=pl.coalesce("drop", reasons),
    )


def _column(rows: pl.DataFrame, name: str) -> np.ndarray:
    return rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()


def _reading_50(registers: pl.DataFrame, decode: Decode) -> tuple[np.ndarray, np.ndarray]:
    """Masks: read as 5,0 the reply agrees with ADS-B's ground speed and track; it is
    contradicted by them."""
    values: Any = [
        _column(registers, name) for name in ("gs50_kt", "trk50_deg", "gs_kt", "trk_deg")
    ]
    fits = identify.consistent_50(*values, decode)
    return fits, np.isfinite(values).all(axis=0) & ~fits


def _reading_60(registers: pl.DataFrame, decode: Decode) -> tuple[np.ndarray, ...]:
    """Masks, read as 6,0: contradicted by Mach and altitude; by 5,0's true airspeed; agreed by one
    and contradicted by none; implying, with ADS-B's ground vector, a wind that no weather has
    (used on ambiguous replies only: the gate sees the others)."""
    ias, mach, alt, tas_50, gs, trk, hdg = (
        _column(registers, name)
        for name in ("ias_kt", "mach", "alt_ft", "tas50_kt", "gs_kt", "trk_deg", "hdg_mag_deg")
    )
    tas = winds.standard_tas_kt(registers)
    consistent = identify.consistent_60(ias, mach, alt)
    against_mach = np.isfinite(ias) & np.isfinite(mach) & np.isfinite(alt) & ~consistent
    with np.errstate(invalid="ignore"):
        against_tas = np.abs(tas - tas_50) > decode.tas_difference_max_kt
        wild = ~(np.hypot(*winds.wind_m_s(gs, trk, tas, hdg)) <= decode.wind_max_m_s)
    return (
        against_mach,
        against_tas,
        consistent & ~against_tas,
        wild & np.isfinite(gs) & np.isfinite(tas) & np.isfinite(hdg),
    )


def _states(registers: pl.DataFrame, places: pl.DataFrame, decode: Decode) -> pl.DataFrame:
    """One row per accepted 6,0 that is not carried, with position, and roll and true airspeed of
    the newest 5,0; plus `drop`."""
    age = decode.state_age_max_s
    accepted = registers.filter(pl.col("drop").is_null())
    fifty = accepted.filter(pl.col("bds") == "50")
    rows = accepted.filter((pl.col("bds") == "60") & ~pl.col("carried")).drop("roll_deg", "tas_kt")
    rows = latest(rows, places, ["lat_deg", "lon_deg"], age)
    rows = latest(rows, fifty, ["roll_deg"], age)
    rows = latest(rows, fifty, ["tas_kt"], age)
    missing = {
        "no_heading": ["hdg_mag_deg"],
        "no_position": ["lat_deg"],
        "no_velocity": ["gs_kt", "trk_deg"],
        "no_altitude": ["alt_ft"],
    }
    reason = pl.coalesce(
        pl.when(pl.any_horizontal(pl.col(c).is_null())).then(pl.lit(name))
        for name, c in missing.items()
    )
    return rows.with_columns(drop=reason)
