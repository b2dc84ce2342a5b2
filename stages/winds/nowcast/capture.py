"""A recent capture, whatever form it has, as winds: winds in columns that declare their units, a
published winds or states table, or raw frames.

The form is found by looking, never by the name: tables by their header (decoding/tables.py),
frames by the one parser of frames (modes/frames.py). Everything that is not yet winds
passes through the decode stage's own code, so a capture of today is treated like the training data;
winds that aircraft measured and reported (register 4,4) come beside those of their replies
(reported.py).
Units are in the column names (declared.py); the wind blows towards (u east, v north). Values that
look like another unit's are warned of (doubtful.py).
"""

import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl

from stages.errors import DataError, InputError, TradewindError
from stages.params import Decode
from stages.winds import decode as decoding
from stages.winds.decoding import bounds, declared, readers, tables
from stages.winds.decoding.winds import split
from stages.winds.modes import frames
from stages.winds.nowcast import doubtful, handed, reported

COLUMNS = readers.MEASURED
EXPECTED = (
    "winds as parquet, CSV, JSON or JSON lines (ts_s, ts_ms or time; lat_deg; lon_deg; alt_ft, "
    "alt_m or flight_level; u_m_s and v_m_s, u_kn and v_kn, or from_deg and speed_kn or "
    "speed_m_s), a "
    "published winds or states table, or frames with their times as CSV, JSON lines or AVR"
)


def form(path: Path, called: str = "") -> str:
    """'ours' (winds in columns that declare their units), 'winds', 'states' (published) or
    'frames'; InputError for anything else. `called` is the file's name in errors, where it has
    another."""
    called = called or str(path)
    first = tables.head(path, called)
    if found := form_of(path, first, called):
        return found
    lacking = tables.lacking(path, first)
    raise InputError(
        "the capture has none of the known forms",
        where=called,
        expected=EXPECTED,
        found=lacking
        or (f"columns {', '.join(names[:12])}" if (names := _columns(path, first)) else "")
        or (f"a file that begins {first[:60]!r}" if first else "an empty file"),
    )


def _columns(path: Path, first: bytes) -> tuple[str, ...]:
    """The names of the columns of parquet, which has no text to show."""
    return tables.names(path, first) if first.startswith(tables.PARQUET) else ()


def form_of(path: Path, first: bytes, called: str) -> str:
    """The form of a capture by its first bytes, '' for anything else. InputError for a table in
    which two columns have one name."""
    with tables.reading(called, EXPECTED):
        names = tables.names(path, first, called)
    if found := readers.kind(names, called):
        return found
    return "frames" if not first.startswith(tables.PARQUET) and _holds_frames(path) else ""


def _holds_frames(path: Path) -> bool:
    try:
        return frames.holds_frames(path)
    except DataError:  # no text
        return False


def winds(path: Path, decode: Decode) -> pl.DataFrame:
    """Usable winds of a capture, COLUMNS in order of time: finite, where an aircraft can be, within
    the wind limit, each row once. Errors name the file."""
    return read(path, decode)[0]


def read(
    path: Path, decode: Decode, called: str = "", *, usual_m_s: float = np.inf
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Usable winds of a capture, and how many rows (of raw captures: lines, replies, states) gave
    none for which reason. `called` is the file's name in errors, where it has another; `usual_m_s`
    as of doubtful.doubts."""
    called = called or str(path)
    kind = form(path, called)
    with tables.reading(called, EXPECTED):
        if kind == "ours":
            rows, dropped = told(path, called)
        else:
            rows, dropped = decoded(path, kind, decode, called)
    ours = kind in ("frames", "states")  # whose units are no words of the file's
    for doubt in doubtful.doubts(rows.select("ts_s") if ours else rows, usual_m_s):
        warnings.warn(f"{called}: {doubt}", UserWarning, stacklevel=2)
    kept, counts = usable(rows, decode)
    for name, count in counts.items():
        dropped[name] = dropped.get(name, 0) + count
    return kept, dropped


def told(path: Path, called: str) -> tuple[pl.DataFrame, dict[str, int]]:
    """COLUMNS of a table whose columns declare their units, and how many rows hold what is no
    number or no time. InputError where no row can be read."""
    lazy = tables.scan(path, tables.head(path, called))
    schema = lazy.collect_schema()
    ways, unread, apart = (of(schema) for of in (declared.ours, declared.unread, declared.apart))
    for name in declared.sources(schema, "ts_s"):
        handed.refuse_single(name, schema[name], called)
    marks = {name: f"{name} unread" for name in COLUMNS}
    table = lazy.select(
        *(ways[name] for name in COLUMNS),
        *(unread[name].alias(mark) for name, mark in marks.items()),
        *apart.values(),
    ).collect(engine="streaming")
    for said in apart:
        if count := table[said].sum():
            told = f"{said} in {count:,} of {len(table):,} rows; the first is read"
            warnings.warn(f"{called}: {told}", UserWarning, stacklevel=3)
    wrong = table.select(pl.any_horizontal(marks.values())).to_series()
    if len(table) and wrong.all():
        worst = max(COLUMNS, key=lambda name: table[marks[name]].sum())
        cells = lazy.filter(unread[worst]).select(declared.sources(schema, worst)).head(1).collect()
        raise InputError(
            "no row of the capture can be read",
            where=called,
            expected="numbers; for time Unix seconds or ISO 8601, such as 2026-01-15T14:30:00Z",
            found=", ".join(f"{name} {cell!r}" for name, cell in cells.row(0, named=True).items()),
        )
    rows = table.filter(~wrong).select(COLUMNS)
    return rows, {"unreadable": len(table) - len(rows)} if wrong.any() else {}


def usable(rows: pl.DataFrame, decode: Decode) -> tuple[pl.DataFrame, dict[str, int]]:
    """Of winds (COLUMNS) those that can be, in order of time, and how many are not, by reason."""
    speed = pl.col("u_m_s") ** 2 + pl.col("v_m_s") ** 2
    reason = (
        pl.when(~pl.all_horizontal(pl.col(COLUMNS).is_finite().fill_null(False)))
        .then(pl.lit("null"))
        .when(bounds.outside())
        .then(pl.lit(bounds.REASON))
        .when(speed > decode.wind_max_m_s**2)
        .then(pl.lit("over_wind_max"))
        .when(~pl.struct(COLUMNS).is_first_distinct())
        .then(pl.lit("duplicate"))
    )
    kept, counts = split(rows.with_columns(drop=reason))
    return kept.sort("ts_s"), counts["dropped"]


def decoded(
    path: Path, kind: str, decode: Decode, called: str
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Winds of a raw capture, by the decode stage in a temporary folder, and its drops."""
    with tempfile.TemporaryDirectory(prefix="capture-") as name:
        raw, out = Path(name) / "raw", Path(name) / "decoded"
        raw.mkdir()
        out.mkdir()
        shutil.copyfile(path, raw / "capture.csv")
        try:
            counts = decoding.transform(raw, ["capture.csv"], kind, decode, out)
        except TradewindError as error:
            says = " ".join(str(error).split()).replace(str(raw / "capture.csv"), called)
            raise InputError("the capture cannot be decoded", where=called, found=says) from None
        dropped: dict[str, int] = {}
        for level in counts["levels"].values():
            for reason, count in level["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + count
        rows = pl.read_parquet(out / "winds.parquet", columns=list(COLUMNS)).select(COLUMNS)
        if kind == "frames":  # what aircraft measured stands beside what their replies give
            told, _ = reported.reports(raw / "capture.csv", decode)
            dropped["bds_other"] = dropped.get("bds_other", 0) - len(told)
            rows = pl.concat([rows, told.select(COLUMNS)])
        return rows, dropped
