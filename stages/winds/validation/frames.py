"""Rules on what was acquired and what decoding dropped: the manifest, raw frame files, and the drop
counts by reason.

A raw frame file is text, one message a line, read as decode reads it (modes/frames.py): what is
judged is what is used. Record = line number from 0. Stamps are judged against the file's own
median, not the clock: the same bytes get the same verdict at any time.
"""

from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import DataError
from stages.validation import reduce
from stages.validation.reduce import outside, share
from stages.validation.rules import MANIFEST, Rule, Table, acquired, both
from stages.winds.decoding import bounds
from stages.winds.modes import frames as modes

WEEK_S = 7 * 86400.0
READABLE = pl.col("ts_s").is_not_null() & pl.col("hex").str.len_bytes().is_in([14, 28]).fill_null(
    False
)
WRONG_LENGTH = pl.col("hex").is_not_null() & ~pl.col("hex").str.len_bytes().is_in([14, 28])
BACK = pl.col("ts_s") < pl.col("ts_s").shift(1)
PARITY = ("crc", "parity", "checksum")  # words by which a reason is known to be a failed checksum

FRAMES = [
    Rule(
        "frames.lines",
        "frames",
        "lines",
        "critical",
        "a frame file without lines: acquire the set again",
        low=1,
    ),
    *both(
        "frames.unreadable",
        "frames",
        "unreadable",
        "lines without a time or a frame are dropped by decode: look at the file's form",
        warn=0.01,
        stop=0.5,
        rows=~READABLE,
    ),
    *both(
        "frames.length",
        "frames",
        "wrong_length",
        "frames that are cut or joined: look at the receiver's output",
        warn=0.01,
        stop=0.2,
        rows=WRONG_LENGTH,
    ),
    *both(
        "frames.time_order",
        "frames",
        "back",
        "lines are not in order of time: sort them, or look at the receiver's clock",
        warn=0,
        stop=0.01,
        rows=BACK,
    ),
    *both(
        "frames.time_range",
        "frames",
        "out_of_era",
        "stamps outside the years 2000 to 2099, which decode drops: is the time in Unix seconds?",
        warn=0,
        stop=0.001,
        rows=outside("ts_s", reduce.YEAR_2000_S, reduce.YEAR_2100_S),
    ),
    *both(
        "frames.future",
        "frames",
        "future",
        "stamps over a week after the file's median: look at the receiver's clock",
        warn=0,
        stop=0.01,
        rows=pl.col("ts_s") > pl.col("ts_s").median() + WEEK_S,
    ),
    *both(
        "frames.duplicates",
        "frames",
        "duplicates",
        "the same frame at the same moment: several receivers, or a file written twice",
        warn=0.01,
        stop=0.5,
        rows=READABLE & ~pl.struct("ts_s", "hex").is_first_distinct(),
    ),
]
BOOKS = Rule(
    "counts.balance",
    "counts",
    "imbalance",
    "critical",
    "decode lost rows without a reason: mend its counting",
    low=0,
    high=0,
)
CHECKSUM = both(
    "counts.checksum",
    "parity",
    "share",
    "many frames fail their checksum: look at the receiver",
    warn=0.1,
    stop=0.5,
)
DROPS = both(
    "counts.drop",
    "drops",
    "share",
    "one reason takes nearly everything: look at that decode step",
    warn=0.75,
    stop=0.99,
)
OUTSIDE = both(
    "counts.outside",
    "outside",
    "share",
    "positions, heights or times that no aircraft can report: look at the units of the source",
    warn=0,
    stop=0.001,
)
KEPT = Rule(
    "counts.kept",
    "counts",
    "kept",
    "critical",
    "a decode step keeps nothing: look at its drops by reason",
    low=1,
)


COMPRESSED = (
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"\x78\x01",
    b"\x78\x5e",
    b"\x78\x9c",
    b"\x78\xda",
)  # gzip, zstd, zlib
SHORTEST = 6  # digits: an address has six, a frame more
LINES = {"file": pl.String, "record": pl.UInt32, "ts_s": pl.Float64, "hex": pl.String}


def rules(wind: bool) -> list[Rule]:
    """All rules of this file; `wind` says whether the profile expects winds of the set, so that
    dropping all is a failure."""
    return [
        *MANIFEST,
        *FRAMES,
        BOOKS,
        *CHECKSUM,
        *OUTSIDE,
        *((KEPT, *DROPS) if wind else DROPS[:1]),
    ]


def lines(path: Path) -> pl.LazyFrame:
    """file, record, ts_s, hex of each line; null where a line has none. `hex` may have any length
    over six digits.

    DataError for a file that begins as a compressed one, but for gzip, which decode unpacks too.
    """
    with path.open("rb") as stream:
        head = stream.read(4)
    if head.startswith(COMPRESSED) and not head.startswith(modes.GZIP):
        raise DataError(
            "a frame file is compressed",
            where=str(path),
            expected="lines of text, or a gzip file of them",
            remedy="unpack it before it is acquired",
        )
    digits = pl.when(pl.col("hex").str.len_bytes() > SHORTEST).then("hex")
    parts = [
        table.select(pl.lit(path.name).alias("file"), "record", "ts_s", hex=digits)
        for table in modes.tables(path)
    ]
    return pl.concat([pl.DataFrame(schema=LINES), *parts]).lazy()


class Read(dict[str, pl.LazyFrame]):
    """The lines of a folder's files by name, each read when it is asked for: one is in memory."""

    def __init__(self, raw: Path):
        super().__init__()
        self.raw = raw

    def __missing__(self, name: str) -> pl.LazyFrame:
        return lines(self.raw / name)


def frame_row(path: Path) -> dict[str, Any]:
    """The summary of one frame file. Copies are counted over the readable lines of the file."""
    lazy = lines(path)
    one = reduce.summary(
        lazy,
        lines=pl.len(),
        unreadable=share(~READABLE),
        wrong_length=share(WRONG_LENGTH),
        back=share(BACK),
        out_of_era=share(outside("ts_s", reduce.YEAR_2000_S, reduce.YEAR_2100_S)),
        future=share(pl.col("ts_s") > pl.col("ts_s").median() + WEEK_S),
    )
    copies = (
        lazy.filter(READABLE)
        .group_by("ts_s", "hex")
        .len()
        .select((pl.col("len") - 1).sum())
        .collect(engine="streaming")
        .item()
    )
    return {"file": path.name, **one, "duplicates": (copies or 0) / max(one["lines"], 1)}


def levels(counts: Any, path: str = "") -> list[dict[str, Any]]:
    """Every part of counts.json that keeps books (read, kept, dropped), by its path; read =
    kept + all drops, or it is out of balance."""
    if not isinstance(counts, dict):
        return []
    found = []
    if isinstance(counts.get("dropped"), dict) and {"read", "kept"} <= counts.keys():
        name = path.removeprefix("levels.") or str(counts.get("stage", "decode"))
        read, kept, dropped = counts["read"], counts["kept"], counts["dropped"]
        found.append(
            {
                "level": name,
                "read": read,
                "kept": kept,
                "dropped": dropped,
                "imbalance": read - kept - sum(dropped.values()),
            }
        )
    for key, value in sorted(counts.items()):
        if key != "dropped":
            found.extend(levels(value, f"{path}.{key}" if path else key))
    return found


def tables(
    raw: Path, manifest: dict[str, Any], judged: dict[str, str], counts: dict[str, Any]
) -> dict[str, Table]:
    """Summaries of the raw folder and of the drop counts. `judged` is the SHA-256 of each file
    by path, taken from disk."""
    named, found = manifest["files"], acquired(raw, manifest, judged)
    if manifest["entry"] == "frames":
        paths = sorted(
            raw / name for name in named if modes.is_capture(name) and (raw / name).exists()
        )
        if paths:
            found["frames"] = Table([frame_row(path) for path in paths], "file", Read(raw))
    books = levels(counts)
    found["counts"] = Table(books, "level")
    drops = [
        {"drop": f"{level['level']}: {reason}", "share": n / max(level["read"], 1)}
        for level in books
        for reason, n in sorted(level["dropped"].items())
    ]
    for name, chosen in (
        ("drops", drops),
        ("parity", [d for d in drops if any(word in d["drop"].lower() for word in PARITY)]),
        ("outside", [d for d in drops if d["drop"].endswith(f": {bounds.REASON}")]),
    ):
        if chosen:
            found[name] = Table(chosen, "drop")
    return found
