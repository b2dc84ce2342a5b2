"""How many rows a raw file gained and lost between two commits, from the bytes themselves where
they are still here.

Text tables are compared as multisets of lines, so a row that moved is none gained; of parquet and
.npy the numbers of rows are told. Where the bytes of a commit are no longer in the cache or the
working copy, the sizes that the records tell must do.
"""

from collections import Counter
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 26  # a larger file is told by its size
TEXT = (".csv", ".txt", ".tsv")


def rows(
    path: str, old: tuple[Path | None, int] | None, new: tuple[Path | None, int] | None
) -> str:
    """'+120 −3 rows' for a raw file called `path`; each side is (its bytes, their size), None
    where the commit has no such file."""
    sides = [side for side in (old, new) if side]
    counted = Path(path).suffix in (*TEXT, ".parquet", ".npy") and all(
        file and size <= MOST_BYTES for file, size in sides
    )
    if counted and Path(path).suffix in TEXT:
        after: Any
        before: Any
        before, after = (lines(side[0]) if side else Counter() for side in (old, new))
        more, less = (after - before).total(), (before - after).total()
        return f"{signed_count(more, '+')} {signed_count(less, '−')}".strip() + " rows"
    numbers = [
        count(side[0], Path(path).suffix) if counted and side else None for side in (old, new)
    ]
    unit = "rows" if any(number is not None for number in numbers) else "bytes"
    before, after = numbers if unit == "rows" else [side and side[1] for side in (old, new)]
    if old is None or new is None:
        return f"+{after:,} {unit}" if old is None else f"−{before:,} {unit}"
    return (
        f"{before:,} → {after:,} {unit}"
        if before != after
        else f"{after:,} {unit} as before, with other content"
    )


def signed_count(number: int, sign: str) -> str:
    """A signed number, nothing for none."""
    return f"{sign}{number:,}" if number else ""


def lines(file: Path) -> Counter[bytes]:
    """Each row of a text table and how often it stands there, without a head of names."""
    content = file.read_bytes().splitlines()
    return Counter(
        line for line in (content[1:] if content and head(content[0]) else content) if line.strip()
    )


def head(line: bytes) -> bool:
    """Whether a line is names: none of its cells begins as a number does."""
    firsts = [cell.strip(b' "')[:1] for cell in line.split(b",")]
    return len(firsts) > 1 and not any(
        first.isdigit() or first in (b"-", b"+", b".") for first in firsts
    )


def count(file: Path, suffix: str) -> int | None:
    """The rows of a .parquet or .npy; None where it cannot be read as one."""
    if suffix == ".parquet":
        import polars as pl

        try:
            return pl.scan_parquet(file.as_posix(), glob=False).select(pl.len()).collect().item()
        except (pl.exceptions.PolarsError, OSError):
            return None
    import numpy as np

    try:
        return int(np.load(file, mmap_mode="r", allow_pickle=False).shape[0])
    except (ValueError, EOFError, OSError, IndexError):
        return None
