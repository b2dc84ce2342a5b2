"""What a data file seems to be, found by looking at its bytes: frames, published states or winds,
our winds, a text, arrays of sets or of sequences, or a table of which we know no more.

Units are those of the known formats, or what a column's name says; a column's span is of its
numbers alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.errors import InputError, TradewindError
from stages.winds.decoding import readers
from stages.winds.nowcast import anywhere, capture, declared, doubtful, tables
from stages.winds.nowcast.refusals import iso

SUFFIXES = {
    "_m_s": "m/s",
    "_kn": "kn",
    "_kt": "kn",
    "_deg": "degrees",
    "_ft": "ft",
    "_km": "km",
    "_m": "m",
    "_ms": "ms",
    "_s": "s",
    "_k": "K",
}
PUBLISHED = {  # of meteo-particle's tables (data/README.md, notes W1 and W2) and SkySoft's
    "ts": "Unix s",
    "lat": "degrees",
    "lon": "degrees",
    "alt": "ft",
    "vwx": "m/s towards east",
    "vwy": "m/s towards north",
    "gs_adsb": "kn",
    "trk_adsb": "degrees true",
    "hdg": "degrees magnetic",
    "ias": "kn",
    "mach": "Mach",
    "trk": "degrees true",
    "gs": "kn",
    "tas": "kn",
    "LAT": "degrees",
    "LONG": "degrees",
    "TRACK_ALTITUDE": "flight levels",
    "UNIX_TIME": "s of the day",
    "WIND_SPEED": "kn",
    "WIND_ORIGIN_ANGLE_DEG": "degrees, blowing from",
}
SETS = ("context_x", "context_y", "target_x", "target_y")


@dataclass(frozen=True)
class Column:
    """One column or array: its unit ('' where nothing tells it), its span, its missing values."""

    name: str
    unit: str
    low: str
    high: str
    missing: int = 0


@dataclass(frozen=True)
class Look:
    """What was seen: kind is frames, states, winds, our winds, text, sets, sequences, arrays or
    table; span_s the first and last Unix second, where there are times."""

    kind: str
    rows: int
    columns: tuple[Column, ...] = ()
    span_s: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def look(path: Path) -> Look:
    """The file at a glance. InputError for what is no file, or is empty."""
    if path.exists() and not path.is_file():
        raise InputError(
            "that is no regular file",
            where=str(path),
            found="a folder" if path.is_dir() else "a pipe or a device",
            remedy="name a file; write what a pipe holds into one first",
        )
    if not path.is_file() or not path.stat().st_size:
        raise InputError("there is no such file, or it is empty", where=str(path))
    if path.suffix in (".npy", ".npz", ".safetensors"):
        return _arrays(path)
    first = tables.head(path, str(path))
    kind = capture.form_of(path, first, str(path))
    if not kind:
        return _other(path, first)
    return _frames(path) if kind == "frames" else _table(path, kind, first)


def unit(name: str) -> str:
    """The unit that a column's name tells, '' where it tells none."""
    known = {"ts_s": "Unix s", "ts_ms": "Unix ms"} | PUBLISHED
    ends = next((u for end, u in SUFFIXES.items() if name.lower().endswith(end)), "")
    return known.get(name, ends)


def _frames(path: Path) -> Look:
    winds, dropped = capture.read(path, anywhere.settings().decode)
    every = "; ".join(f"{count:,} {why}" for why, count in sorted(dropped.items()) if count)
    notes = (f"frames, of which {len(winds):,} winds come; dropped: {every or 'nothing'}",)
    return Look("frames", len(winds), _columns(winds), _span(winds), notes)


def _table(path: Path, kind: str, first: bytes) -> Look:
    """A table whose first bytes are these. DataError for what Polars cannot read."""
    with tables.reading(str(path), "CSV with a header, or parquet"):
        table = tables.scan(path, first).collect()
    if kind != "parquet":
        table = table.with_columns(_numbers(table))
    ways = declared.ours(table.schema)
    whole = len(ways) == len(capture.COLUMNS)
    published = {"winds": readers.WINDS, "states": readers.STATES}.get(kind, readers.WINDS)
    named = [name for name, form in published.items() if set(form.columns) <= set(table.columns)]
    ours = table.select(ways.values()) if whole else _renamed(table)
    doubts = tuple(doubtful.doubts(ours))
    told = kind if kind in ("winds", "states") else "winds" if named else "our winds"
    if not whole and told == "our winds":
        told = "table"
    notes = (f"the format {named[0]} (stages/winds/decoding/readers.py)",) if named else ()
    parted = "" if kind == "parquet" else tables.header(first).parted
    by = (f"columns parted by {parted}",) if parted not in ("", "commas") else ()
    return Look(told, len(table), _columns(table), _span(ours), (*notes, *by), doubts)


def _renamed(table: pl.DataFrame) -> pl.DataFrame:
    """The columns of a published table by our names, where its units are ours."""
    names = {"ts": "ts_s", "alt": "alt_ft", "vwx": "u_m_s", "vwy": "v_m_s"}
    return table.select(pl.col(old).alias(new) for old, new in names.items() if old in table)


def _numbers(table: pl.DataFrame) -> list[pl.Expr]:
    """Casts of the columns of text that hold numbers in more than half of their rows."""
    cast = {
        name: pl.col(name).str.strip_chars().cast(pl.Float64, strict=False)
        for name in table.columns
    }
    hold = table.select(e.is_not_null().mean().alias(n) for n, e in cast.items()).row(0, named=True)
    return [cast[name] for name, share in hold.items() if (share or 0.0) > 0.5]


def _columns(table: pl.DataFrame) -> tuple[Column, ...]:
    found = []
    for name in table.columns:
        values = table[name]
        low, high = (values.min(), values.max()) if len(values) else (None, None)
        ends = [f"{v:.12g}" if isinstance(v, float) else str(v)[:24] for v in (low, high)]
        found.append(Column(name, unit(name), ends[0], ends[1], values.null_count()))
    return tuple(found)


def _span(table: pl.DataFrame) -> tuple[float, float] | None:
    if "ts_s" not in table.columns:
        return None
    times = table["ts_s"].cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    return (float(times.min()), float(times.max())) if len(times) else None


def _arrays(path: Path) -> Look:
    held = _opened(path)
    columns = tuple(
        Column(f"{name} {'x'.join(map(str, array.shape))} {array.dtype}", unit(name), *_ends(array))
        for name, array in held.items()
    )
    first = next(iter(held.values()))
    if set(SETS) <= set(held):
        return Look("sets", len(held[SETS[0]]), columns)
    if len(held) == 1 and first.ndim == 2 and first.dtype.kind in "iu":
        return Look("sequences", len(first), columns)
    return Look("arrays", len(first) if first.ndim else 1, columns)


def _opened(path: Path) -> Mapping[str, Any]:
    """Arrays by name; nothing is unpickled. InputError for what is damaged."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            return dict(load_file(path))
        found = np.load(path, allow_pickle=False)
        return {"array": found} if path.suffix == ".npy" else {k: found[k] for k in found.files}
    except Exception as error:  # each library has errors of its own
        raise InputError(
            "the arrays cannot be read", where=str(path), found=str(error).splitlines()[0]
        ) from None


def _ends(array: Any) -> tuple[str, str]:
    numbers = array.dtype.kind in "iuf" and array.size
    return (f"{array.min():.7g}", f"{array.max():.7g}") if numbers else ("", "")


def _other(path: Path, first: bytes) -> Look:
    """A table by a header of ours unknown, or a text."""
    try:
        text = first[: first.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            "that is no table, no text and no array that we can read",
            where=str(path),
            found=f"a file that begins {first[:24]!r}",
            expected="CSV, parquet, frames, text in UTF-8, .npy, .npz or .safetensors",
        ) from None
    separator = tables.header(first).separator
    counts = {line.count(separator) for line in text.splitlines()[:50] if line.strip()}
    if path.suffix != ".txt" and len(counts) == 1 and counts != {0}:
        try:
            return _table(path, "table", first)
        except TradewindError:
            pass
    if tables.packed(path):
        raise InputError(
            "a compressed text is not taken", where=str(path), remedy="unpack it (gzip -d)"
        )
    letters = len(set(path.read_text("utf-8", "replace")))
    return Look("text", path.read_bytes().count(b"\n"), notes=(f"{letters} letters differ",))


def render(path: Path, seen: Look) -> str:
    """What was seen, for a person."""
    lines = [f"{path}: {seen.kind}, {seen.rows:,} {'lines' if seen.kind == 'text' else 'rows'}"]
    lines += list(seen.notes)
    if seen.span_s:
        first, last = seen.span_s
        if 0 <= first <= last < doubtful.YEAR_2100_S:  # others are doubted, below
            lines.append(f"from {iso(first)} to {iso(last)}, {(last - first) / 3600:.2f} hours")
    if seen.columns:
        width = max(len(one.name) for one in seen.columns)
        lines.append(f"\n{'column':{width}}  {'unit':22}  {'lowest':>24}  {'highest':>24}  missing")
        lines += [
            f"{one.name:{width}}  {one.unit or '?':22}  {one.low:>24}  {one.high:>24}  "
            f"{one.missing:,}"
            for one in seen.columns
        ]
    return "\n".join(lines + [f"doubt: {one}" for one in seen.doubts])


def name_of(path: Path) -> str:
    """A data set's name from a file's: small letters, digits and _."""
    stem = path.name.partition(".")[0].lower()
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in stem).strip("_")[:40]
    return name or "own"
