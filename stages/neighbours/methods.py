"""The searches for causal nearest neighbours by name, so that swapping them is one word in params.

All of them give the same answers, bit for bit (contract.py); they differ in where they run, what
they are built of and how fast they are.
"""

import inspect
from difflib import get_close_matches
from typing import Any

from torch import Tensor

from stages.errors import InputError
from stages.neighbours.boxes import Boxes
from stages.neighbours.compiled import Compiled
from stages.neighbours.contract import Index
from stages.neighbours.forest import Forest
from stages.neighbours.kdtree import KDTree
from stages.neighbours.linear import Linear
from stages.neighbours.trajectory import Trajectory

METHODS: dict[str, type[Index]] = {
    "linear": Linear,
    "kdtree": KDTree,
    "forest": Forest,
    "trajectory": Trajectory,
    "boxes": Boxes,
    "compiled": Compiled,
}


def build(name: str, points: Tensor, trajectory: Tensor | None = None, **options: Any) -> Index:
    """The index called `name` over points (N, 4) of trajectories (N,), with that method's own
    options; InputError for unknown words."""
    method = METHODS[_known(name, list(METHODS), "search for neighbours")]
    words = list(inspect.signature(method).parameters)[2:]
    for option in options:
        _known(option, words, f"option of `{name}`")
    return method(points, trajectory, **options)


def _known(word: str, words: list[str], what: str) -> str:
    if word not in words:
        close = get_close_matches(str(word), words, 1, 0)
        raise InputError(
            f"no {what} is called so",
            found=repr(word),
            expected=", ".join(words) or "none",
            remedy=f"did you mean {close[0]!r}?" if close else "",
        )
    return word
