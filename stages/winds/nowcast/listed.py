"""Points as a file: a table whose header, separators and packing are read as those of a context are
(tables.py), in text, parquet or JSON.

Columns are lat_deg, lon_deg, alt_ft and ts_s or `time`, or the other names of a context's; an
altitude may be written as FL340 or 10363m.
"""

import csv
import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stages.errors import InputError
from stages.winds.decoding import declared, tables
from stages.winds.forecasts import PLACE
from stages.winds.nowcast import handed
from stages.winds.nowcast.points import Point, parse, parse_altitude

EXPECTED = (*PLACE, "time")
# The names of each column, and how a cell of that name is written for `points.parse`.
NAMES = (
    {"lat_deg": "{}", "lat": "{}", "latitude": "{}"},
    {"lon_deg": "{}", "lon": "{}", "longitude": "{}"},
    {"alt_ft": "{}", "alt_m": "{}m", "flight_level": "FL{}"},
    {"ts_s": "{}", "ts_ms": "{}e-3", "time": "{}"},
)


def read_points(path: str | Path) -> list[Point]:
    """The points of a file, a row a point. InputError, naming the line of a text or the row of a
    parquet file, for what is no table of points."""
    called = str(path)
    try:
        first = tables.head(Path(path), called)
        with tables.reading(called, f"a table of {', '.join(EXPECTED)}"):
            found = _read(path, first, called)
    except InputError as error:
        raise InputError(
            error.what,
            where=error.where or called,
            expected=error.expected,
            found=error.found,
            remedy=error.remedy,
        ) from None
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("the file cannot be read", where=called, found=str(error)) from None
    if not found:
        raise InputError("no point stands there", where=called, found="a header and no row")
    return found


def _read(path: str | Path, first: bytes, called: str) -> list[Point]:
    if first.startswith(tables.PARQUET):
        return _of_table(path, pl.read_parquet(path))
    if not tables.header(first, called).separator:
        return _of_table(path, tables.of_objects(tables.from_json(Path(path))))
    return list(_of_text(path, first))


def _of_table(path: str | Path, table: pl.DataFrame) -> list[Point]:
    names = [tables.plain(name) for name in table.columns]
    tables.refuse_repeated(tuple(names), str(path))
    table.columns = names
    if table.schema.get("alt_ft") == pl.String:
        table = table.with_columns(_altitudes(table["alt_ft"], str(path)))
    ways = declared.ours(table.schema)
    _refuse_lacking([name for name in handed.ASKED if name not in ways], str(path))
    for name in declared.sources(table.schema, "ts_s"):
        handed.refuse_single(name, table.schema[name], str(path))
    lost = table.select(declared.unread(table.schema)[name] for name in handed.ASKED)
    for name in handed.ASKED:
        if len(rows := lost[name].arg_true()):
            source, row = declared.sources(table.schema, name)[0], int(rows[0])
            raise InputError(
                "a point is no place and time",
                where=f"{path}, row {row + 1}",
                found=f"{source} {table[source][row]!r}",
            )
    asked = handed.asked(table.select(ways[name] for name in handed.ASKED))
    return [Point(*row) for row in asked.iter_rows()]


def _altitudes(column: pl.Series, called: str) -> pl.Series:
    """Feet of altitudes as texts. InputError, naming the row, for what is none."""
    found = []
    for row, text in enumerate(column, 1):
        try:
            found.append(None if text is None else parse_altitude(text))
        except ValueError:
            raise InputError(
                "that is no altitude",
                where=f"{called}, row {row}",
                found=repr(text),
                expected="feet, FL340 or 10363m",
            ) from None
    return pl.Series(column.name, found, dtype=pl.Float64)


def _of_text(path: str | Path, first: bytes) -> Iterator[Point]:
    told = tables.header(first, str(path))
    tables.refuse_repeated(told.names, str(path))
    chosen = [next((name for name in known if name in told.names), "") for known in NAMES]
    _refuse_lacking(
        [name for name, there in zip(EXPECTED, chosen, strict=True) if not there], str(path)
    )
    places = [(told.names.index(name), NAMES[i][name]) for i, name in enumerate(chosen)]
    opened = gzip.open if tables.packed(Path(path)) else open
    with opened(path, "rb") as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=told.separator, skipinitialspace=True)
        rows = (row for row in reader if any(cell.strip() for cell in row))
        next(rows, None)  # the header
        for row in rows:
            if len(row) > len(told.names):
                raise InputError(
                    "a row of the points has more cells than the header",
                    where=f"{path}, line {reader.line_num}",
                    found=f"{len(row)} cells",
                    expected=f"{len(told.names)}",
                )
            cells = [*row, *[""] * (len(told.names) - len(row))]
            if told.separator == ";":
                cells = [re.sub(tables.DECIMAL_COMMA, r"\1.\2", cell) for cell in cells]
            asked = ",".join(form.format(cells[i].strip()) for i, form in places)
            try:
                yield parse(asked)
            except InputError as error:
                raise InputError(
                    error.what,
                    where=f"{path}, line {reader.line_num}",
                    found=error.found,
                    expected=error.expected,
                ) from None


def _refuse_lacking(missing: list[str], called: str) -> None:
    if missing:
        raise InputError(
            "the points lack columns",
            where=called,
            expected=", ".join(EXPECTED),
            found=f"no {', '.join(missing)}",
        )
