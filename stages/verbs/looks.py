"""What a data file seems to be, found by looking at its bytes: frames, published states or winds,
our winds, a text, arrays of sets or of sequences, a grid, JSON, or a table of which we know no
more.
"""

import codecs
from pathlib import Path

import polars as pl

from stages.errors import InputError, TradewindError
from stages.verbs import containers, texts
from stages.verbs.seen import Column, Look, unit
from stages.winds.decoding import declared, readers, tables
from stages.winds.nowcast import anywhere, capture, doubtful
from stages.winds.nowcast.refusals import iso

JSON = "JSON, an object a row"


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
    first = tables.head(path, str(path))
    if path.suffix in containers.ARRAYS:
        return containers.arrays(path, first)
    if grid := containers.grid(path, first):
        return grid
    kind = capture.form_of(path, first, str(path))
    if kind == "frames" and texts.spelled(first):
        return _frames(path)
    return _other(path, first) if kind in ("", "frames") else _table(path, kind, first)


def _frames(path: Path) -> Look:
    winds, dropped = capture.read(path, anywhere.settings().decode)
    every = "; ".join(f"{count:,} {why}" for why, count in sorted(dropped.items()) if count)
    notes = (f"frames, of which {len(winds):,} winds come; dropped: {every or 'nothing'}",)
    return Look("frames", len(winds), _columns(winds), _span(winds), notes)


def _table(path: Path, kind: str, first: bytes) -> Look:
    """A table whose first bytes are these. DataError for what Polars cannot read."""
    formats = readers.STATES if kind == "states" else readers.WINDS
    with tables.reading(str(path), "CSV with a header, parquet or JSON"):
        form = readers.published(tables.names(path, first), formats) if kind else ""
        table = tables.scan(path, first, formats[form].columns if form else ()).collect()
    text = None if first.startswith(tables.PARQUET) else tables.header(first)
    by = (f"columns {text.parted}" if text.separator else JSON,) if text else ()
    told = (f"the format {form} (stages/winds/decoding/readers.py)",) if form else ()
    if kind == "ours" and not form and not set(declared.AIRCRAFT) & set(table.columns):
        told = ("no column icao names the aircraft: each row counts as one of its own",)
    return _told(table, kind, (*told, *(one for one in by if not one.endswith("commas"))))


def _told(table: pl.DataFrame, kind: str, notes: tuple[str, ...]) -> Look:
    """What a table holds, and its columns as numbers where they are."""
    table = table.with_columns(_numbers(table))
    table = table.with_columns(pl.selectors.float().fill_nan(None))  # no number is a missing one
    ours = table.select(declared.ours(table.schema).values()) if kind == "ours" else _renamed(table)
    doubts = tuple(doubtful.doubts(ours))
    told = {"ours": "winds", "": "table"}.get(kind, kind)
    return Look(told, len(table), _columns(table), _span(ours), notes, doubts)


def _headless(path: Path, first: bytes) -> Look:
    """A table of numbers whose first line is no header."""
    separator = tables.header(first).separator
    with tables.reading(str(path), "CSV"):
        table = pl.read_csv(path, separator=separator, has_header=False, infer_schema=False)
    if separator == ";":
        table = table.with_columns(pl.all().str.replace(tables.DECIMAL_COMMA, "$1.$2"))
    seen = _told(table, "table", ())
    note = "no header: the first line holds numbers, so nothing tells what a column is"
    return Look(seen.kind, seen.rows, seen.columns, notes=(note,))


def _renamed(table: pl.DataFrame) -> pl.DataFrame:
    """The columns of a published table by our names, where its units are ours."""
    names = {"ts": "ts_s", "alt": "alt_ft", "vwx": "u_m_s", "vwy": "v_m_s"}
    return table.select(pl.col(old).alias(new) for old, new in names.items() if old in table)


def _numbers(table: pl.DataFrame) -> list[pl.Expr]:
    """Casts of the columns of text that hold numbers in more than half of their rows."""
    cast = {
        name: pl.col(name).str.strip_chars().cast(pl.Float64, strict=False)
        for name, kind in table.schema.items()
        if kind == pl.String
    }
    if not cast:
        return []
    hold = table.select(e.is_not_null().mean().alias(n) for n, e in cast.items()).row(0, named=True)
    return [cast[name] for name, share in hold.items() if (share or 0.0) > 0.5]


def _columns(table: pl.DataFrame) -> tuple[Column, ...]:
    found = []
    for name in table.columns:
        values = table[name]
        low, high = (values.min(), values.max()) if len(values) else (None, None)
        ends = [f"{v:.12g}" if isinstance(v, float) else str(v)[:24] for v in (low, high)]
        told = _of_time(values) if name in ("time", "ts_s") else ""
        found.append(Column(name, told or unit(name), ends[0], ends[1], values.null_count()))
    return tuple(found)


def _of_time(values: pl.Series) -> str:
    """The unit of a column of times: as its values tell it, '' where they are no numbers."""
    middle = values.median() if values.dtype.is_numeric() else None
    if not isinstance(middle, int | float):
        return ""
    factor = next((f for f in declared.FRACTIONS if declared.second(middle) == middle / f), 1.0)
    return f"Unix {declared.FRACTIONS[factor]}" if factor > 1 else "Unix s"


def _span(table: pl.DataFrame) -> tuple[float, float] | None:
    if "ts_s" not in table.columns:
        return None
    times = table["ts_s"].cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    return (float(times.min()), float(times.max())) if len(times) else None


def _other(path: Path, first: bytes) -> Look:
    """A table by a header of ours unknown, or a text."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(first)  # its end may be cut
    except UnicodeDecodeError:
        raise InputError(
            "that is no table, no text and no array that we can read",
            where=str(path),
            found=f"a file that begins {first[:24]!r}",
            expected="CSV, parquet, frames, JSON, text in UTF-8, .npy, .npz, .safetensors, netCDF, "
            "HDF5 or GRIB",
        ) from None
    if (held := texts.held(path, text)) is not None:
        seen = texts.from_json(held)
        return seen if isinstance(seen, Look) else _told(seen, "", (JSON,))
    header = tables.header(first)
    lines = (text.rpartition("\n")[0] or text).splitlines()[:50]
    counts = {line.count(header.separator) for line in lines if line.strip()}
    if path.suffix != ".txt" and len(counts) == 1 and counts != {0}:
        try:
            whole = all(_number(name) for name in header.written)
            return _headless(path, first) if whole else _table(path, "", first)
        except TradewindError:
            pass
    seen = texts.prose(path)
    if seen.kind == "text" and tables.packed(path):
        raise InputError(
            "a compressed text is not taken", where=str(path), remedy="unpack it (gzip -d)"
        )
    return seen


def _number(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def render(path: Path, seen: Look) -> str:
    """What was seen, for a person."""
    of = {"text": "line", "grid": "variable"}.get(seen.kind, "row")
    lines = [f"{path}: {seen.kind}, {seen.rows:,} {of}{'s' if seen.rows != 1 else ''}"]
    lines += list(seen.notes)
    own = False  # whether the times count from a beginning of the file's own, not from 1970
    if seen.span_s:
        first, last = seen.span_s
        own, long = last < doubtful.YEAR_1990_S, f"{(last - first) / 3600:.2f} hours"
        if own:
            lines.append(f"from {first:,.0f} to {last:,.0f} s after a beginning of its own, {long}")
        elif 0 <= first <= last < doubtful.YEAR_2100_S:  # others are doubted, below
            lines.append(f"from {iso(first)} to {iso(last)}, {long}")
    if seen.columns:
        units = [one.unit.removeprefix("Unix " if own else "") or "?" for one in seen.columns]
        width = max(len("column"), *(len(one.name) for one in seen.columns))
        lines.append(f"\n{'column':{width}}  {'unit':22}  {'lowest':>24}  {'highest':>24}  missing")
        lines += [
            f"{one.name:{width}}  {its:22}  {one.low:>24}  {one.high:>24}  {one.missing:,}"
            for one, its in zip(seen.columns, units, strict=True)
        ]
    return "\n".join(lines + [f"doubt: {one}" for one in seen.doubts])


def name_of(path: Path) -> str:
    """A data set's name from a file's: small letters, digits and _."""
    stem = path.name.partition(".")[0].lower()
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in stem).strip("_")[:40]
    return name or "own"
