"""A table of numbers at equal times, read strictly: what is wrong with it is named, counted, and
refused, or mended where its reading says so (`mends`).

Damage and its mending: a cell of text, an empty one, one that is no finite number, a sentinel are
masked; a gap's missing rows are put in, masked; of repeated stamps the first row stays; unordered
rows are sorted; a column that never changes is left out. A stamp that is none is always refused.
Shapes: T rows, O columns.
"""

import gzip
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stages.dynamics.series.settings import Reading
from stages.errors import DataError

Array = np.ndarray
UNREADABLE = (zipfile.BadZipFile, OSError, EOFError, KeyError, UnicodeDecodeError)
MOST = 1 << 30  # bytes of a table; a small archive may unpack to any size
REMEDY = "mend the file, or name the kind among `mends` of its reading"


@dataclass(frozen=True)
class Table:
    """Values (T, O), in the file's units, not a number where masked; the columns' names; how many
    of each kind of damage were mended."""

    values: Array
    columns: tuple[str, ...]
    mended: dict[str, int]


@dataclass
class Damage:
    """What was found, where, and whether it may be mended."""

    where: str
    mends: tuple[str, ...]
    found: dict[str, int]

    def tell(self, kind: str, count: int, first: str) -> None:
        """So many of a kind. DataError unless they are mended."""
        if not count:
            return
        if kind not in self.mends:
            raise DataError(
                f"the table is damaged: {kind}",
                where=self.where,
                expected=f"none, or {kind!r} among `mends`",
                found=f"{count}, the first {first}",
                remedy=REMEDY,
            )
        self.found[kind] = count


def read(folder: Path, reading: Reading) -> Table:
    """The table of a raw folder. DataError for one that cannot be read, or is damaged otherwise
    than `mends` says."""
    path = folder / reading.file
    damage = Damage(reading.file, reading.mends, {})
    header = reading.stamps is not None
    try:
        rows = pl.read_csv(
            io.BytesIO(text_of(path, reading).encode()), has_header=header, infer_schema_length=0,
        )  # fmt: skip
    except pl.exceptions.PolarsError as error:
        raise refused(path, str(error).splitlines()[0][:200]) from None
    if not rows.height:
        raise refused(path, "no rows")
    first = int(header)
    columns = tuple(name.strip() for name in rows.columns[first:])
    if not columns:
        raise refused(path, "no column of numbers")
    values = numbers(rows.select(rows.columns[first:]), columns, reading, damage)
    if reading.stamps is not None:
        steps = timed(rows[:, 0], reading, damage)
        values = placed(values, steps, damage)
    still = np.array([np.unique(one[np.isfinite(one)]).size < 2 for one in values.T])
    names = ", ".join(np.array(columns)[still][:5])
    damage.tell("constant", int(still.sum()), f"column {names}")
    if still.all():
        raise refused(path, "no column that changes")
    kept = tuple(name for name, out in zip(columns, still, strict=True) if not out)
    return Table(values[:, ~still], kept, damage.found)


def refused(path: Path, found: str) -> DataError:
    """Of a file that is no table."""
    return DataError(
        "the file is no table of numbers",
        where=str(path),
        expected="comma-separated rows of equally many cells",
        found=found,
        remedy="acquire the data set again, or mend its reading",
    )


def text_of(path: Path, reading: Reading) -> str:
    """The file's text, unpacked (gzip, or a zip archive's member), at most MOST bytes."""
    try:
        if reading.member is not None:
            with zipfile.ZipFile(path) as archive, archive.open(reading.member) as stream:
                raw = stream.read(MOST + 1)
        elif path.suffix == ".gz":
            with gzip.open(path) as stream:
                raw = stream.read(MOST + 1)
        else:
            with path.open("rb") as stream:
                raw = stream.read(MOST + 1)
        if len(raw) > MOST:
            raise refused(path, f"more than {MOST} bytes")
        return raw.decode(reading.encoding)
    except UNREADABLE as error:
        raise refused(path, str(error)[:200] or type(error).__name__) from None


def numbers(
    cells: pl.DataFrame, columns: tuple[str, ...], reading: Reading, damage: Damage
) -> Array:
    """Values (T, O) of cells of text, not a number where they are masked."""
    text = cells.select(pl.all().fill_null("").str.strip_chars())
    values = text.select(pl.all().cast(pl.Float64, strict=False))
    known, array = values.select(pl.all().is_not_null()).to_numpy(), values.to_numpy().copy()
    empty = text.select(pl.all() == "").to_numpy()

    def place(mask: Array) -> str:
        row, column = np.argwhere(mask)[0] if mask.any() else (0, 0)
        return f"in row {row + 1}, column {columns[column]!r}: {text[int(row), int(column)]!r}"

    sentinel = np.isin(array, reading.sentinels)
    for kind, mask in (
        ("empty", empty),
        ("text", ~known & ~empty),
        ("not finite", known & ~np.isfinite(array)),
        ("sentinel", sentinel),
    ):
        damage.tell(kind, int(mask.sum()), place(mask))
    array[~known | ~np.isfinite(array) | sentinel] = np.nan
    return array


def timed(column: pl.Series, reading: Reading, damage: Damage) -> Array:
    """Each row's time in steps from the first row's (T,). DataError for a stamp that is none, or
    that lies between two steps."""
    assert reading.stamps is not None
    stamps = column.str.strip_chars().str.to_datetime(reading.stamps, strict=False)
    if stamps.null_count():
        row = int(stamps.is_null().arg_max() or 0)
        raise DataError(
            "a stamp is no time",
            where=damage.where,
            expected=f"times as in {reading.stamps!r}",
            found=f"{stamps.null_count()}, the first in row {row + 1}: {column[row]!r}",
            remedy="mend the file, or `stamps` of its reading",
        )
    seconds = (stamps - stamps.min()).dt.total_microseconds().to_numpy() / 1e6
    steps = seconds / reading.step_s
    off = np.abs(steps - steps.round()) > 1e-6
    if off.any():
        raise DataError(
            "a stamp lies between two steps",
            where=damage.where,
            expected=f"a row every {reading.step_s:g} s",
            found=f"{int(off.sum())}, the first in row {int(off.argmax()) + 1}: "
            f"{column[int(off.argmax())]!r}",
            remedy="mend the file, or `step_s` of its reading",
        )
    found: Array = steps.round().astype(np.int64)
    return found


def placed(values: Array, steps: Array, damage: Damage) -> Array:
    """Values (T, O) at their own steps (T,): sorted, one row a step, a row for every step."""
    back = np.diff(steps) < 0
    damage.tell("unordered", int(back.sum()), f"after row {int(back.argmax()) + 1}")
    order = np.argsort(steps, kind="stable")
    steps, values = steps[order], values[order]
    again = np.diff(steps, prepend=-1) == 0
    damage.tell("repeated", int(again.sum()), f"at step {steps[again.argmax()]}")
    steps, values = steps[~again], values[~again]
    count = int(steps[-1]) + 1
    missing = count - len(steps)
    if missing > len(steps):
        raise DataError(
            "more rows are missing than there are",
            where=damage.where,
            expected="a row a step",
            found=f"{len(steps)} rows of {count} steps",
            remedy="mend `step_s` of its reading",
        )
    gap = np.diff(steps) > 1
    damage.tell("gap", missing, f"after step {int(steps[gap.argmax()]) if gap.any() else 0}")
    whole = np.full((count, values.shape[1]), np.nan)
    whole[steps] = values
    return whole


def carried(values: Array) -> Array:
    """Values (T, O) without masked cells: each takes the last known one of its column, before the
    first known one that."""
    rows = np.arange(len(values))[:, None]
    last = np.maximum.accumulate(np.where(np.isfinite(values), rows, -1), 0)
    first = np.isfinite(values).argmax(0)
    found: Array = np.take_along_axis(values, np.where(last < 0, first, last), 0)
    return found
