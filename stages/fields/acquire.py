"""Problems acquired: made by us (problems/), or fetched (stages/acquisition)."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from stages import runner
from stages.acquisition import acquire
from stages.fields.problems import sines
from stages.fields.problems.darcy import make as darcy
from stages.fields.problems.navier_stokes import make as navier_stokes
from stages.fields.problems.poisson import make as poisson
from stages.fields.problems.weather import make as weather
from stages.params import Dataset

MAKERS: dict[str, Callable[..., Any]] = {
    "darcy": darcy.make,
    "navier_stokes": navier_stokes.make,
    "poisson": poisson.make,
    "sines": sines.make,
    "weather": weather.make,
}


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    return acquire.work(asked, asked.profile.problems, "stages.fields.acquire", own)


def own(dataset: Dataset) -> acquire.Own | None:
    """How a problem of ours is made; None for what is fetched."""
    if dataset.kind not in MAKERS:
        return None
    size = dataset.weather.bytes if dataset.kind == "weather" else 0  # the others are small
    return acquire.Own(partial(MAKERS[dataset.kind], dataset.plan), size)


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Acquire a problem: make it, or fetch its pinned files."
    return runner.command("stages.fields.acquire", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
