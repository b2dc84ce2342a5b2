"""Which rows of a set train, select and test, so that none is known from training.

Rows in a group (a sentence pair whatever its fillers; texts that share a question or a sentence)
stand in one split alone, and intervals are over groups. Rows of pinned splits stand where they were
published; what also trains is left out of the others. Pictures are drawn for statements that
trained with no picture, where there are enough.
Shapes: S rows, N tokens, L of them statements.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stages import seeds
from stages.splits import SPLITS
from stages.tokens.settings import FAMILY, Split
from stages.tokens.tasks import pictures

UNUSED = 3  # beside the splits 0, 1, 2


def parts_of(count: int, split: Split, apart: int | None = None) -> np.ndarray:
    """Each row's split (S,); UNUSED where it would train, but another of `every` does, or where it
    is beyond `train` of the first `apart` rows, which alone train."""
    first = split.train if apart is None else apart
    found = np.full(count, 2, dtype=np.int8)
    found[:first], found[first : first + split.val] = UNUSED, 1
    found[: min(split.train, first) : split.every] = 0
    return found


def dealt(group: np.ndarray, stratum: np.ndarray, split: Split) -> np.ndarray:
    """Each row's split (S,), whole groups alone, in an order that is drawn: of each stratum groups
    train until its share of `train` rows is reached, then select, then test. UNUSED as above."""
    rng, found = seeds.stream(0, FAMILY, "splits"), np.empty(len(group), dtype=np.int8)
    for one in np.unique(stratum):
        rows = np.flatnonzero(stratum == one)
        _, which, sizes = np.unique(group[rows], return_inverse=True, return_counts=True)
        order = rng.permutation(len(sizes))
        before = np.empty(len(sizes))
        before[order] = np.cumsum(sizes[order]) - sizes[order]
        ends = np.array([split.train, split.train + split.val]) * len(rows) / len(group)
        found[rows] = np.searchsorted(ends, before, side="right")[which]
    train = np.flatnonzero(found == 0)
    found[np.setdiff1d(train, train[:: split.every])] = UNUSED
    return found


def linked(rows: Sequence[tuple[str, ...]]) -> np.ndarray:
    """Each row's group (S,): rows with the same text in one column are of one, and so are those
    that a chain of such rows joins."""
    above: dict[tuple[int, str], tuple[int, str]] = {}

    def top(node: tuple[int, str]) -> tuple[int, str]:
        while (higher := above.setdefault(node, node)) != node:
            node = higher
        return node

    for row in rows:
        for node in enumerate(row):
            above[top(node)] = top((0, row[0]))
    numbers: dict[tuple[int, str], int] = {}
    return np.array([numbers.setdefault(top((0, row[0])), len(numbers)) for row in rows])


def unseen(rows: Sequence[Any], parts: np.ndarray) -> list[int]:
    """The places of the rows that train, or would, and of those whose content does not."""
    trains = {one for one, part in zip(rows, parts, strict=True) if part in (0, UNUSED)}
    return [
        place
        for place, one in enumerate(rows)
        if parts[place] in (0, UNUSED) or one not in trains
    ]  # fmt: skip


def in_order(parts: np.ndarray) -> list[int]:
    """The places of all rows: those that train, as they come, then those that select, then test."""
    return np.argsort(parts, kind="stable").tolist()


def counted(group: np.ndarray, parts: np.ndarray) -> dict[str, int]:
    """How many groups each split has."""
    return {name: len(np.unique(group[parts == part])) for part, name in enumerate(SPLITS)}


def trained_prompts(sequences: np.ndarray, split: np.ndarray, said: int) -> np.ndarray:
    """Of the rows that test, whether the statements (of the first L tokens of (S, N)) also train,
    in whatever order."""
    known = {*map(pictures.prompt, sequences[split == 0, :said])}
    tests = map(pictures.prompt, sequences[split == 2, :said])
    return np.array([one in known for one in tests], dtype=bool)


def asked(
    sequences: np.ndarray, split: np.ndarray, said: int, count: int
) -> tuple[np.ndarray, int]:
    """Of pictures (S, N) the `count` first rows that test whose statements do not train, and 0;
    where they are fewer, the first that test, and of how many of them they do."""
    tests, trained = np.flatnonzero(split == 2), trained_prompts(sequences, split, said)
    if (~trained).sum() >= count:
        return tests[~trained][:count], 0
    return tests[:count], int(trained[:count].sum())
