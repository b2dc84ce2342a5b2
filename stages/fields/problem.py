"""Sets of points with values: what every problem of the thesis' chapter 3 beside wind becomes
(section 3.4, C.1).

A problem's reader (problems/) makes `Sets` from raw bytes; here they are checked,
their values standardised with the training sets' mean and standard deviation where the problem asks
for it (positions stay as they are), and written: `sets.safetensors` (float32, and where each set
comes from) and `sets.json` (units, names, scaler, counts). Every set stands in one split, and what
belongs together in no two.
Shapes: S sets, C context points, T targets, X positions, I context values, O target values.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from stages import files
from stages.errors import DataError
from stages.splits import SPLITS

LEAST_SD = 1e-12


@dataclass(frozen=True)
class Counts:
    """How many points a set has, how many sets are drawn at most (all there are when None), and
    what share (percent) of the context comes from the targets' region (None: both lie anywhere)."""

    context: int
    targets: int
    sets: int | None = None
    overlap: int | None = None


@dataclass(frozen=True)
class Sets:
    """All sets of one data set, in the units of the problem."""

    context_x: np.ndarray  # S C X
    context_y: np.ndarray  # S C I
    target_x: np.ndarray  # S T X
    target_y: np.ndarray  # S T O
    split: np.ndarray  # S, 0 train, 1 val, 2 test
    source: np.ndarray  # S, which of `files`
    record: np.ndarray  # S, which record of that file
    files: tuple[str, ...]
    units: dict[str, tuple[str, ...]]  # of x, i, o
    names: dict[str, tuple[str, ...]]
    loss: str  # "mse" in standardised units, or "rmse" in the problem's
    standardise: bool
    facts: dict[str, Any] = field(
        default_factory=dict
    )  # what else the reader counted: numbers and words
    group: np.ndarray | None = (
        # S, what belongs together (a trajectory, a layout): never in two splits; None: the source
        # file
        None
    )


def check(sets: Sets, where: str) -> None:
    """DataError for what cannot be learned from or would leak: shapes, numbers that are not
    finite, empty splits, a group in two splits."""

    refuse = partial(_refuse, where)
    _check_points(sets, refuse)
    _check_splits(sets, refuse)
    if sets.loss not in ("mse", "rmse"):
        refuse("unknown loss", "mse, rmse", sets.loss)


def _refuse(
    where: str,
    what: str,
    expected: Any,
    found: Any,
    remedy: str = "look at the raw files, or at this problem's reader",
) -> None:
    raise DataError(what, where=where, expected=str(expected), found=str(found), remedy=remedy)


def _check_points(sets: Sets, refuse: Callable[..., None]) -> None:
    """Positions and values: shapes that fit, finite numbers, a name and a unit of each axis."""
    count = len(sets.split)
    arrays = {
        name: getattr(sets, name) for name in ("context_x", "context_y", "target_x", "target_y")
    }
    for name, array in arrays.items():
        if array.ndim != 3 or len(array) != count or 0 in array.shape[1:]:
            refuse(f"{name} is no table of sets", f"({count}, points, dimensions)", array.shape)
        if not np.isfinite(array).all():
            at = np.argwhere(~np.isfinite(array))[0].tolist()
            refuse(
                f"{name} holds numbers that are not finite",
                "finite numbers",
                f"{array[tuple(at)]} at set, point, dimension {at}",
            )
    for x, y in (("context_x", "context_y"), ("target_x", "target_y")):
        if arrays[x].shape[1] != arrays[y].shape[1]:
            refuse(
                f"{x} and {y} disagree",
                f"{arrays[x].shape[1]} points",
                f"{arrays[y].shape[1]} points",
            )
    if arrays["context_x"].shape[2] != arrays["target_x"].shape[2]:
        refuse(
            "context and targets lie in different spaces",
            f"{arrays['context_x'].shape[2]} axes",
            f"{arrays['target_x'].shape[2]} axes",
        )
    for key, width in (
        ("x", arrays["context_x"].shape[2]),
        ("i", arrays["context_y"].shape[2]),
        ("o", arrays["target_y"].shape[2]),
    ):
        if len(sets.units[key]) != width or len(sets.names[key]) != width:
            refuse(f"names or units of {key}", width, f"{sets.names[key]} in {sets.units[key]}")


def _check_splits(sets: Sets, refuse: Callable[..., None]) -> None:
    """No split is empty, and what belongs together stands in one."""
    count = len(sets.split)
    numbers = [int((sets.split == k).sum()) for k in range(len(SPLITS))]
    if min(numbers) == 0 or sum(numbers) != count:
        refuse(
            "a split is empty",
            "sets in " + ", ".join(SPLITS),
            dict(zip(SPLITS, numbers, strict=True)),
            "give the problem more data",
        )
    group = sets.source if sets.group is None else sets.group
    placed: dict[int, int] = {}
    for one, part in zip(group.tolist(), sets.split.tolist(), strict=True):
        if placed.setdefault(one, part) != part:
            refuse(
                "what belongs together stands in two splits",
                "one split",
                f"group {one} in {SPLITS[placed[one]]} and {SPLITS[part]}",
            )


def scaler(sets: Sets) -> dict[str, list[float]]:
    """Mean and standard deviation of the training sets' values by component; 0 and 1 where the
    problem is not standardised or one does not vary."""
    train, axes = sets.split == 0, sets.context_x.shape[2]
    found = {"x_mean": [0.0] * axes, "x_std": [1.0] * axes}
    for key, values in {"i": sets.context_y[train], "o": sets.target_y[train]}.items():
        flat = values.reshape(-1, values.shape[-1]).astype(np.float64)
        mean, std = flat.mean(0), flat.std(0)
        usable = (std > LEAST_SD) & sets.standardise
        found[f"{key}_mean"] = np.where(usable, mean, 0.0).tolist()
        found[f"{key}_std"] = np.where(usable, std, 1.0).tolist()
    return found


def arrays(sets: Sets, scales: dict[str, list[float]]) -> dict[str, np.ndarray]:
    """What is written: standardised float32, and each set's split, file, record and group."""

    def scaled(values, key):
        return ((values - np.array(scales[f"{key}_mean"])) / np.array(scales[f"{key}_std"])).astype(
            np.float32
        )

    group = sets.source if sets.group is None else sets.group
    return {
        "context_x": sets.context_x.astype(np.float32),
        "context_y": scaled(sets.context_y, "i"),
        "target_x": sets.target_x.astype(np.float32),
        "target_y": scaled(sets.target_y, "o"),
        "split": sets.split.astype(np.int8),
        "source": sets.source.astype(np.int32),
        "record": sets.record.astype(np.int64),
        "group": group.astype(np.int64),
    }


def write(sets: Sets, folder: Path, settings: dict[str, Any]) -> None:
    """sets.safetensors and sets.json of checked sets; equal sets give equal bytes."""
    scales = scaler(sets)
    (folder / "sets.safetensors").write_bytes(save(dict(sorted(arrays(sets, scales).items()))))
    counts = {name: int((sets.split == k).sum()) for k, name in enumerate(SPLITS)}
    files.write_json(
        folder / "sets.json",
        {
            "files": list(sets.files),
            "names": {k: list(v) for k, v in sets.names.items()},
            "units": {k: list(v) for k, v in sets.units.items()},
            "loss": sets.loss,
            "standardised": sets.standardise,
            "scaler": scales,
            "counts": counts,
            "context": sets.context_x.shape[1],
            "targets": sets.target_x.shape[1],
            "facts": sets.facts,
            "settings": settings,
        },
    )
