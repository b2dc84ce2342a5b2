"""Navier-Stokes sets of PDEBench's files, as the authors made them (thesis C.1.3): a transported
field now, and 50 outputs later.

Raw: ns_incom_inhom_2d_512-K.h5, HDF5 whose `particles`, float32 (trajectories, outputs, G, G, 1),
is the field that the authors' code reads where the thesis says vorticity
(reports/sparse_fields/README.md). Pairs, nodes and positions (index / 256 - 1 where G is 512) are
navier_stokes/'s; nothing is standardised. Files go by their number: the first train, the last
tenth tests, the tenth before it selects, one at least (the authors took 200 in the order of their
folder, which differs between machines). A file whose trajectories begin as those of an earlier one
is left out, and `facts` tells it: 24 of the 274 published are copies of others. A field is read at
a time, and only those with a point in a set: G * G * 4 bytes. Every byte comes from the file
itself: links, external or virtual storage and filters beside HDF5's own are refused.
Shapes: S sets, C context, T targets, G grid. Numbers without dimension; the box's side is 2.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError, InputError, TradewindError
from stages.fields.gridded.convention import EXTRA
from stages.fields.problem import Counts, Sets
from stages.fields.problems.navier_stokes.read import GAP, enough, nodes, positions
from stages.seeds import stream

NAME = r"ns_incom_inhom_2d_512-(\d{1,4})\.h5"
FIELD = "particles"
FILTERS = frozenset(
    {1, 2, 3, 32000}
)  # deflate, shuffle, fletcher32, and lzf, which h5py brings along: no plugin is loaded
CHUNK_MAX = 2**26  # bytes that one read may unpack; theirs has 2^20
AGAIN = "acquire the data set again"


@dataclass(frozen=True)
class File:
    """One sound file: its shape, and a digest of each trajectory's first field."""

    path: Path
    trajectories: int
    outputs: int
    grid: int
    begins: frozenset[str]


def _refuse(path: Path, what: str, expected: Any, found: Any, remedy: str = AGAIN) -> DataError:
    return DataError(
        what, where=str(path), expected=str(expected), found=str(found)[:200], remedy=remedy
    )


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """`particles` of one file, checked but for its numbers. InputError without h5py; DataError
    for anything but the layout above."""
    try:
        import h5py
    except ImportError:
        raise InputError(
            "HDF5 cannot be read without h5py", where=str(path), remedy=EXTRA
        ) from None
    try:
        with h5py.File(path, "r") as file:
            link = file.get(FIELD, getlink=True) if FIELD in file.keys() else None
            if link is None:
                raise _refuse(
                    path,
                    f"an HDF5 file has no `{FIELD}`",
                    "force, particles, t, velocity",
                    ", ".join(file.keys()) or "nothing",
                )
            if not isinstance(link, h5py.HardLink):
                raise _refuse(
                    path,
                    f"`{FIELD}` is a link to elsewhere",
                    "numbers of the file's own",
                    type(link).__name__,
                )
            data = file[FIELD]
            if not isinstance(data, h5py.Dataset):
                raise _refuse(
                    path,
                    f"`{FIELD}` is no array",
                    "float32 (trajectories, outputs, G, G, 1)",
                    type(data).__name__,
                )
            check(path, data)
            yield data
    except TradewindError:
        raise
    except Exception as error:
        # HDF5 answers damage with OSError, RuntimeError, KeyError, ValueError, as it meets it
        raise _refuse(
            path,
            "a file is no whole HDF5",
            "an HDF5 file of PDEBench",
            f"{type(error).__name__}: {error}",
        ) from None


def check(path: Path, data: Any) -> None:
    """DataError unless the array is stored whole in its own file, by known filters, and has type
    and shape of a field in time."""
    if data.is_virtual or data.external:
        raise _refuse(
            path,
            f"`{FIELD}` lies in other files",
            "numbers of the file's own",
            "virtual" if data.is_virtual else "external storage",
        )
    shape = data.shape or ()
    if (
        data.dtype.newbyteorder("=") != np.float32
        or len(shape) != 5
        or shape[4] != 1
        or shape[2] != shape[3]
        or 0 in shape
    ):
        raise _refuse(
            path,
            f"`{FIELD}` is of another kind or shape",
            "float32 (trajectories, outputs, G, G, 1)",
            f"{data.dtype} {shape}",
        )
    if shape[1] <= GAP:
        raise _refuse(
            path, "trajectories are too short for a pair", f"more than {GAP} outputs", shape[1]
        )
    made = data.id.get_create_plist()
    used = {made.get_filter(k)[0] for k in range(made.get_nfilters())}
    if not used <= FILTERS:
        raise _refuse(
            path,
            f"`{FIELD}` is packed by an unknown filter",
            "gzip, lzf, shuffle or fletcher32",
            f"filters {sorted(used - FILTERS)}",
        )
    if data.chunks is None:
        there, whole = data.id.get_storage_size(), data.nbytes
    elif (size := int(np.prod(data.chunks)) * 4) > CHUNK_MAX:
        raise _refuse(
            path,
            f"`{FIELD}` is stored in too large pieces",
            f"at most {CHUNK_MAX} bytes",
            f"{size} bytes, {data.chunks}",
        )
    else:
        there = data.id.get_num_chunks()
        whole = int(np.prod([-(-n // m) for n, m in zip(shape, data.chunks, strict=True)]))
    if there != whole:  # HDF5 answers with zeros where nothing was ever written
        raise _refuse(
            path,
            f"`{FIELD}` was never written whole",
            f"{whole} {'bytes' if data.chunks is None else 'pieces'}",
            there,
        )


def field(path: Path, data: Any, trajectory: int, output: int) -> np.ndarray:
    """One field (G * G,) float32. DataError for damage or a number that is not finite."""
    try:
        values = data[trajectory, output, :, :, 0].astype(np.float32, copy=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise _refuse(
            path,
            "a field cannot be unpacked",
            "whole pieces",
            f"trajectory {trajectory}, output {output}: {error}",
        ) from None
    if not np.isfinite(values).all():
        raise _refuse(
            path,
            "a field holds numbers that are not finite",
            "finite numbers",
            f"trajectory {trajectory}, output {output}",
        )
    return values.reshape(-1)


def look(path: Path) -> File:
    """What a file holds."""
    with opened(path) as data:
        n, outputs, grid = data.shape[:3]
        begins = frozenset(
            hashlib.sha256(field(path, data, k, 0).tobytes()).hexdigest() for k in range(n)
        )
    return File(path, n, outputs, grid, begins)


def distinct(raw: Path) -> tuple[list[File], list[str]]:
    """The files of a folder by number, without those that share a trajectory's begin with an
    earlier one; and the names of these.

    DataError for files that differ in outputs or grid, or fewer than three distinct ones.
    """
    named = {
        int(match[1]): path
        for path in (raw.iterdir() if raw.is_dir() else ())
        if (match := re.fullmatch(NAME, path.name))
    }
    files: list[File] = []
    again, seen = [], {}
    for number in sorted(named):
        file = look(named[number])
        if files and (file.outputs, file.grid) != (files[0].outputs, files[0].grid):
            raise _refuse(
                file.path,
                "files differ in outputs or grid",
                f"{files[0].outputs} x {files[0].grid}^2, as in {files[0].path.name}",
                f"{file.outputs} x {file.grid}^2",
            )
        if earlier := {seen[begin] for begin in file.begins if begin in seen}:
            again.append(f"{file.path.name} as {', '.join(sorted(earlier))}")
        else:
            files.append(file)
            seen |= dict.fromkeys(file.begins, file.path.name)
    if len(files) < 3:
        raise _refuse(
            raw,
            "too few files for three splits",
            "3 or more different ones, ns_incom_inhom_2d_512-K.h5",
            f"{len(files)}" + (f", and again {'; '.join(again)}" if again else ""),
            "name more files of the data set in stages/params/datasets/sets.yaml",
        )
    return files, again


def parts(count: int) -> np.ndarray:
    """The split of `count` files in order, 0 train, 1 validation, 2 test (count,): a tenth each,
    at least one, of the last two."""
    tenth = max(1, count // 10)
    return np.repeat([0, 1, 2], [count - 2 * tenth, tenth, tenth])


def read(raw: Path, seed: int, counts: Counts) -> Sets:
    """All pairs of all files (or `counts.sets` of them, drawn at random), context and targets drawn
    anew for each; positions (S, C, 2).

    InputError for more points than nodes, or without h5py; DataError for files that are damaged,
    too few, or not what they are called.
    """
    files, again = distinct(raw)
    grid, pairs = files[0].grid, files[0].outputs - GAP
    enough(raw, grid, counts, "lower `context` and `targets` of this data set")
    begin = np.cumsum([0, *(file.trajectories for file in files)])
    kept = np.sort(stream(seed, "pdebench", "sets").permutation(begin[-1] * pairs)[: counts.sets])
    group, t = np.divmod(kept, pairs)
    source = np.searchsorted(begin, group, side="right") - 1
    context, target = (
        nodes(stream(seed, "pdebench", name), len(kept), points, grid)
        for name, points in (("context", counts.context), ("targets", counts.targets))
    )
    context_y, target_y = np.empty(context.shape), np.empty(target.shape)
    for k, file in enumerate(files):
        wanted: dict[
            tuple[int, int], list[tuple[np.ndarray, np.ndarray, Any]]
        ] = {}  # (trajectory, output): the rows that it fills
        s: Any
        for s in np.flatnonzero(source == k):
            whose = int(group[s] - begin[k])
            wanted.setdefault((whose, int(t[s])), []).append((context_y, context, s))
            wanted.setdefault((whose, int(t[s]) + GAP), []).append((target_y, target, s))
        if wanted:
            with opened(file.path) as data:
                for at in sorted(wanted):
                    values = field(file.path, data, *at)
                    for told, places, s in wanted[at]:
                        told[s] = values[places[s]]
    return Sets(
        context_x=positions(context, grid),
        context_y=context_y[..., None],
        target_x=positions(target, grid),
        target_y=target_y[..., None],
        split=parts(len(files))[source],
        source=source,
        record=(group - begin[source]) * pairs + t,
        group=group,
        files=tuple(file.path.name for file in files),
        units={"x": ("half box", "half box"), "i": ("1",), "o": ("1",)},
        names={"x": ("x", "y"), "i": (FIELD,), "o": (FIELD,)},
        loss="mse",
        standardise=False,
        facts={
            "trajectories": int(begin[-1]),
            "pairs_per_trajectory": pairs,
            "gap_outputs": GAP,
            "grid": grid,
            "files": len(files),
            "files_again": again,
        },
    )
