"""Hourly fields of 2 m temperature out of one file of an archive, and the runs of hours that train,
select and test.

A run is whole: the grid of an hour lies in its own run, so no hour that one split asks or reads is
read or asked by another. Runs follow each other as train, gap, select, gap, test, gap, and so on to
the end of the file. Shapes: n hours, p latitudes, q longitudes. K, degrees.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages import files
from stages.errors import DataError
from stages.fields import gridded
from stages.fields.problems.functions.plans import Array

QUANTITY = "t2m"
SUFFIXES = (".nc", ".nc4", ".grib", ".grib1", ".grib2", ".grb", ".grb2")
HOUR = np.timedelta64(1, "h")
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Fields:
    """All hours, one after the other; `hour` counts from 1970."""

    hour: Array  # n
    lat: Array  # p, ascending
    lon: Array  # q, ascending
    values: Array  # n p q


@dataclass(frozen=True)
class Lengths:
    """Hours of the runs of each split and of the gaps between them; the oldest grid's age."""

    train: int
    val: int
    test: int
    gap: int
    oldest: int


def read(raw: Path) -> Fields:
    """The one weather file of a raw folder. DataError where there is none or several, and for what
    gridded.read refuses, an hour that is missing, and a node without a value."""
    paths = sorted(path for path in raw.rglob("*") if path.suffix in SUFFIXES)
    if len(paths) != 1:
        raise DataError(
            "not one weather file",
            where=str(raw),
            expected="one file ending in " + ", ".join(SUFFIXES),
            found=", ".join(path.name for path in paths) or "none",
        )
    told = files.read_json(raw / "manifest.json") if (raw / "manifest.json").is_file() else {}
    entry = told.get("files", {}).get(paths[0].relative_to(raw).as_posix(), {})
    found = gridded.read(paths[0], [QUANTITY], entry.get("messages"))
    hour = found.time.astype("datetime64[h]")
    broken = np.flatnonzero((np.diff(hour) != HOUR) | (found.time[1:] != hour[1:]))
    if len(broken):
        raise DataError(
            "an hour is missing",
            where=str(paths[0]),
            expected=f"{hour[broken[0]] + HOUR}:00 after {hour[broken[0]]}:00",
            found=str(found.time[broken[0] + 1].astype("datetime64[m]")),
            remedy="fetch the file again, whole, at steps of one hour",
        )
    values = found.values[QUANTITY].astype(np.float64)
    holes = np.argwhere(~np.isfinite(values))
    if len(holes):
        at, row, column = holes[0]
        raise DataError(
            "a node has no value",
            where=f"{paths[0]}: {QUANTITY} at {hour[at]}:00, {found.lat[row]:g} degrees north, "
            f"{found.lon[column]:g} east",
            expected="a value at every node and hour",
            found=f"{len(holes)} of {values.size} without one",
            remedy="fetch the file again, or fill what is missing before",
        )
    return Fields(hour.astype(np.int64), found.lat, found.lon, values)


def runs(hours: int, told: Lengths) -> dict[str, Array]:
    """Of every split its runs [first, end) among so many hours (R, 2). One that is cut short by the
    file's end is left out where no hour of it has a grid of every age. DataError where a split has
    none."""
    found: dict[str, list[tuple[int, int]]] = {split: [] for split in SPLITS}
    first = 0
    while first < hours:
        for split in SPLITS:
            end = min(first + getattr(told, split), hours)
            if end - first > told.oldest:
                found[split].append((first, end))
            first += getattr(told, split) + told.gap
    empty = [split for split in SPLITS if not found[split]]
    if empty:
        raise DataError(
            "the file is too short for its splits",
            where=", ".join(empty),
            expected=f"{told.train + told.val + told.test + 2 * told.gap} hours or more",
            found=f"{hours} hours",
            remedy="give more hours, or shorten train_h, val_h, test_h and gap_h",
        )
    return {split: np.array(several) for split, several in found.items()}
