"""What each answer of an evaluation scores on each test item, kept beside metrics.json.

items.npz: `group` (S,), which items go together (tasks of one day), and of each cell CELL.SCORE
(S,), float64, in the unit of its metric; NaN where a score is not asked of an item. Claims compare
answers item by item from it (stages/claims/paired.py). Shapes: S items.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages import arrays
from stages.errors import DataError

FILE = "items.npz"
GROUP = "group"
Scores = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Items:
    """The group of each item (S,), and of each cell its scores (S,) by name."""

    group: np.ndarray
    cells: Mapping[str, Scores]


def write(folder: Path, items: Items) -> None:
    """Write items.npz."""
    found = {GROUP: np.asarray(items.group, np.int64)}
    for cell, scores in items.cells.items():
        found |= {f"{cell}.{name}": np.asarray(one, np.float64) for name, one in scores.items()}
    arrays.save(folder / FILE, found)


def read(folder: Path) -> Items | None:
    """What an evaluated folder keeps; None where it keeps no items. DataError where the file is
    none, or a score is not of every item."""
    path = folder / FILE
    if not path.is_file():
        return None
    cells: dict[str, dict[str, np.ndarray]] = {}
    try:
        with np.load(path, allow_pickle=False) as found:
            group = found[GROUP]
            for key in found.files:
                if key != GROUP:
                    cell, _, name = key.rpartition(".")
                    cells.setdefault(cell, {})[name] = found[key]
    except (*arrays.BROKEN, KeyError) as error:
        raise DataError(
            "the scores of single items cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`, which evaluates again",
        ) from None
    for cell, scores in cells.items():
        for name, one in scores.items():
            if one.shape != group.shape:
                raise DataError(
                    "a score is not of every item",
                    where=f"{path}, {cell}.{name}",
                    expected=str(group.shape),
                    found=str(one.shape),
                    remedy="run `dvc repro`, which evaluates again",
                )
    return Items(group, cells)
