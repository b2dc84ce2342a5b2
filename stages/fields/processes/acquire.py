"""Tasks that are kept, drawn into data/P/raw/D: of "val" and "test" SPLIT.npz each (contexts,
targets, the exact law of every target, what each function's parameters are), float64, and
meta.json. Training draws its own, from other streams."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stages import arrays, files, runner
from stages.acquisition import acquire
from stages.fields.problems.functions.plans import Kept
from stages.fields.processes.settings import Functions, functions_of, processes_of

MODULE = "stages.fields.processes.acquire"
SPLITS = ("val", "test")
META = "meta.json"


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    known = processes_of(asked.parameters, asked["profile"]).datasets
    dataset = runner.known("set of functions", asked["dataset"], known)
    told = functions_of(asked.parameters, dataset)
    points = (told.context + told.targets) * (told.axes + 2) + 2 * told.targets
    own = acquire.Own(partial(make, told), 8.0 * (told.val + told.test) * points)
    return acquire.work(asked, known, MODULE, lambda _: own)


def make(told: Functions, folder: Path) -> None:
    """Draw the tasks and fill the folder. DataError where a covariance has no factor."""
    for split in SPLITS:
        tasks = told.made().drawn(getattr(told, split), Kept(told.seed, split))
        arrays.save(folder / f"{split}.npz", tasks.arrays())
    files.write_json(folder / META, told.model_dump(mode="json"))


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Draw the tasks that are kept: functions, some of whose values are known."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
