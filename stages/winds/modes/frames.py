"""Raw frame files: text lines with a time stamp and a frame in hexadecimal, in whatever order of
columns and state of repair.

A line is what stands between line feeds; its number (0-based, `record`) is its place in the file,
blank lines included. The column of frames is found by its form (14 or 28 hexadecimal digits), the
column of stamps by being a Unix time in seconds. Byte-order mark, CR LF, quotes and bytes of a
foreign encoding do no harm. Every line that gives no frame is counted by reason.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from stages.errors import DataError

BLOCK_BYTES = 1 << 25
LINE_MAX_BYTES = 1 << 20
SAMPLE_LINES = 2000  # on which the columns are found
TIME_RANGE_S = (
    631_152_000.0,
    4_102_444_800.0,
)  # 1990 to 2100: neither milliseconds nor seconds since start-up
OUTLIER_S = (
    2 * 86_400.0
)  # a stamp this far from the file's middle is the receiver's clock going wrong
FRAME = "^(?:[0-9A-Fa-f]{14}|[0-9A-Fa-f]{28})$"
REASONS = ("blank", "header", "not_hex", "wrong_length", "bad_time", "time_outlier", "duplicate")
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
    for part, lines, reasons in read_blocks(path):
        parts.append(part)
        read_lines += lines
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
    path, record, layout = Path(path), 0, None
    for text in _texts(path, block_bytes):
        lines = pl.Series("line", text.split("\n"), dtype=pl.String)
        layout = layout or _layout(lines)
        frames, dropped = _parse(lines, layout, record)
        yield frames.with_columns(file=pl.lit(path.name)).select(*SCHEMA), len(lines), dropped
        record += len(lines)


def _texts(path: Path, block_bytes: int) -> Iterator[str]:
    """The file's text in blocks of whole lines, without the last line's end; bytes that are not
    UTF-8 become replacement marks."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise DataError(
            "a file of frames cannot be read", where=str(path), found=error.strerror or ""
        ) from None
    with stream:
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


def _cells(lines: pl.Series) -> pl.Series:
    """Lines to lists of cells: comma, semicolon or tab between them, quotes and blanks around
    them removed."""
    return lines.str.replace_all("[;\t]", ",").str.replace_all("[\"' \r]", "").str.split(",")


def _layout(lines: pl.Series) -> tuple[int, int]:
    """(column of stamps, column of frames), by what most of the first lines look like; (0, 1)
    where nothing looks like a frame."""
    cells = (
        pl.DataFrame({"cell": _cells(lines.head(SAMPLE_LINES))})
        .with_row_index("line")
        .explode("cell", empty_as_null=True)
    )
    cells = cells.with_columns(column=pl.int_range(pl.len()).over("line"))
    number = pl.col("cell").cast(pl.Float64, strict=False)
    votes = (
        cells.group_by("column")
        .agg(
            frame=(
                pl.col("cell").str.contains(FRAME)
                & ~(number.is_between(*TIME_RANGE_S).fill_null(False))
            ).sum(),
            stamp=number.is_between(*TIME_RANGE_S).sum(),
        )
        .sort("column")
    )
    frame = votes.sort(["frame", "column"], descending=[True, False])
    if not frame["frame"][0]:
        return 0, 1
    column = frame["column"][0]
    stamp = votes.filter(pl.col("column") != column).sort(
        ["stamp", "column"], descending=[True, False]
    )
    return (int(stamp["column"][0]) if len(stamp) else column + 1), int(column)


def _parse(
    lines: pl.Series, layout: tuple[int, int], record: int
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Frames of some lines, the first of which is line `record` of its file, and the number of
    the others by reason."""
    stamp, column = layout
    table = (
        pl.DataFrame({"cell": _cells(lines)})
        .with_row_index("record", offset=record)
        .select(
            pl.col("record").cast(pl.UInt32),
            blank=pl.col("cell").list.join("") == "",
            ts_s=pl.col("cell").list.get(stamp, null_on_oob=True).cast(pl.Float64, strict=False),
            hex=pl.col("cell").list.get(column, null_on_oob=True).str.to_uppercase(),
        )
    )
    text, digits = pl.col("hex"), pl.col("hex").str.contains("^[0-9A-F]+$").fill_null(False)
    reason = (
        pl.when("blank")
        .then(pl.lit("blank"))
        .when(
            (pl.col("record") == 0)
            & ~digits
            & pl.col("ts_s").is_null()
            & text.str.contains("^[A-Z_][A-Z0-9_]*$")
        )
        .then(pl.lit("header"))
        .when(~digits)
        .then(pl.lit("not_hex"))
        .when(~text.str.len_bytes().is_in([14, 28]))
        .then(pl.lit("wrong_length"))
        .when(~pl.col("ts_s").is_between(*TIME_RANGE_S).fill_null(False))
        .then(pl.lit("bad_time"))
    )
    table = table.with_columns(reason=reason)
    dropped = table.filter(pl.col("reason").is_not_null())["reason"].value_counts()
    return table.filter(pl.col("reason").is_null()).select("ts_s", "hex", "record"), dict(
        dropped.iter_rows()
    )
