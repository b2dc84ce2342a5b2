"""Meteorological reports in a capture of one's own: wind and temperature that aircraft measured
themselves and sent as register 4,4 (ICAO Doc 9871 table A-2-68).

A reply does not say which register it holds, so a word that can be 4,4 is not yet a report. It
counts when it can be nothing else, its aircraft is known, its temperature is one that the air may
have at its altitude, and another reply of the same aircraft within a minute says nearly the same in
other bits: a register of constants repeats itself bit by bit, a damaged reply not at all.
"""

from pathlib import Path

import numpy as np
import polars as pl

from stages.params import Decode
from stages.units import KNOT_M_S
from stages.winds.decoding import atmosphere, states
from stages.winds.decoding.winds import split, towards
from stages.winds.modes import bds44, bits, frames, messages

COLUMNS = (
    "ts_s",
    "icao",
    "lat_deg",
    "lon_deg",
    "alt_ft",
    "u_m_s",
    "v_m_s",
    "temperature_k",
    "pressure_hpa",
    "humidity_percent",
    "turbulence",
)
REGISTER = "44"
FROM_STANDARD_K = 35.0  # how far from the standard atmosphere's temperature the air may be
REPEATED_S, REPEATED_M_S, REPEATED_K = 60.0, 10.0, 5.0  # what two replies of one moment may differ
NEIGHBOURS = (1, 2, -1, -2)  # replies of the aircraft, before and after, that may repeat one


def reports(path: Path, decode: Decode) -> tuple[pl.DataFrame, dict[str, int]]:
    """The reports of a file of frames, COLUMNS in order of time, and how many words that can be 4,4
    are none, by reason.

    Wind towards east and north in m/s, temperature in K, pressure in hPa, humidity in %,
    turbulence 0 (nil) to 3 (severe); null where not told. DataError for what holds no frames.
    """
    reading = frames.read(path).frames.unique(["ts_s", "hex"], keep="first", maintain_order=True)
    rows = pl.concat([reading, messages.decode(reading["hex"])], how="horizontal").with_columns(
        carried=pl.lit(False)
    )
    unfound = pl.col("drop").str.starts_with("bds_").fill_null(False)  # an address of its own
    rows = rows.with_columns(drop=pl.when(~unfound).then("drop")).sort(states.FILE_ORDER)
    rows, _ = states.confirm(rows, frozenset())
    good = rows.filter(pl.col("drop").is_null())
    can = rows.filter(pl.col("bds").str.split("|").list.contains(REGISTER))
    kept, counts = split(_judged(_placed(_decoded(can), good, decode)))
    return kept.select(COLUMNS).sort("ts_s", "icao"), counts["dropped"]


def _decoded(rows: pl.DataFrame) -> pl.DataFrame:
    """The words `mb` of replies and the fields of 4,4 beside them."""
    octets, _ = bits.parse_hex(bits.characters(rows["hex"], 28))
    mb = bits.words(octets)
    fields = {
        name: pl.Series(name, value, nan_to_null=True) for name, value in bds44.decode(mb).items()
    }
    u, v = towards(pl.col("wind_kt") * KNOT_M_S, pl.col("from_deg"))
    return rows.with_columns(mb=pl.Series(mb), **fields).with_columns(u_m_s=u, v_m_s=v)


def _placed(rows: pl.DataFrame, good: pl.DataFrame, decode: Decode) -> pl.DataFrame:
    """Replies with the newest position of their aircraft, and its altitude where they tell none."""
    squitters = good.filter(pl.col("df").is_in(states.CRC_FORMATS))
    places, _ = states.positions(squitters, decode)
    heights = good.select("ts_s", "icao", alt_ft="altitude_ft").drop_nulls()
    rows = states.latest(rows, places, ["lat_deg", "lon_deg"], decode.state_age_max_s)
    rows = states.latest(rows, heights, ["alt_ft"], decode.state_age_max_s)
    return rows.with_columns(alt_ft=pl.coalesce("altitude_ft", "alt_ft"))


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    """The replies with `drop`: why one is no report; null where it is."""
    standard = pl.Series(
        atmosphere.temperature_k(rows["alt_ft"].cast(pl.Float64).fill_null(np.nan).to_numpy())
    )
    unlike = (pl.col("temperature_k") - standard).abs() > FROM_STANDARD_K
    reason = (
        pl.when(pl.col("bds") != REGISTER)
        .then(pl.lit("bds44_ambiguous"))
        .when(pl.col("drop") == "address_unconfirmed")
        .then(pl.lit("bds44_address_unconfirmed"))
        .when(pl.col("source") == 0)
        .then(pl.lit("bds44_source_invalid"))
        .when(pl.col("wind_kt").is_null())
        .then(pl.lit("bds44_no_wind"))
        .when(pl.col("lat_deg").is_null() | pl.col("alt_ft").is_null())
        .then(pl.lit("bds44_no_position"))
        .when(unlike)
        .then(pl.lit("bds44_temperature_impossible"))
    )
    rows = rows.with_columns(drop=reason).sort("icao", "ts_s")
    held = rows.filter(pl.col("drop").is_null())
    again = held.select(pl.any_horizontal(_repeats(by) for by in NEIGHBOURS)).to_series()
    alone = held.filter(~again).select("ts_s", "hex", alone=pl.lit("bds44_unrepeated"))
    rows = rows.join(alone, on=["ts_s", "hex"], how="left", maintain_order="left")
    return rows.with_columns(drop=pl.coalesce("drop", "alone"))


def _repeats(by: int) -> pl.Expr:
    """Whether the aircraft's reply `by` places away says nearly the same in other bits."""

    def other(name: str) -> pl.Expr:
        return pl.col(name).shift(by).over("icao")

    squared = sum((pl.col(name) - other(name)) ** 2 for name in ("u_m_s", "v_m_s"))
    near = (
        ((pl.col("ts_s") - other("ts_s")).abs() <= REPEATED_S)
        & (squared <= REPEATED_M_S**2)
        & ((pl.col("temperature_k") - other("temperature_k")).abs() <= REPEATED_K)
        & (pl.col("mb") != other("mb"))
    )
    return near.fill_null(False)
