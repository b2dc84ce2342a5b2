"""A table of winds as a file: the names in its header, what parts its columns, its cells.

Text, parquet, JSON (a list of objects) or JSON lines, told apart by their first bytes; texts and
JSON may be compressed (gzip). Names are compared without the blanks around them and in small
letters. Commas, semicolons or tabs part the columns; where semicolons do, a comma in a number is
its decimal mark. Every cell of a text is read as text: what is no number is for declared.py to
tell.
"""

import contextlib
import csv
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import InputError
from stages.winds.decoding import declared

HEAD, GZIP, PARQUET = 1 << 16, b"\x1f\x8b", b"PAR1"
JSON_MOST = 1 << 28  # bytes
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")  # each may be followed by .gz
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # how a text begins that another program saved as "Unicode"
NO_TEXT = re.compile(rb"[^\t\r\x20-\xff]")  # a line end that is read, or a byte that no text has
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}  # of columns; JSON has none
DECIMAL_COMMA = r"^\s*([+-]?\d*),(\d+)\s*$"
MISSING_MOST = 3  # of our six columns, above which a table is not one of winds


@dataclass(frozen=True)
class Header:
    """The names of a table's columns as written, and what parts them ('' in JSON)."""

    written: tuple[str, ...]
    separator: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names as they are compared."""
        return tuple(plain(name) for name in self.written)

    @property
    def parted(self) -> str:
        """What parts the columns, in words."""
        return f"parted by {SEPARATORS[self.separator]}" if self.separator else "of JSON"


def plain(name: str) -> str:
    """A column's name without the blanks around it, in small letters."""
    return name.strip().lower()


def head(path: Path, called: str) -> bytes:
    """The first bytes of a file, unpacked; `called` is its name in errors. InputError for what
    cannot be read, a compressed file that is cut off or damaged and a text in UTF-16 among them."""
    try:
        with path.open("rb") as stream:
            first = stream.read(HEAD)
        if first[: len(GZIP)] == GZIP:
            with gzip.open(path) as unpacked:
                first = unpacked.read(HEAD)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"the compressed file is {'cut off' if isinstance(error, EOFError) else 'damaged'}",
            where=called,
            expected="a whole gzip file",
            found=str(error),
            remedy="copy the whole file again",
        ) from None
    except OSError as error:
        raise InputError(
            "the file cannot be read",
            where=called,
            found=error.strerror or str(error),
            remedy="name an existing file",
        ) from None
    if first.startswith(UTF_16):
        raise InputError(
            "the text is written in UTF-16",
            where=called,
            expected="a text in UTF-8",
            found=f"a file that begins {first[:24]!r}",
            remedy="save it as UTF-8: `iconv -f UTF-16 -t UTF-8 FILE > OTHER`",
        )
    return first


def packed(path: Path) -> bool:
    """Whether a file is compressed (gzip)."""
    with path.open("rb") as stream:
        return stream.read(len(GZIP)) == GZIP


def header(first: bytes, called: str = "") -> Header:
    """The header of a text by its first bytes: the names of JSON's first object, or the first line,
    parted by what stands in it most often. InputError where lines end as no reader of tables here
    ends them; frames in binary may hold any byte."""
    if names := _keys(first):
        return Header(names, "")
    if b"\r" in first and not NO_TEXT.search(first):
        raise InputError(
            "lines end in CR alone",
            where=called,
            expected="LF, or CR and LF",
            remedy=r"write them anew: `tr '\r' '\n' < FILE > OTHER`",
        )
    lines = (line for line in first.splitlines() if line.strip())
    line = next(lines, b"").decode("utf-8-sig", "replace")
    separator = max(SEPARATORS, key=line.count)
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return Header(tuple(cells), separator)


def _keys(first: bytes) -> tuple[str, ...]:
    """The names of the first object of JSON by its first bytes; none for other texts and for an
    object of lists."""
    text = first.decode("utf-8-sig", "replace").lstrip()
    text = text.removeprefix("[").lstrip()
    if not text.startswith("{"):
        return ()
    try:
        told, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return ()
    return () if any(isinstance(value, list) for value in told.values()) else tuple(told)


def names(path: Path, first: bytes, called: str = "") -> tuple[str, ...]:
    """The names of a table's columns as they are written."""
    if first.startswith(PARQUET):
        return tuple(pl.scan_parquet(path).collect_schema().names())
    return header(first, called or str(path)).written


def lacking(path: Path, first: bytes) -> str:
    """What a table that holds most of our columns lacks, in words; '' for anything else."""
    missing = declared.missing(map(plain, names(path, first)))
    if len(missing) > MISSING_MOST:
        return ""
    of = "parquet" if first.startswith(PARQUET) else f"a table {header(first).parted}"
    return f"{of} with no {', '.join(missing)}"


def refuse_repeated(names: tuple[str, ...], called: str) -> None:
    """InputError where columns share a name."""
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        places = [str(i) for i, name in enumerate(names, 1) if name == repeated[0]]
        raise InputError(
            "columns of the table have the same name",
            where=called,
            expected="each name once",
            found=f"{repeated[0]} as columns {' and '.join(places)}",
            remedy="rename one, or leave it out",
        )


def scan(path: Path, first: bytes, columns: Sequence[str] = ()) -> pl.LazyFrame:
    """A table of winds or of anything else; the first bytes tell what it is. Names that differ from
    `columns` in blanks or capitals alone are written as these; where that makes them ours, all are
    plain. InputError for JSON that is damaged."""
    if first.startswith(PARQUET):
        lazy = pl.scan_parquet(path)
        written = tuple(lazy.collect_schema().names())
    else:
        told = header(first, str(path))
        if told.separator:
            lazy = pl.scan_csv(
                path, separator=told.separator, infer_schema=False, encoding="utf8-lossy"
            )
            written = told.written
        else:
            lazy = of_objects(from_json(path)).lazy()
            written = tuple(lazy.collect_schema().names())
        if told.separator == ";":
            lazy = lazy.with_columns(pl.all().str.replace(DECIMAL_COMMA, "$1.$2"))
    there, plainly = lazy.collect_schema().names(), tuple(map(plain, written))
    if len(written) != len(there) or not (columns or declared.known(plainly)):
        return lazy
    wanted = {plain(name): name for name in columns}
    pairs = zip(there, plainly, strict=True)
    new = ((old, wanted.get(name, old if columns else name)) for old, name in pairs)
    return lazy.select(pl.col(old).alias(name) for old, name in new if name)


def unpacked(path: Path) -> str:
    """All of a text."""
    with gzip.open(path) if packed(path) else path.open("rb") as stream:
        return stream.read().decode("utf-8-sig", "replace")


def from_json(path: Path) -> Any:
    """What a file of JSON holds, of JSON lines a list of them. InputError for one that is damaged
    or too large."""
    if path.stat().st_size > JSON_MOST:
        raise InputError(
            "the JSON is too large",
            where=str(path),
            expected=f"at most {JSON_MOST >> 20} MiB",
            remedy="write it as CSV or parquet",
        )
    whole = unpacked(path)
    try:
        return json.loads(whole)
    except (ValueError, RecursionError) as error:
        problem = error
    try:
        return [json.loads(line) for line in whole.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        problem = problem if path.suffix == ".json" else error
    raise InputError(
        "the JSON is damaged", where=str(path), found=str(problem), remedy="write the file again"
    )


def of_objects(value: Any) -> pl.DataFrame:
    """A row an object. InputError for anything else."""
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, Mapping) for row in rows):
        raise InputError("the JSON is no list of objects", expected="an object a row")
    return pl.DataFrame(
        [{str(k): v if _single(v) else json.dumps(v) for k, v in row.items()} for row in rows],
        strict=False,
        infer_schema_length=None,
    )


def _single(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


@contextlib.contextmanager
def reading(called: str, expected: str) -> Iterator[None]:
    """What Polars says of a table that it cannot read, without its advice to programmers, as an
    InputError."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # a disk's error, no table's
            raise
        says = " ".join(str(error).partition("\n\n")[0].split())[:200]
        if "more fields than defined" in says:
            says = "a row has more cells than the header"
        elif "unexpected end of file" in says:
            says = "a compressed file that is cut off"
        raise InputError(
            "the file cannot be read",
            where=called,
            expected=expected,
            found=says,
            remedy="copy or write the whole file again",
        ) from None
