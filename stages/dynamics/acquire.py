"""A system simulated into data/P/raw/D: observed.npy (E, T, O), states.npy (E, T / keep, D), whole
states at every keep-th time, growth.npy (E, spans), logarithms of a direction's growth, and
meta.json. float64, in the system's own units; seeded."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from stages import files, runner, seeds
from stages.acquisition import acquire
from stages.dynamics.layout import GROWTH, META, OBSERVED, STATES
from stages.dynamics.settings import FAMILY, Simulated, dynamics_of, simulated_of
from stages.dynamics.systems import simulate
from stages.errors import DataError

MODULE = "stages.dynamics.acquire"


def plan(asked: runner.Asked) -> runner.Work:
    """Acquire data/P/raw/D. InputError for a data set of another family."""
    known = dynamics_of(asked.parameters, asked["profile"]).datasets
    dataset = runner.known("simulated system", asked["dataset"], known)
    told = simulated_of(asked.parameters, dataset)
    kept = -(-told.samples // told.keep) * told.made().size
    numbers = told.members * (told.samples * told.made().observed + kept + told.spans)
    own = acquire.Own(partial(make, told), 8.0 * numbers)
    return acquire.work(asked, known, MODULE, lambda _: own)


def make(told: Simulated, folder: Path) -> None:
    """Run the system and fill the folder. DataError where the solver leaves the finite numbers."""
    system, run = told.made(), told.run()
    seen, kept = simulate.observe(system, run, seeds.stream(told.seed, FAMILY, told.system))
    grown = simulate.growth(
        system,
        kept[:, 0],
        told.dt,
        told.spans,
        told.turn,
        seeds.stream(told.seed, FAMILY, told.system, "direction"),
    )
    for name, array in ((OBSERVED, seen), (STATES, kept), (GROWTH, grown)):
        if not np.isfinite(array).all():
            raise DataError(
                "the solver left the finite numbers",
                where=f"{told.system}, dt {told.dt:g}",
                found=name,
                remedy="shorten made.dt of the data set",
            )
        with files.atomic_file(folder / name) as stream:
            np.save(stream, array)
    files.write_json(folder / META, told.model_dump(mode="json") | {"observed": system.observed})


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Simulate a dynamical system."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
