"""Sines and random values: can a model hand each context value on to the target at the same place?
(thesis 3.5.1, equation 3.17; C.1, table C.1)

Positions are N(0, I) in the plane; the value is sin(pi f x) cos(pi f y) of its frequency f, or,
where f is None, an independent N(0, 1): then nothing but the point itself tells its value. The
documents take f of 0.1 to 10 and 64 points a set. Points are drawn in float64 and rounded to
float32 first, so a file's values are the function at the file's own positions.
Raw: points.npy (float32, S x P x 2), values.npy (float32, S x P) and meta.json. The targets are the
context's own points in an order drawn at random for each set, so a target's place in the list tells
nothing of its value. Sets are independent: which are for training, validation and test is drawn at
random, as many of each as meta.json says. A record is a set's number in both files.
Not standardised: positions are N(0, I), values lie in [-1, 1] or are N(0, 1).
Shapes: S sets, P points (C = T = P). Numbers without dimension.
"""

from pathlib import Path
from typing import Any

import numpy as np

from stages.arrays import load
from stages.errors import DataError, InputError
from stages.fields.problem import Counts, Sets
from stages.files import atomic_file, read_json, write_json
from stages.params import Sines
from stages.seeds import stream
from stages.splits import SPLITS


def sine(points: np.ndarray, frequency: float) -> np.ndarray:
    """Equation 3.17 at points (..., 2): (...)."""
    phase = np.pi * frequency * points.astype(np.float64)
    return np.sin(phase[..., 0]) * np.cos(phase[..., 1])


def make(config: Sines, folder: Path) -> None:
    """Write points.npy (S, P, 2), values.npy (S, P), both float32, and meta.json into `folder`."""
    total = config.train + config.val + config.test
    points = (
        stream(config.seed, "sines", "points")
        .standard_normal((total, config.points, 2))
        .astype("<f4")
    )
    values = (
        stream(config.seed, "sines", "values").standard_normal((total, config.points))
        if config.frequency is None
        else sine(points, config.frequency)
    )
    for name, array in (("points", points), ("values", values.astype("<f4"))):
        with atomic_file(folder / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
    write_json(
        folder / "meta.json",
        {
            "frequency": config.frequency,
            "points": config.points,
            "seed": config.seed,
            "split": {"train": config.train, "val": config.val, "test": config.test},
        },
    )


def read_meta(path: Path) -> dict[str, Any]:
    """meta.json, checked: points of a set, and how many sets are for which split."""
    meta = read_json(path)
    found = meta if isinstance(meta, dict) else {}
    split = found.get("split")
    if not (
        isinstance(split, dict)
        and set(split) == set(SPLITS)
        and all(type(n) is int and n >= 0 for n in split.values())
        and type(found.get("points")) is int
        and found["points"] > 0
    ):
        raise DataError(
            "meta.json tells no usable `points` and `split`",
            where=str(path),
            found=repr(meta)[:120],
            expected="points above 0; numbers of train, val and test sets",
            remedy="acquire the data set again",
        )
    return meta


def read(raw: Path, seed: int, counts: Counts) -> Sets:
    """All sets (or `counts.sets` of them, drawn at random), each with its own points as targets in
    another order.

    DataError for raw files that are damaged, not finite or disagree; InputError where context or
    targets are not all points.
    """
    meta = read_meta(raw / "meta.json")
    number, points = sum(meta["split"].values()), meta["points"]
    if (counts.context, counts.targets) != (points, points):
        raise InputError(
            "a copied set has all its points as context and as targets",
            where=str(raw),
            remedy="make all three equal",
            expected=f"{points} and {points}",
            found=f"{counts.context} context points, {counts.targets} targets",
        )
    part = stream(seed, "sines", "split").permutation(
        np.repeat(np.arange(3), [meta["split"][name] for name in SPLITS])
    )
    kept = np.sort(stream(seed, "sines", "sets").permutation(number)[: counts.sets])
    x = load(raw / "points.npy", (number, points, 2))[kept].astype(np.float64)
    y = load(raw / "values.npy", (number, points))[kept, :, None].astype(np.float64)
    order = stream(seed, "sines", "order").permuted(
        np.tile(np.arange(points), (len(kept), 1)), axis=1
    )[..., None]
    return Sets(
        context_x=x,
        context_y=y,
        target_x=np.take_along_axis(x, order, 1),
        target_y=np.take_along_axis(y, order, 1),
        split=part[kept],
        source=np.zeros(len(kept), np.int32),
        record=kept,
        group=kept,
        files=("points.npy", "values.npy"),
        units={"x": ("1", "1"), "i": ("1",), "o": ("1",)},
        names={"x": ("x", "y"), "i": ("value",), "o": ("value",)},
        loss="mse",
        standardise=False,
        facts={"points": points, "lawful": meta.get("frequency") is not None},
    )
