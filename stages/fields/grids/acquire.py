"""Tasks that are kept, drawn into data/P/raw/D: of "val" and "test" SPLIT.npz each (points, cells,
targets, the exact law of every target by what is read), float64, and meta.json. Training draws its
own, from other streams. Real fields come as they are pinned."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stages import arrays, files, runner
from stages.acquisition import acquire
from stages.fields.grids.settings import Coupled, coupled_of, grids_of
from stages.fields.problems.functions.plans import Kept

MODULE = "stages.fields.grids.acquire"
SPLITS = ("val", "test")
META = "meta.json"


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    known = grids_of(asked.parameters, asked["profile"]).datasets
    dataset = runner.known("set of tasks on a grid", asked["dataset"], known)
    told = coupled_of(asked.parameters, dataset)
    if not isinstance(told, Coupled):
        return acquire.work(asked, known, MODULE, lambda _: None)
    points = (told.context + told.targets) * (told.axes + 2) + 6 * told.targets
    cells = told.cells**told.axes * told.axes
    own = acquire.Own(partial(make, told), 8.0 * (told.val + told.test) * (points + cells))
    return acquire.work(asked, known, MODULE, lambda _: own)


def make(told: Coupled, folder: Path) -> None:
    """Draw the tasks and fill the folder. DataError where a covariance has no factor."""
    for split in SPLITS:
        tasks = told.made().drawn(getattr(told, split), Kept(told.seed, split))
        arrays.save(folder / f"{split}.npz", tasks.arrays())
    files.write_json(folder / META, told.model_dump(mode="json"))


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Draw the tasks that are kept: points and a grid that know of each other."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
