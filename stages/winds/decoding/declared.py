"""Winds whose columns declare other units than ours: each name that is taken, and the way from it
to ts_s, lat_deg, lon_deg, alt_ft, u_m_s, v_m_s (blowing towards, m/s).

A unit stands in a column's name (alt_m, u_kn); a name without one is taken where it has one meaning
alone (lat, longitude). A wind may be told as a speed and the direction that it comes from. A time
(`ts_s`, `time`) is a datetime, a text in ISO 8601, or a number: of Unix seconds, or of the unit in
which it lies in years that there are (milliseconds, microseconds, nanoseconds). Texts may hold the
numbers.
"""

from collections.abc import Iterable

import polars as pl

from stages.units import FOOT_M, KNOT_M_S
from stages.winds.decoding.winds import towards

Column = tuple[str, ...]
# Two columns that tell the same differ by no more: rounding to seconds, flight levels, knots.
SAME = {"ts_s": 1.0, "lat_deg": 0.01, "lon_deg": 0.01, "alt_ft": 150.0, "u_m_s": 1.0, "v_m_s": 1.0}
AIRCRAFT = ("icao", "icao24")
YEARS_S = (631_152_000.0, 4.1e9)  # 1990 to 2100, Unix seconds: in no two units of them
FRACTIONS = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
SPEEDS = {"m_s": 1.0, "kn": KNOT_M_S, "kt": KNOT_M_S}
# A moment's spellings, each turned into the next one's: at last YYYY-MM-DD HH:MM:SS.f+HH:MM.
SPELLINGS = (
    (r"^(\d{4})(\d{2})(\d{2})(T|$)", "$1-$2-$3$4"),
    (r"T(\d{2})(\d{2})(\d{2})", "T$1:$2:$3"),
    (r"T(\d{2})(\d{2})([^:\d]|$)", "T$1:$2$3"),
    (r"T(\d{2})([^:\d]|$)", "T$1:00$2"),
    (r"(:\d{2}),(\d)", "$1.$2"),
    (r"^(\d{1,2})\.(\d{1,2})\.(\d{4})", "$3-$2-$1"),  # dots alone say that the day comes first
    (r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", "$1-$2-$3"),
    (r"^(\d{4}-\d{1,2}-\d{1,2})$", "$1 00:00:00"),
    (r"[T ]+(\d{1,2}:\d{2})([^:\d]|$)", " ${1}:00$2"),
    (r"(\d)T(\d)", "$1 $2"),
    (r"\s*(?:Z|UTC)$", "+00:00"),
    (r"( [\d:.]+)$", "${1}+00:00"),
    (r"\s*([+-]\d{2})$", "${1}:00"),
    (r"\s+([+-]\d{2}:?\d{2})$", "$1"),
)


def _number(name: str, kind: pl.DataType | None, factor: float = 1.0) -> pl.Expr:
    """Numbers, or texts of them; null for what is none, truth and moments among it."""
    if kind is not None and (kind == pl.Boolean or kind.is_temporal()):
        return pl.lit(None, pl.Float64)
    cell = pl.col(name).str.strip_chars() if kind == pl.String else pl.col(name)
    return cell.cast(pl.Float64, strict=False) * factor


def _moment(name: str, kind: pl.DataType | None) -> pl.Expr:
    """Unix seconds of datetimes (UTC where they name no zone), of numbers (`unix_s`), or of texts
    of either; null for what is none."""
    if kind == pl.String:
        date = pl.col(name).str.contains(r"^\s*\d{8}\s*$")  # and no second of 1970 to 1973
        return pl.coalesce(pl.when(~date).then(unix_s(_number(name, kind))), _text(pl.col(name)))
    if kind is not None and kind.is_temporal():
        return pl.col(name).cast(pl.Datetime("us")).cast(pl.Int64) / 1e6
    return unix_s(_number(name, kind))


def unix_s(number: pl.Expr) -> pl.Expr:
    """Unix seconds of numbers of them, or of milliseconds, microseconds or nanoseconds: each in the
    unit in which it lies from 1990 to 2100."""
    first, last = YEARS_S
    told = [
        pl.when(number.is_between(first * factor, last * factor)).then(number / factor)
        for factor in FRACTIONS
    ]
    return pl.coalesce(*told, number)


def second(number: float) -> float:
    """Unix seconds of one number, as those of a column."""
    first, last = YEARS_S
    return next((number / f for f in FRACTIONS if first * f <= number <= last * f), number)


def moment(text: str) -> float | None:
    """Unix seconds of one text, as those of a column; None for what is none."""
    found: float | None = pl.select(_text(pl.lit(text))).item()
    return found


def _text(text: pl.Expr) -> pl.Expr:
    """Unix seconds of texts in ISO 8601, UTC where they name no offset, to the microsecond; blanks,
    slashes and dots may part them, and seconds be left out."""
    text = text.str.strip_chars().str.to_uppercase()
    for pattern, plain in SPELLINGS:
        text = text.str.replace(pattern, plain)
    text = pl.when(text.str.contains(r"^\d{4}-")).then(text)  # no year of two digits
    moment = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit="us", strict=False)
    return moment.cast(pl.Int64) / 1e6


def ours(schema: pl.Schema) -> dict[str, pl.Expr]:
    """Our columns that a table of that schema has, by name, and the way to each."""
    return {column: way.alias(column) for column, (_, way) in _taken(schema).items()}


def unread(schema: pl.Schema) -> dict[str, pl.Expr]:
    """Of each of our columns that a table of that schema has, whether its cells hold something from
    which it cannot be read; an empty cell holds nothing."""
    found = {}
    for column, (needs, way) in _taken(schema).items():
        holds = [
            pl.col(name).str.strip_chars() != ""
            if schema[name] == pl.String
            else pl.col(name).is_not_null()
            for name in needs
        ]
        found[column] = (way.is_null() & pl.all_horizontal(holds)).fill_null(False).alias(column)
    return found


def apart(schema: pl.Schema) -> dict[str, pl.Expr]:
    """Of each of our columns that a table of that schema tells in several ways, by a sentence's
    beginning that names them: whether the first, which is read, and another disagree in a row."""
    differ: dict[str, pl.Expr] = {}
    for column, ways in _ways(schema).items():
        there = [(needs, way) for needs, way in ways if set(needs) <= set(schema)]
        for needs, other in there[1:]:
            first, way = there[0]
            said = f"{' and '.join(first)} and {' and '.join(needs)} disagree"
            far = ((way - other).abs() > SAME[column]).fill_null(False)
            differ[said] = differ[said] | far if said in differ else far
    return {said: far.alias(said) for said, far in differ.items()}


def sources(schema: pl.Schema, column: str) -> Column:
    """The columns of a table of that schema from which one of ours is read."""
    return _taken(schema)[column][0]


def _taken(schema: pl.Schema) -> dict[str, tuple[Column, pl.Expr]]:
    """Of each of our columns that a table has, the columns that it needs and the way from them."""
    names = set(schema.names())
    found: dict[str, tuple[Column, pl.Expr]] = {}
    for column, ways in _ways(schema).items():
        for needs, expression in ways:
            if set(needs) <= names and column not in found:
                found[column] = (needs, expression)
    return found


def names() -> Column:
    """Every name that a column may have."""
    ways = _ways(pl.Schema()).values()
    return tuple({name: None for each in ways for needs, _ in each for name in needs})


def known(names: Iterable[str]) -> bool:
    """Whether a table with these columns holds winds in units that they declare."""
    return not missing(names)


def missing(names: Iterable[str]) -> list[str]:
    """Our columns that a table with these columns does not tell."""
    schema = pl.Schema({name: pl.Float64() for name in names})
    found = _taken(schema)
    return [column for column in _ways(schema) if column not in found]


def _ways(schema: pl.Schema) -> dict[str, list[tuple[Column, pl.Expr]]]:
    def number(name: str, factor: float = 1.0) -> pl.Expr:
        return _number(name, schema.get(name), factor)

    wind: dict[str, list[tuple[Column, pl.Expr]]] = {
        axis: [((f"{axis}_{unit}",), number(f"{axis}_{unit}", k)) for unit, k in SPEEDS.items()]
        for axis in ("u", "v")
    }
    for unit, factor in SPEEDS.items():
        pair = towards(number(f"speed_{unit}", factor), number("from_deg"))
        for axis, expression in zip(("u", "v"), pair, strict=True):
            wind[axis].append(((f"speed_{unit}", "from_deg"), expression))
    return {
        "ts_s": [
            (("ts_s",), _moment("ts_s", schema.get("ts_s"))),
            (("ts_ms",), number("ts_ms", 1e-3)),
            (("time",), _moment("time", schema.get("time"))),
        ],
        "lat_deg": [((name,), number(name)) for name in ("lat_deg", "lat", "latitude")],
        "lon_deg": [((name,), number(name)) for name in ("lon_deg", "lon", "longitude")],
        "alt_ft": [
            (("alt_ft",), number("alt_ft")),
            (("alt_m",), number("alt_m", 1 / FOOT_M)),
            (("flight_level",), number("flight_level", 100.0)),
        ],
        "u_m_s": wind["u"],
        "v_m_s": wind["v"],
    }
