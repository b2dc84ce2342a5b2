"""Flow through a porous medium as sets: the phase at some points, the pressure asked for at others
(thesis C.1.4, equation C.3).

Raw: darcy_train_G.pt and darcy_test_G.pt, archives that PyTorch writes, of x bool (N, G, G), which
of two phases, and y float32 (N, G, G), the solution; real (Li et al. 2021, as the neuraloperator
project publishes them) or simulated. They are read without PyTorch: the one layout is known byte by
byte, anything else is refused, nothing is executed. Note that the lattice is theirs: i/G from the
border on, the last row one step before the opposite border (measured: the real first row lies about
0.001 inside, which is left out). Each sample gives C lattice points as context and T as targets,
both drawn at random without replacement, each for itself; with an `overlap` all targets lie in the
first quarter, that share of the context too, and the rest of it outside (C.11, tables C.8 and C.9).
The train file's last tenth is for validation. Standardised. Shapes: S samples, G points a side.
Units: none are stated.
"""

import math
import pickletools
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError, InputError
from stages.fields.problem import Counts, Sets
from stages.seeds import stream

AGAIN = "acquire the data set again"
NAME = r"darcy_(train|test)_(\d{1,4})\.pt"
SMALL = 4096  # bytes: no description is longer


def tokens(description: bytes) -> list[str | int]:
    """What a pickle says, operation by operation, without doing any of it: arguments, or the
    operations' names where they have none.

    Single words that are remembered and recalled stand in full. ValueError for what is no pickle.
    """
    said: list[str | int] = []
    memory: dict[int, str | int] = {}
    for operation, argument, _ in pickletools.genops(description):
        if operation.name in ("BINPUT", "LONG_BINPUT"):
            memory[argument] = said[-1] if said else ""
        elif operation.name in ("BINGET", "LONG_BINGET"):
            said.append(memory.get(argument, ""))
        else:
            said.append(operation.name if argument is None else argument)
    return said


def layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[str | int]:
    """Tokens of x, a bool tensor in storage 0, and y, a float32 one in storage 1, of this shape
    and these strides: all that is taken."""
    said: list[str | int] = [2, "EMPTY_DICT", "MARK"]
    for key, kind, name in (("x", "BoolStorage", "0"), ("y", "FloatStorage", "1")):
        said += [
            key,
            "torch._utils _rebuild_tensor_v2",
            "MARK",
            "MARK",
            "storage",
            f"torch {kind}",
            name,
            "cpu",
            math.prod(shape),
            "TUPLE",
            "BINPERSID",
            0,
            *shape,
            "TUPLE3",
            *strides,
            "TUPLE3",
            "NEWFALSE",
            "collections OrderedDict",
            "EMPTY_TUPLE",
            "REDUCE",
            "TUPLE",
            "REDUCE",
        ]
    return [*said, "SETITEMS", "STOP"]


SHAPE_AT = slice(15, 18)  # in `layout`


def parse_description(description: bytes, path: Path) -> tuple[tuple[int, int, int], bool]:
    """The shape (N, G, G) of both arrays, and whether they lie in row order (else the first axis
    is fastest). DataError for all else."""
    expected = "a dictionary of x, bool (N, G, G), and y, float32 (N, G, G), in storages 0 and 1"
    try:
        said = tokens(description)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise DataError(
            "an archive's description is damaged",
            where=str(path),
            expected=expected,
            found=str(error)[:120],
            remedy=AGAIN,
        ) from None
    shape: Any = tuple(said[SHAPE_AT])
    if (
        len(shape) == 3
        and all(type(side) is int and side > 0 for side in shape)
        and shape[1] == shape[2]
    ):
        n, g, _ = shape
        strides: Any
        for strides in ((g * g, g, 1), (1, n, n * g)):
            if said == layout(shape, strides):
                return shape, strides[2] == 1
    raise DataError(
        "an archive is not laid out as the Darcy files are",
        where=str(path),
        expected=expected,
        remedy=AGAIN,
        found=" ".join(map(str, said))[:200],
    )


def unpack(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Phases (N, G, G), bool, and solutions (N, G, G), float64, of one archive. DataError for
    any but the one layout, whole and finite."""
    try:
        with zipfile.ZipFile(path) as archive:
            folder = archive.namelist()[0].split("/")[0] if archive.namelist() else ""
            sizes = {
                entry.filename: entry.file_size
                for entry in archive.infolist()
                if entry.compress_type == zipfile.ZIP_STORED
            }
            if sizes.get(f"{folder}/data.pkl", SMALL) >= SMALL:
                raise DataError(
                    "an archive has no description",
                    where=str(path),
                    expected=f"data.pkl, stored, below {SMALL} bytes",
                    found=", ".join(archive.namelist()[:6]) or "no members",
                    remedy=AGAIN,
                )
            order = (
                archive.read(f"{folder}/byteorder")
                if sizes.get(f"{folder}/byteorder", SMALL) < SMALL
                else b"little"
            )
            if order != b"little":
                raise DataError(
                    "an archive is not in little-endian byte order",
                    where=str(path),
                    expected="little",
                    found=repr(order),
                    remedy=AGAIN,
                )
            shape, rows = parse_description(archive.read(f"{folder}/data.pkl"), path)
            content = []
            for name, width in (("0", 1), ("1", 4)):
                size = sizes.get(f"{folder}/data/{name}", -1)
                if size != width * math.prod(shape):
                    raise DataError(
                        "an archive's numbers do not fill its arrays",
                        where=f"{path}: data/{name}",
                        remedy=AGAIN,
                        expected=f"{width * math.prod(shape)} bytes for {shape}",
                        found=f"{size} bytes" if size >= 0 else "none",
                    )
                content.append(archive.read(f"{folder}/data/{name}"))
    except FileNotFoundError:
        raise DataError("a raw file is missing", where=str(path), remedy=AGAIN) from None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(
            "a raw file is no whole archive",
            where=str(path),
            expected="the zip archive that PyTorch writes",
            found=str(error)[:120] or type(error).__name__,
            remedy=AGAIN,
        ) from None
    return numbers(content, shape, rows, path)


def numbers(
    content: list[bytes], shape: tuple[int, int, int], rows: bool, path: Path
) -> tuple[np.ndarray, np.ndarray]:
    """The arrays in an archive's two storages. DataError for a bool that is neither 0 nor 1, or
    a number that is not finite."""
    x, y = np.frombuffer(content[0], np.uint8), np.frombuffer(content[1], "<f4")
    if x.max() > 1:
        raise DataError(
            "an archive's x is not bool",
            where=str(path),
            expected="bytes 0 and 1",
            found=str(x.max()),
            remedy=AGAIN,
        )
    if not np.isfinite(y).all():
        at = int(np.argmin(np.isfinite(y)))
        raise DataError(
            "an archive's y holds numbers that are not finite",
            where=str(path),
            expected="finite numbers",
            remedy=AGAIN,
            found=f"{y[at]} at place {at} of data/1",
        )
    order = "C" if rows else "F"
    return x.reshape(shape, order=order).astype(bool), y.reshape(shape, order=order).astype(
        np.float64
    )


def archives(raw: Path) -> tuple[str, str]:
    """The names of a folder's train and test archive. DataError unless there is one of each, of
    the same lattice."""
    found = sorted(
        match[0]
        for path in (raw.iterdir() if raw.is_dir() else [])
        if (match := re.fullmatch(NAME, path.name))
    )
    sides = [re.fullmatch(NAME, name).groups() for name in found]
    if [part for part, _ in sides] != ["test", "train"] or sides[0][1] != sides[1][1]:
        raise DataError(
            "a folder does not hold one pair of Darcy archives",
            where=str(raw),
            expected="darcy_train_G.pt and darcy_test_G.pt",
            found=", ".join(found) or "none",
            remedy=AGAIN,
        )
    return found[1], found[0]


def draw(rng: np.random.Generator, number: int, points: int | np.ndarray, count: int) -> np.ndarray:
    """For each of `number` samples, `count` of its `points` (how many there are, or which), at
    random without replacement: (number, count)."""
    return np.stack([rng.choice(points, count, replace=False) for _ in range(number)])


def parted(
    seed: int, number: int, lattice: np.ndarray, counts: Counts, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Places on the lattice (G*G, 2) of contexts (number, C) and of targets (number, T) where
    targets keep to the first quarter of the area.

    `counts.overlap` percent of the context, rounded, but one point at least of any share above
    none, lie there too. InputError for more points than a part has.
    """
    inside = (lattice < 0.5).all(1)
    quarter, rest = np.flatnonzero(inside), np.flatnonzero(~inside)
    own = max(round(counts.context * counts.overlap / 100), counts.overlap > 0)
    for key, count, most in (
        ("targets", counts.targets, len(quarter)),
        ("context", own, len(quarter)),
        ("context", counts.context - own, len(rest)),
    ):
        if count > most:
            raise InputError(
                "more points are asked than that part of the lattice has",
                where=f"{where}, {key}, overlap {counts.overlap} %",
                expected=f"at most {most}",
                found=str(count),
                remedy=f"lower `{key}` of this data set",
            )
    near, far = (
        draw(stream(seed, "darcy", "context", word), number, part, count)
        for word, part, count in (("inside", quarter, own), ("outside", rest, counts.context - own))
    )
    return np.concatenate((near, far), 1), draw(
        stream(seed, "darcy", "targets"), number, quarter, counts.targets
    )


def sound(raw: Path, names: tuple[str, str], x: np.ndarray, test_x: np.ndarray) -> None:
    """DataError for phases (N, G, G) of another lattice than their files' names say, or too few."""
    learned, side = len(x), x.shape[1]
    if (
        any(array.shape[1] != int(re.fullmatch(NAME, names[0])[2]) for array in (x, test_x))
        or 1024 % side
    ):
        raise DataError(
            "the lattice is not the one of the file's name, or none that is known",
            where=str(raw),
            remedy=AGAIN,
            expected="G points a side, G a divisor of 1024",
            found=f"{side} and {test_x.shape[1]} in {', '.join(names)}",
        )
    if learned < 2:
        raise DataError(
            "too few samples for training and validation",
            where=str(raw / names[0]),
            expected="2 or more",
            found=str(learned),
            remedy="simulate more `train` samples",
        )


def first_of(x: np.ndarray) -> np.ndarray:
    """For each medium (N, points) the number of the first that equals it (N,): a medium that stands
    in two files is one group, which no two splits may share, whatever points are drawn of it."""
    _, first, back = np.unique(
        np.packbits(x, axis=1), axis=0, return_index=True, return_inverse=True
    )
    return first[back.reshape(-1)]


def read(raw: Path, seed: int, counts: Counts) -> Sets:
    """All samples (or `counts.sets` of them, drawn at random), each as one set.

    InputError where more points are asked than the lattice has; DataError for damaged archives, or
    a lattice that does not divide 1024.
    """
    names = archives(raw)
    (x, y), (test_x, test_y) = (unpack(raw / name) for name in names)
    learned, side = len(x), x.shape[1]
    sound(raw, names, x, test_x)
    for key in ("context", "targets"):
        if getattr(counts, key) > side**2:
            raise InputError(
                "more points are asked than the lattice has",
                where=f"{raw}, {key}",
                expected=f"at most {side**2}",
                found=str(getattr(counts, key)),
                remedy=f"lower `{key}` of this data set",
            )
    x, y = (np.concatenate(pair).reshape(-1, side**2) for pair in ((x, test_x), (y, test_y)))
    same = first_of(x)
    held = max(1, learned // 10)
    split = np.repeat([0, 1, 2], [learned - held, held, len(x) - learned])
    kept = np.sort(stream(seed, "darcy", "sets").permutation(len(x))[: counts.sets])
    lattice = np.stack(np.divmod(np.arange(side**2), side), 1) / side
    if counts.overlap is None:
        c, t = (
            draw(stream(seed, "darcy", word), len(x), side**2, getattr(counts, word))[kept]
            for word in ("context", "targets")
        )
    else:
        c, t = (places[kept] for places in parted(seed, len(x), lattice, counts, str(raw)))
    rows = kept[:, None]
    return Sets(
        context_x=lattice[c],
        context_y=x[rows, c][..., None].astype(np.float64),
        target_x=lattice[t],
        target_y=y[rows, t][..., None],
        split=split[kept],
        source=(kept >= learned).astype(np.int32),
        record=np.where(kept < learned, kept, kept - learned),
        group=same[kept],
        files=names,
        units={"x": ("1", "1"), "i": ("1",), "o": ("1",)},
        names={"x": ("x", "y"), "i": ("phase",), "o": ("u",)},
        loss="rmse",
        standardise=True,
        facts={"lattice": side},
    )
