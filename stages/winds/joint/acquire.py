"""Tasks of the joint nowcast that are kept, drawn into data/P/raw/D: of "val" and "test" SPLIT.npz
each (reports, cells, targets, the exact law of every target by what is read), float64, and
meta.json. Training draws its own, from other streams. A reanalysis comes as it is pinned: its tasks
are drawn by preparation."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stages import arrays, files, runner
from stages.acquisition import acquire
from stages.winds.joint.layout import SPLITS
from stages.winds.joint.settings import Made, Real, joint_of, made_of
from stages.winds.joint.tasks import kept

MODULE = "stages.winds.joint.acquire"
META = "meta.json"


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    known = joint_of(asked.parameters, asked["profile"]).datasets
    told = made_of(asked.parameters, runner.known("joint nowcast", asked["dataset"], known))
    if isinstance(told, Real):
        return acquire.work(asked, known, MODULE, lambda _: None)
    a_task = 64 * told.aircraft * told.traffic.reports + 16 * len(told.law.cell_places)
    size = (told.val + told.test) * (a_task + 160.0 * told.targets)
    own = acquire.Own(partial(make, told), size)
    return acquire.work(asked, known, MODULE, lambda _: own)


def make(told: Made, folder: Path) -> None:
    """Draw the tasks and fill the folder. DataError where a covariance has no factor."""
    for split in SPLITS:
        count = getattr(told, split)
        tasks = told.sky.drawn(count, told.targets, kept(told.seed, split), exact=True)
        arrays.save(folder / f"{split}.npz", tasks.arrays())
    files.write_json(folder / META, told.model_dump(mode="json"))


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Draw the tasks that are kept: winds of aircraft, and a late grid of the same sky."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
