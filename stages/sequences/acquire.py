"""Sequences acquired: made by us (data/), or fetched (stages/acquisition)."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from stages import runner
from stages.acquisition import acquire
from stages.params import Dataset
from stages.sequences.data import grammar, laws, maze, walk
from stages.sequences.data.climb import make as climb

MAKERS: dict[str, Callable[..., Any]] = {
    "climb": climb.make,
    "grammar": grammar.make,
    "maze": maze.make,
    "permutation": laws.make,
    "product": laws.make,
    "step": laws.make,
    "walk": walk.make,
}


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    return acquire.work(asked, asked.profile.sequences, "stages.sequences.acquire", own)


def own(dataset: Dataset) -> acquire.Own | None:
    """How sequences of ours are made (they are small); None for what is fetched."""
    if dataset.kind != "sequences":
        return None
    return acquire.Own(partial(MAKERS[dataset.plan.kind], dataset.plan), 0)


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Acquire a data set of sequences: make it, or fetch its pinned files."
    return runner.command("stages.sequences.acquire", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
