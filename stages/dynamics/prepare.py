"""A simulated system prepared: observations standardised by their training part, the splits, where
forecasts start, and its largest Lyapunov exponent with its interval.

Writes series.npy (E, T, O), float64, standardised; starts.npy (B, 2), the member and the time of
each start's last given observation; states.npy (B, D), the whole state there, in the system's
units; and about.json. The sites of a system are alike, so one mean and one standard deviation
stand for all.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from stages import arrays, files, records, runner
from stages.dynamics.layout import ABOUT, GROWTH, META, OBSERVED, SERIES, STARTS, STATES
from stages.dynamics.settings import FAMILY, Forecasts, Simulated, Split, dynamics_of, simulated_of
from stages.dynamics.systems.simulate import exponent
from stages.errors import InputError

MODULE = "stages.dynamics.prepare"


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family, and for
    splits that do not fit the observations."""
    profile, dataset = asked["profile"], asked["dataset"]
    told = dynamics_of(asked.parameters, profile)
    where = f"profiles.{profile}.families.{FAMILY}"
    runner.known("simulated system", dataset, told.datasets, where)
    split, forecasts = told.splits[dataset], told.forecasts[dataset]
    simulated = simulated_of(asked.parameters, dataset)
    starts = starting(simulated, split, forecasts, f"{where}.forecasts.{dataset}")
    raw, final = asked.data("raw"), asked.data("prepared")

    def do() -> dict[str, Path]:
        with files.atomic_folder(final) as folder:
            write(raw, folder, simulated, split, starts)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{profile}/{dataset}",
        record=records.location("prepare", profile, dataset),
        do=do,
        inputs=[raw],
        code=[MODULE],
        params={"split": split.model_dump(), "forecasts": forecasts.model_dump()},
    )


def parts(samples: int, split: Split) -> dict[str, tuple[int, int]]:
    """Each split's first time and the one after its last."""
    val = split.train + split.gap
    test = val + split.val + split.gap
    return {"train": (0, split.train), "val": (val, val + split.val), "test": (test, samples)}


def starting(told: Simulated, split: Split, forecasts: Forecasts, where: str) -> np.ndarray:
    """The times (starts,) of a member's starts: even in its test part, where whole states are
    kept. InputError where context, starts and horizon do not fit into it."""
    first, end = parts(told.samples, split)["test"]
    low = -(-(first + forecasts.context - 1) // told.keep)
    high = (end - 1 - forecasts.horizon) // told.keep
    if high - low + 1 < forecasts.starts:
        room = f"{max(0, end - first)} observations, {max(0, high - low + 1)} kept states"
        raise InputError(
            "the test part does not hold the forecasts",
            where=where,
            expected=f"{forecasts.starts} starts, each with {forecasts.context} observations given "
            f"and {forecasts.horizon} ahead",
            found=f"{room} where one may start",
            remedy="take fewer or shorter forecasts, or more samples (made.samples, made.keep)",
        )
    places: np.ndarray = np.linspace(low, high, forecasts.starts).round().astype(np.int64)
    return places * told.keep


def write(raw: Path, folder: Path, told: Simulated, split: Split, starts: np.ndarray) -> None:
    """Fill the prepared folder. DataError for raw arrays that are not what they should be."""
    system = told.made()
    seen = arrays.load(raw / OBSERVED, (told.members, told.samples, system.observed), "float64")
    kept = -(-told.samples // told.keep)
    states = arrays.load(raw / STATES, (told.members, kept, system.size), "float64")
    grown = arrays.load(raw / GROWTH, (told.members, told.spans), "float64")
    files.read_json(raw / META)
    train = seen[:, : split.train]
    mean, scale = float(train.mean()), float(train.std())
    series = (seen - mean) / scale
    members = np.repeat(np.arange(told.members), len(starts))
    times = np.tile(starts, told.members)
    for name, array in (
        (SERIES, series),
        (STARTS, np.stack((members, times), 1)),
        (STATES, states[members, times // told.keep]),
    ):
        with files.atomic_file(folder / name) as stream:
            np.save(stream, array)
    files.write_json(folder / ABOUT, about(told, split, series, grown, mean, scale))


def about(
    told: Simulated, split: Split, series: np.ndarray, grown: np.ndarray, mean: float, scale: float
) -> dict[str, Any]:
    """What is known of the set; exponents in inverse time units, with the 90 % interval."""
    largest, error = exponent(grown, told.turn * told.dt)
    half = float(stdtrit(len(grown) - 1, 0.95)) * error
    moved = np.diff(series[:, : split.train], axis=1)
    return {
        "system": told.model_dump(mode="json"),
        "mean": mean,
        "sd": scale,
        "change": float(moved.std()),
        "step": told.step,
        "parts": parts(told.samples, split),
        "exponent": {
            "value": largest,
            "low": largest - half,
            "high": largest + half,
            "unit": "1/time",
            "n": len(grown),
        },
        "printed_exponent": told.printed_exponent,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare a simulated system: standardised observations, splits, starts."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
