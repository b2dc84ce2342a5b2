"""Numbers of arms that answered the same test items, compared item by item.

Two answers to one item share what makes it hard, so their difference moves less from item to item
than either does: its interval is that of the mean difference, over groups of items that go together
(tasks of one day; Student's, with groups - 1 degrees of freedom). The spread of training is added
as levels.py has it. Where items were not kept, or are not the same, the arms are compared as
independent ones. Shapes: S items, G groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from stages.claims.levels import Side, judged, lacking, level
from stages.claims.parts import Evaluation, Part
from stages.files import read_json
from stages.spreads import NOWHERE, Spreads

METRICS = "metrics.json"


class Kept(Protocol):
    """What an evaluation keeps of single items (stages/scores/items.py)."""

    @property
    def group(self) -> np.ndarray:
        """Which items go together (S,)."""

    @property
    def cells(self) -> Mapping[str, Mapping[str, np.ndarray]]:
        """Of each cell its scores (S,) by name."""


class PairedEvaluation(Evaluation):
    """An evaluation with what its answers score on each item, where that was kept."""

    def __init__(
        self,
        dataset: str,
        cells: dict[str, dict[Any, Any]],
        spreads: Spreads = NOWHERE,
        kept: Kept | None = None,
    ):
        super().__init__(dataset, cells, spreads)
        self.items = kept


def evaluations(home: Path, kept: Callable[[Path], Kept | None]) -> dict[str, PairedEvaluation]:
    """Every evaluation under a profile's folder of an experiment, by data set; `kept`: what an
    evaluated folder keeps of single items."""
    spreads = Spreads.read(home)
    return {
        file.parent.name: PairedEvaluation(
            file.parent.name, read_json(file)["cells"], spreads, kept(file.parent)
        )
        for file in sorted((home / "evaluated").glob(f"[!.]*/{METRICS}"))
    }


def scores(measured: PairedEvaluation, side: Side) -> np.ndarray | None:
    """What an arm scores on each item (S,), in the mean over its seeds; None where one of its cells
    keeps no such score."""
    kept, cells = measured.items, measured.arm(side.arm)
    if kept is None or not cells:
        return None
    found = [kept.cells.get(cell, {}).get(side.path[-1]) for cell in cells]
    whole = [one for one in found if one is not None and one.shape == kept.group.shape]
    return np.mean(whole, 0) if len(whole) == len(found) else None


def influence(values: np.ndarray) -> np.ndarray:
    """How far each item (S,) moves the mean of those that have a value: what it lies off, over
    their number; 0 of those without."""
    known = np.isfinite(values)
    off: np.ndarray = np.where(known, values - values[known].mean(), 0.0)
    return off / max(int(known.sum()), 1)


def scatter(moved: np.ndarray, group: np.ndarray) -> tuple[float, int]:
    """The variance of a sum of influences (S,) over groups, and how many groups there are."""
    _, which = np.unique(group, return_inverse=True)
    sums = np.bincount(which, moved)
    count = len(sums)
    return float(np.square(sums).sum() * count / max(count - 1, 1)), count


def combined(
    measured: PairedEvaluation,
    name: str,
    words: str,
    sides: Mapping[Side, float],
    bar: float,
    above: bool,
) -> Part:
    """A part about a sum of numbers, each times its sign: `above`, it should exceed the bar."""
    found = [level(measured, side, False) for side in sides]
    levels = [one for one in found if one is not None]
    if len(levels) < len(found):
        return lacking(measured, name, list(sides))
    signs = list(sides.values())
    value = sum(sign * one.value for sign, one in zip(signs, levels, strict=True))
    told = [scores(measured, side) for side in sides]
    rows = [one for one in told if one is not None]
    if measured.items is not None and len(rows) == len(levels):
        moved = sum(sign * influence(one) for sign, one in zip(signs, rows, strict=True))
        within, groups = scatter(np.asarray(moved), measured.items.group)
        if groups > 1:
            levels = [replace(one, within=0.0) for one in levels]
            within = max(within, measured.narrowest)
            levels[0] = replace(levels[0], within=within, groups=groups)
            words += f", item by item over {groups:,} groups"
    return judged(name, words, value, bar, above, levels, logarithm=False)


def difference(
    measured: PairedEvaluation, name: str, left: Side, right: Side, bar: float, above: bool
) -> Part:
    """A part about `left` - `right`."""
    words = f"difference of {left.path[-1]}"
    return combined(measured, name, words, {left: 1.0, right: -1.0}, bar, above)
