"""Readers of tables that enter above the frame level: published states and published winds, one
entry a format, and winds whose columns declare their units (declared.py).

A format is known by its columns: our own winds with their truth, the meteo-particle wind.csv and
aggregated.csv (data README, notes W1 and W2; wind blows towards, m/s) and the weekly files of the
SkySoft set (thesis section 1.3; origin angle). Every cell is read as text and cast, so that an
all-digit ICAO address stays one and a damaged cell is a counted drop, not a crash. `record` is the
0-based number of the data row in its file (the header is not a record). A file is CSV, parquet,
JSON or JSON lines (tables.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stages.errors import DataError
from stages.units import KNOT_M_S
from stages.winds.decoding import bounds, declared, tables
from stages.winds.decoding.winds import conform, towards

DAY_S, WEEK_DAYS = 86_400.0, 7
# SkySoft does not state the unit of WIND_SPEED. The thesis' tables of errors in it are in kn, and
# its limit of 250 for a possible wind is the strongest jet in kn but beyond any on record in m/s:
# kn is taken.
FLIGHT_LEVEL_FT = 100.0

STATE_COLUMNS = {
    "ts_s": "ts",
    "lat_deg": "lat",
    "lon_deg": "lon",
    "alt_ft": "alt",
    "gs_kt": "gs_adsb",
    "trk_deg": "trk_adsb",
    "hdg_mag_deg": "hdg",
    "ias_kt": "ias",
    "mach": "mach",
    "tas_kt": "tas",
}


@dataclass(frozen=True)
class Format:
    """Columns a file must have, those of them that must hold a number in every row, and what
    makes our table of it."""

    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    table: Callable[[pl.LazyFrame, int], pl.LazyFrame]
    drops: Callable[[], pl.Expr] | None = None
    any_null: bool = False  # a null in any column, used or not, drops the row


def _own_winds(rows: pl.LazyFrame, number: int) -> pl.LazyFrame:
    return rows


def _meteo_winds(rows: pl.LazyFrame, number: int) -> pl.LazyFrame:
    return rows.with_columns(
        icao=pl.col("icao").str.to_uppercase(),
        ts_s="ts",
        lat_deg="lat",
        lon_deg="lon",
        alt_ft="alt",
        u_m_s="vwx",
        v_m_s="vwy",
    )


def _meteo_states(rows: pl.LazyFrame, number: int) -> pl.LazyFrame:
    """Of BDS 5,0 the file keeps track, ground speed and TAS but no roll; its TAS of 0 means "not
    available"."""
    tas = pl.when(pl.col("tas") > 0).then(pl.col("tas"))
    return (
        rows.with_columns(tas=tas)
        .select(
            "icao",
            "file",
            "record",
            "drop",
            *(pl.col(b).alias(a) for a, b in STATE_COLUMNS.items()),
            roll_deg=pl.lit(None, pl.Float64),
        )
        .with_columns(icao=pl.col("icao").str.to_uppercase())
    )


def _skysoft(rows: pl.LazyFrame, number: int) -> pl.LazyFrame:
    """Week `number`, day DAY, second UNIX_TIME of that day (which restarts at each midnight),
    counted from the first week."""
    u, v = towards(pl.col("WIND_SPEED") * KNOT_M_S, pl.col("WIND_ORIGIN_ANGLE_DEG"))
    return rows.with_columns(
        ts_s=(number * WEEK_DAYS + pl.col("DAY")) * DAY_S + pl.col("UNIX_TIME"),
        icao="FLIGHT_ID",
        lat_deg="LAT",
        lon_deg="LONG",
        alt_ft=pl.col("TRACK_ALTITUDE") * FLIGHT_LEVEL_FT,
        u_m_s=u,
        v_m_s=v,
    )


def _skysoft_drops() -> pl.Expr:
    day, time = pl.col("DAY"), pl.col("UNIX_TIME")
    return (
        pl.when((day < 0) | (day >= WEEK_DAYS) | (day != day.floor()))
        .then(pl.lit("day_outside_week"))
        .when((time < 0) | (time >= DAY_S))
        .then(pl.lit("time_outside_day"))
    )


_OWN = ("ts_s", "lat_deg", "lon_deg", "alt_ft", "u_m_s", "v_m_s", "u_true_m_s", "v_true_m_s")
_WIND = ("ts", "lat", "lon", "alt", "vwx", "vwy")
_STATE = (
    "ts",
    "lat",
    "lon",
    "alt",
    "gs_adsb",
    "trk_adsb",
    "hdg",
    "ias",
    "mach",
    "trk",
    "gs",
    "tas",
)
_WEEK = ("LAT", "LONG", "TRACK_ALTITUDE", "UNIX_TIME", "DAY", "WIND_SPEED", "WIND_ORIGIN_ANGLE_DEG")

WINDS = {
    "own": Format(("icao", *_OWN), _OWN, _own_winds),
    "meteo_particle": Format(("icao", *_WIND), _WIND, _meteo_winds),
    "skysoft": Format(("FLIGHT_ID", *_WEEK), _WEEK, _skysoft, _skysoft_drops, any_null=True),
}
STATES = {
    "meteo_particle": Format(
        ("icao", *_STATE), ("ts", "lat", "lon", "alt", "hdg", "ias", "mach"), _meteo_states
    )
}


SUFFIXES = (".csv", ".tsv", ".parquet", *tables.JSON_SUFFIXES)  # each may be followed by .gz
MEASURED = ("ts_s", "lat_deg", "lon_deg", "alt_ft", "u_m_s", "v_m_s")


def is_table(name: str) -> bool:
    """Whether a file's name is that of a table of states or winds."""
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)


def published(header: tuple[str, ...], formats: dict[str, Format]) -> str:
    """The name of the format whose columns are all in a header, whatever its blanks and capitals;
    '' for none."""
    there = set(map(tables.plain, header))
    whole = (name for name, form in formats.items() if {*map(tables.plain, form.columns)} <= there)
    return next(whole, "")


def kind(header: tuple[str, ...], called: str) -> str:
    """'ours' (columns that declare their units), 'winds' or 'states' (published) by a table's
    header, '' for another. InputError for a name that two columns have."""
    plain = tuple(map(tables.plain, header))
    found = "ours" if declared.known(plain) else ""
    for name, formats in (("winds", WINDS), ("states", STATES)):
        found = found or (name if published(header, formats) else "")
    if found:
        tables.refuse_repeated(plain, called)
    return found


def _find_format(path: Path, header: tuple[str, ...], formats: dict[str, Format]) -> Format:
    """The format whose columns are all in the file's header; DataError naming what is there when
    there is none."""
    if name := published(header, formats):
        return formats[name]
    known = "; ".join(f"{name}: {', '.join(form.columns)}" for name, form in formats.items())
    raise DataError(
        "a table has none of the known formats",
        where=str(path),
        expected=known,
        found=", ".join(header) or "nothing",
        remedy="add the format to stages/winds/decoding/readers.py",
    )


def read(path: Path, number: int, formats: dict[str, Format]) -> pl.LazyFrame:
    """A file as a lazy table in our columns, with `file`, `record` and `drop` (a reason, or null
    for a good row). Here rows enter: what no aircraft can report (bounds.py) goes no further.

    `number` is the file's place among its data set's files, sorted by name.
    """
    first = tables.head(path, str(path))
    form = _find_format(path, tables.names(path, first), formats)
    text = [name for name in form.columns if name not in {*_OWN, *_WIND, *_STATE, *_WEEK}]
    rows = tables.scan(path, first, form.columns).cast(pl.String).with_row_index("record")
    numbers = [name for name in form.columns if name not in text]
    parsed = {
        name: pl.col(name).str.strip_chars().cast(pl.Float64, strict=False) for name in numbers
    }
    damaged = pl.any_horizontal(
        parsed[n].is_null() & pl.col(n).is_not_null() | parsed[n].is_infinite() | parsed[n].is_nan()
        for n in numbers
    )
    wanted = pl.all().exclude("record") if form.any_null else pl.col(*text, *form.numbers)
    reason = (
        pl.when(damaged)
        .then(pl.lit("unreadable"))
        .when(pl.any_horizontal(wanted.is_null()))
        .then(pl.lit("missing_value"))
    )
    rows = rows.with_columns(drop=reason, **parsed)
    if form.drops:
        rows = rows.with_columns(drop=pl.coalesce("drop", form.drops()))
    rows = rows.with_columns(file=pl.lit(path.name), record=pl.col("record").cast(pl.UInt32))
    beyond = pl.when(bounds.outside()).then(pl.lit(bounds.REASON))
    return form.table(rows, number).with_columns(drop=pl.coalesce("drop", beyond))


def read_declared(path: Path, first: bytes) -> pl.LazyFrame:
    """As `read`, of winds whose columns declare their units. Where none names the aircraft, each
    row counts as one of its own: its number stands for the address."""
    rows = tables.scan(path, first)
    schema = rows.collect_schema()
    ways, unread = declared.ours(schema), declared.unread(schema)
    address = next((pl.col(name) for name in declared.AIRCRAFT if name in schema), None)
    if address is None:
        address = (pl.col("record") % 1_000_000).cast(pl.String).str.zfill(6)
    rows = rows.with_row_index("record").select(
        *ways.values(),
        *(unread[name].alias(f"{name} unread") for name in MEASURED),
        icao=address.cast(pl.String).str.strip_chars().str.to_uppercase(),
        file=pl.lit(path.name),
        record=pl.col("record").cast(pl.UInt32),
    )
    number = pl.col(*MEASURED)
    reason = (
        pl.when(pl.any_horizontal("^.* unread$") | pl.any_horizontal(number.is_infinite()))
        .then(pl.lit("unreadable"))
        .when(pl.any_horizontal(number.fill_nan(None).is_null()) | pl.col("icao").is_null())
        .then(pl.lit("missing_value"))
        .when(bounds.outside())
        .then(pl.lit(bounds.REASON))
    )
    return rows.with_columns(drop=reason)


def read_winds(path: Path, number: int) -> pl.LazyFrame:
    """A file of winds, published or with columns that declare their units, as winds columns +
    `drop`."""
    first = tables.head(path, str(path))
    names = tables.names(path, first)
    if not published(names, WINDS) and declared.known(map(tables.plain, names)):
        return conform(read_declared(path, first), "drop")
    return conform(read(path, number, WINDS), "drop")


def read_states(path: Path, number: int) -> pl.LazyFrame:
    """A published states file as states columns + `drop`."""
    return read(path, number, STATES)
