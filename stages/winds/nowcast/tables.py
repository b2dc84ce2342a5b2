"""A table of winds as a file: the names in its header, what parts its columns, its cells.

Names are compared without the blanks around them and in small letters. Commas, semicolons or tabs
part the columns; where semicolons do, a comma in a number is its decimal mark. Every cell of a text
is read as text: what is no number is for declared.py to tell.
"""

import contextlib
import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stages.errors import InputError
from stages.winds.decoding import readers
from stages.winds.nowcast import declared

HEAD, GZIP = 1 << 16, b"\x1f\x8b"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # how a text begins that another program saved as "Unicode"
NO_TEXT = re.compile(rb"[^\t\r\x20-\xff]")  # a line end that is read, or a byte that no text has
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
DECIMAL_COMMA = r"^\s*([+-]?\d*),(\d+)\s*$"
MISSING_MOST = 3  # of our six columns, above which a table is not one of winds
PUBLISHED = (("winds", readers.WINDS), ("states", readers.STATES))


@dataclass(frozen=True)
class Header:
    """The first line of a table: its names as written, and what parts them."""

    written: tuple[str, ...]
    separator: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names as they are compared."""
        return tuple(plain(name) for name in self.written)

    @property
    def parted(self) -> str:
        """What parts the columns, in a word."""
        return SEPARATORS[self.separator]


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
    """The header of a text by its first bytes: parted by what stands in it most often. InputError
    where lines end as no reader of tables here ends them; frames in binary may hold any byte."""
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


def kind(told: Header, called: str) -> str:
    """'csv' (our columns), 'winds' or 'states' (published) by a table's header, '' for another.
    InputError for a name that two columns have, and for a published table whose header is not
    written as it is published."""
    if declared.known(told.names):
        refuse_repeated(told.names, called)
        return "csv"
    for name, formats in PUBLISHED:
        for form in formats.values():
            if {plain(column) for column in form.columns} <= set(told.names):
                refuse_repeated(told.written, called)
                refuse_otherwise(told, form.columns, called)
                return name
    return ""


def lacking(told: Header) -> str:
    """What a table that holds most of our columns lacks, in words; '' for anything else."""
    missing = declared.missing(told.names)
    if len(missing) > MISSING_MOST:
        return ""
    return f"a table parted by {told.parted} with no {', '.join(missing)}"


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


def refuse_otherwise(told: Header, columns: tuple[str, ...], called: str) -> None:
    """InputError for a published table that is not parted by commas, or whose names differ."""
    other = [name for name in columns if name not in told.written]
    if told.separator != "," or other:
        raise InputError(
            "a published table is not written as it is published",
            where=called,
            expected=f"columns parted by commas: {', '.join(columns)}",
            found=f"columns parted by {told.parted}"
            + (f", no {', '.join(other)} in these letters without blanks" if other else ""),
            remedy="write it as it is published, or with the columns that a capture has",
        )


def scan(path: Path, first: bytes) -> pl.LazyFrame:
    """A table of winds or of anything else; the first bytes tell parquet from text. The names are
    plain where that makes them ours."""
    if first[:4] == b"PAR1":
        lazy = pl.scan_parquet(path)
        names = lazy.collect_schema().names()
        renamed = tuple(plain(name) for name in names)
    else:
        told = header(first, str(path))
        lazy = pl.scan_csv(
            path, separator=told.separator, infer_schema=False, encoding="utf8-lossy"
        )
        names, renamed = lazy.collect_schema().names(), told.names
        if told.separator == ";":
            lazy = lazy.with_columns(pl.all().str.replace(DECIMAL_COMMA, "$1.$2"))
    if not declared.known(renamed) or len(renamed) != len(names):
        return lazy
    new = dict(zip(names, renamed, strict=True))
    return lazy.select(pl.col(old).alias(name) for old, name in new.items() if name)


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
