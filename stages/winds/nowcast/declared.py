"""Winds whose columns declare other units than ours: each name that is taken, and the way from it
to ts_s, lat_deg, lon_deg, alt_ft, u_m_s, v_m_s (blowing towards, m/s).

A unit stands in a column's name (alt_m, u_kn); a name without one is taken where it has one meaning
alone (lat, longitude). A wind may be told as a speed and the direction that it comes from.
"""

from collections.abc import Iterable

import polars as pl

from stages.units import FOOT_M, KNOT_M_S
from stages.winds.decoding.winds import towards

Column = tuple[str, ...]
SPEEDS = {"m_s": 1.0, "kn": KNOT_M_S, "kt": KNOT_M_S}


def _number(name: str, factor: float = 1.0) -> pl.Expr:
    return pl.col(name).cast(pl.Float64) * factor


def _moment(name: str) -> pl.Expr:
    """Unix seconds of datetimes in UTC."""
    return pl.col(name).cast(pl.Datetime("us")).cast(pl.Int64) / 1e6


def _text(name: str) -> pl.Expr:
    """Unix seconds of texts in ISO 8601, UTC."""
    text = pl.col(name).str.strip_chars().str.strip_chars_end("Z").str.replace("T", " ")
    return text.str.to_datetime(time_unit="us").cast(pl.Int64) / 1e6


def ours(schema: pl.Schema) -> dict[str, pl.Expr]:
    """Our columns that a table of that schema has, by name, and the way to each."""
    names = set(schema.names())
    found: dict[str, pl.Expr] = {}
    for column, ways in _ways(schema).items():
        for needs, expression in ways:
            if set(needs) <= names and column not in found:
                found[column] = expression.alias(column)
    return found


def known(names: Iterable[str]) -> bool:
    """Whether a table with these columns holds winds in units that they declare."""
    schema = pl.Schema({name: pl.Float64() for name in names})
    return len(ours(schema)) == len(_ways(schema))


def _ways(schema: pl.Schema) -> dict[str, list[tuple[Column, pl.Expr]]]:
    time = _text if schema.get("time") == pl.String else _moment
    wind: dict[str, list[tuple[Column, pl.Expr]]] = {
        axis: [((f"{axis}_{unit}",), _number(f"{axis}_{unit}", k)) for unit, k in SPEEDS.items()]
        for axis in ("u", "v")
    }
    for unit, factor in SPEEDS.items():
        pair = towards(_number(f"speed_{unit}", factor), _number("from_deg"))
        for axis, expression in zip(("u", "v"), pair, strict=True):
            wind[axis].append(((f"speed_{unit}", "from_deg"), expression))
    return {
        "ts_s": [
            (("ts_s",), _number("ts_s")),
            (("ts_ms",), _number("ts_ms", 1e-3)),
            (("time",), time("time")),
        ],
        "lat_deg": [((name,), _number(name)) for name in ("lat_deg", "lat", "latitude")],
        "lon_deg": [((name,), _number(name)) for name in ("lon_deg", "lon", "longitude")],
        "alt_ft": [
            (("alt_ft",), _number("alt_ft")),
            (("alt_m",), _number("alt_m", 1 / FOOT_M)),
            (("flight_level",), _number("flight_level", 100.0)),
        ],
        "u_m_s": wind["u"],
        "v_m_s": wind["v"],
    }
