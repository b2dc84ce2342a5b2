"""Raw frame files: text lines with a time and a frame in hexadecimal, plain or gzip, in whatever
form (lines.py) and state of repair. Decode, nowcast, intake and the gate all read them here.

A line is what stands between line feeds; its number (0-based, `record`) is its place in the file,
blank lines included. Byte-order mark, CR LF and bytes of a foreign encoding do no harm. Every line
that gives no frame is counted by reason.
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl

from stages.errors import DataError
from stages.winds.modes import lines

BLOCK_BYTES = 1 << 25
HEAD_BYTES = 1 << 16  # of a file, in which frames are looked for
LINE_MAX_BYTES = 1 << 20
OUTLIER_S = (
    2 * 86_400.0
)  # a stamp this far from the file's middle is the receiver's clock going wrong
REASONS = (
    "blank",
    "header",
    "not_json",
    "not_hex",
    "wrong_length",
    "no_time",
    "bad_time",
    "time_outlier",
    "duplicate",
)
GZIP = b"\x1f\x8b\x08"
SUFFIXES = (".csv", ".tsv", ".avr", ".jsonl", ".ndjson")  # each may be followed by .gz
SCHEMA = {"ts_s": pl.Float64, "hex": pl.String, "file": pl.String, "record": pl.UInt32}


@dataclass
class Reading:
    """What a file gave. frames: ts_s f64 | hex str (upper case) | file str | record u32, sorted by
    (ts_s, record).

    read = number of frames + sum of dropped. out_of_order: kept lines whose stamp is earlier than
    that of a kept line before them.
    """

    frames: pl.DataFrame
    read: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    out_of_order: int = 0


def read(path: str | Path) -> Reading:
    """All frames of one file. DataError when it cannot be opened; an empty file gives an empty
    table."""
    parts, read_lines, dropped = [pl.DataFrame(schema=SCHEMA)], 0, Counter()
    for part, count, reasons in read_blocks(path):
        parts.append(part)
        read_lines += count
        dropped.update(reasons)
    frames = pl.concat(parts)
    middle = frames["ts_s"].median()
    kept = (
        frames.filter((pl.col("ts_s") - middle).abs() <= OUTLIER_S)
        if middle is not None
        else frames
    )
    dropped["time_outlier"] += len(frames) - len(kept)
    disorder = int((kept["ts_s"] < kept["ts_s"].cum_max()).sum())
    unique = kept.unique(["ts_s", "hex"], keep="first", maintain_order=True).sort("ts_s", "record")
    dropped["duplicate"] += len(kept) - len(unique)
    return Reading(
        unique,
        read_lines,
        {reason: dropped[reason] for reason in REASONS if dropped[reason]},
        disorder,
    )


def read_blocks(
    path: str | Path, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[pl.DataFrame, int, dict[str, int]]]:
    """Frames of one file in blocks of about block_bytes: (frames in file order, lines read, dropped
    by reason).

    Duplicates and stray clocks need the whole file and are left to `read`.
    """
    for table in tables(path, block_bytes):
        counted = table.filter(pl.col("reason").is_not_null())["reason"].value_counts()
        good = table.filter(pl.col("reason").is_null()).with_columns(file=pl.lit(Path(path).name))
        yield good.select(*SCHEMA), len(table), dict(counted.iter_rows())


def tables(path: str | Path, block_bytes: int = BLOCK_BYTES) -> Iterator[pl.DataFrame]:
    """Every line of one file in blocks of about block_bytes: record, ts_s, hex, reason
    (lines.parsed)."""
    record, layout = 0, None
    for text in _texts(Path(path), block_bytes):
        block = pl.Series("line", text.split("\n"), dtype=pl.String)
        layout = layout or lines.layout(block)
        yield lines.parsed(block, layout, record)
        record += len(block)


def holds_frames(path: str | Path) -> bool:
    """Whether some of the first lines of a file hold a frame. DataError when it cannot be read."""
    for text in _texts(Path(path), HEAD_BYTES):
        return lines.has_frames(pl.Series("line", text.split("\n"), dtype=pl.String))
    return False


def is_capture(name: str) -> bool:
    """Whether a file's name is that of a raw frame file."""
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)


def _texts(path: Path, block_bytes: int) -> Iterator[str]:
    """The file's text in blocks of whole lines, without the last line's end; bytes that are not
    UTF-8 become replacement marks."""
    try:
        with path.open("rb") as plain:
            packed = plain.read(len(GZIP)) == GZIP
            plain.seek(0)
            if not packed:
                yield from _blocks(plain, path, block_bytes)
                return
            with gzip.open(plain) as stream:
                yield from _blocks(cast(BinaryIO, stream), path, block_bytes)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(
            "a compressed file of frames is damaged",
            where=str(path),
            expected="a whole gzip file",
            found=str(error),
        ) from None
    except OSError as error:
        raise DataError(
            "a file of frames cannot be read", where=str(path), found=error.strerror or str(error)
        ) from None


def _blocks(stream: BinaryIO, path: Path, block_bytes: int) -> Iterator[str]:
    """The text of an open file in blocks of whole lines."""
    rest = stream.read(3)
    rest = b"" if rest == b"\xef\xbb\xbf" else rest
    while block := stream.read(block_bytes):
        whole, feed, block = (rest + block).rpartition(b"\n")
        if feed:
            yield whole.decode("utf-8", "replace")
        elif len(block) > LINE_MAX_BYTES:
            raise DataError(
                "a file of frames is no text",
                where=str(path),
                expected="lines",
                found=f"{len(block)} bytes without an end of line",
            )
        rest = block
    if rest:
        yield rest.removesuffix(b"\n").decode("utf-8", "replace")
