"""Winds acquired: a simulated sky, a Gaussian wind, or published files (stages/acquisition)."""

import sys
from collections.abc import Sequence
from functools import partial

from stages import runner
from stages.acquisition import acquire
from stages.errors import InputError
from stages.params import Dataset
from stages.winds.sky import gaussian_wind, simulated

FRAME_BYTES = 48  # a line of a simulated frame, its share of the truth included
FRAMES_PER_UPDATE = 8
WIND_BYTES = 80  # a line of a drawn wind


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set without winds, or one of captures."""
    dataset = asked.parameters.datasets.get(asked["dataset"])
    if dataset is not None and dataset.kind == "captures":
        raise InputError(
            "captures are not acquired: they are taken in as they arrive",
            where=f"{asked['profile']}/{asked['dataset']}",
            remedy="drop them into the folder `retraining.drop` of params.yaml and run `python -m "
            "stages.winds.retraining intake`",
        )
    return acquire.work(asked, asked.profile.datasets, "stages.winds.acquire", own)


def own(dataset: Dataset) -> acquire.Own | None:
    """How a data set of ours is made; None for what is fetched."""
    if dataset.kind == "simulate":
        sky = dataset.simulate
        frames = sky.hours * 3600 / sky.update_s * sky.aircraft * FRAMES_PER_UPDATE
        return acquire.Own(partial(simulated.simulate, sky), frames * FRAME_BYTES)
    if dataset.kind == "gaussian":
        wind = dataset.gaussian
        return acquire.Own(partial(gaussian_wind.make, wind), wind.reports * WIND_BYTES)
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Acquire a data set of winds: simulate it, or fetch its pinned files."
    return runner.command("stages.winds.acquire", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
