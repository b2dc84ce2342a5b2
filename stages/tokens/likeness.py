"""How alike the pseudo-attention of a net is to attention's (claim H-6; thesis figure B.1).

Two maps of one sequence are compared by the rank correlation (Spearman 1904) of what answers owe to
inputs, over all pairs of places that convolutions alone do not join: whatever the scale, what moves
one net's answer more should move the other's more. 1: in the same order, 0: in unrelated ones. A
map without any difference is like no other: 0. Shapes: S sequences, N places.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from stages.scores import shell

Array = np.ndarray
REFERENCE = "self_attention-post_norm"  # the arm that others are compared with


def references(run: Path) -> list[Path]:
    """The trained cells of REFERENCE beside a cell's folder, but for itself."""
    cells = shell.cells_of(run.parent)
    return [cell for cell in cells if cell.name.startswith(f"{REFERENCE}-") and cell != run]


def likeness(maps: Array, others: Sequence[Array], reach: int) -> Array:
    """Per sequence (S,) the correlation of a net's map (S, N, N) with each of the `others`', in
    their mean, over places more than `reach` apart."""
    places = np.arange(maps.shape[1])
    apart = np.abs(places[:, None] - places) > reach
    mine = _ranked(maps[:, apart])
    found = [(mine * _ranked(other[:, apart])).sum(1) for other in others]
    return np.asarray(np.mean(found, 0))


def _ranked(values: Array) -> Array:
    """Ranks (S, P), centred and of length 1; 0 where all values are one."""
    ranks = rankdata(values, axis=1)
    ranks -= ranks.mean(1, keepdims=True)
    length = np.sqrt((ranks * ranks).sum(1, keepdims=True))
    return np.divide(ranks, length, out=np.zeros_like(ranks), where=length > 0)
