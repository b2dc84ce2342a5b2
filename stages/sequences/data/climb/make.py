"""Simulated climbs and descents to cleared levels (thesis 4.3.1, the vertical-rate task), in the
columns of the documents' own file.

A type has a rate at the ground that falls linearly to nothing at its ceiling when it climbs, and a
steadier one when it descends; an aircraft differs from its type by some per cent, for good. A
flight is cleared to one to four levels, one after another: the next comes when the last has been
held for a while, or, one time in four, before it is reached. The crew reacts after some seconds,
the rate follows with a lag of 8 s and eases off below the level. The rates are of the size of real
ones, made by us, not taken from any performance table.
File: flights.csv, a row every 4 s: FLIGHT_ID, AIRCRAFT_TYPE, CFL and TRACK_ALTITUDE (flight levels
of 100 ft, the latter in quarters = the 25 ft of a transponder), and AIRCRAFT (24 bits in hex),
which the documents' file lacks. Shapes: N flights, S rows each. Units: ft, ft/min, s.
"""

from pathlib import Path

import numpy as np
import polars as pl

from stages.files import atomic_file
from stages.params.sequences import Climb
from stages.seeds import stream

STEP_S = 4.0
TICK_FT, LEVEL_FT = 25.0, 100.0
# Designator: rate of climb at the ground, ceiling, rate of descent
TYPES = {
    "A320": (2900.0, 41_000.0, 2000.0),
    "A333": (2200.0, 42_500.0, 1800.0),
    "AT76": (1500.0, 26_000.0, 1300.0),
    "B738": (3100.0, 42_000.0, 2100.0),
    "B77W": (2500.0, 44_000.0, 1900.0),
    "C56X": (3700.0, 46_000.0, 2600.0),
    "CRJ9": (2600.0, 41_500.0, 2200.0),
    "E190": (2700.0, 41_800.0, 2000.0),
}
CLEARANCES = 4
HIGHEST = 0.9  # of its ceiling, that a type is cleared to
LAG_S, EASE_S = (
    8.0,
    20.0,
)  # of the rate behind what is wanted; before a level, that the rate falls with what is left
HOLD_S, REACTION_S = (30.0, 180.0), (4.0, 20.0)
EARLY = 0.25
APART_FT = 2000.0  # of cleared levels, at least


def clearances(rng: np.random.Generator, ceiling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The altitude (N,) where each flight begins and its cleared levels (N, 4) in 1000 ft, all
    one way; unneeded ones repeat the last."""
    count, top = len(ceiling), HIGHEST * ceiling
    up = rng.random(count) < 0.5
    low = rng.uniform(1500.0, 0.4 * top)
    high = rng.uniform(low + 2 * APART_FT, top)
    least = ((APART_FT + 500.0) / (high - low))[
        :, None
    ]  # of the way, to the first level: not one at the beginning itself, rounded or not
    share = least + (1.0 - least) * np.sort(rng.random((count, CLEARANCES)), axis=1)
    number = rng.integers(1, CLEARANCES + 1, count)
    share = np.where(np.arange(CLEARANCES) >= number[:, None] - 1, 1.0, share)
    begin, end = np.where(up, low, high), np.where(up, high, low)
    levels = np.round((begin[:, None] + (end - begin)[:, None] * share) / 1000.0) * 1000.0
    for k in range(1, CLEARANCES):  # a level hardly beyond the last one is that one
        near = np.abs(levels[:, k] - levels[:, k - 1]) < APART_FT
        levels[:, k] = np.where(near, levels[:, k - 1], levels[:, k])
    return begin, levels


def fly(
    rng: np.random.Generator, kind: np.ndarray, factor: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Altitude as reported and cleared level, (N, rows) each, in ft; `kind` (N,): the type's
    number, `factor` (N,): of the aircraft's rates."""
    table = np.array([TYPES[name] for name in sorted(TYPES)])[kind]
    ground, ceiling, sink = table[:, 0] * factor, table[:, 1], table[:, 2] * factor
    altitude, levels = clearances(rng, ceiling)
    count = len(kind)
    hold = rng.uniform(*HOLD_S, (count, CLEARANCES))
    reaction = rng.uniform(*REACTION_S, (count, CLEARANCES))
    early = rng.random((count, CLEARANCES)) < EARLY
    bias = 1.0 + 0.06 * rng.standard_normal(count)  # mass and speed of the day
    row, at = np.arange(count), np.zeros(count, int)
    rate = np.zeros(count)
    since = np.full(count, 60.0)
    held = np.zeros(count)
    gust = np.zeros(count)
    reported, cleared = np.empty((count, rows)), np.empty((count, rows))
    for step in range(rows):
        reported[:, step], cleared[:, step] = (
            np.round(altitude / TICK_FT) * TICK_FT,
            levels[row, at],
        )
        left = levels[row, at] - altitude
        held = np.where(np.abs(left) < 2 * TICK_FT, held + STEP_S, 0.0)
        gust = 0.9 * gust + 0.04 * rng.standard_normal(count)
        climb = ground * np.maximum(1.0 - altitude / ceiling, 0.05)
        descent = sink * np.where(altitude < 10_000.0, 0.7, 1.0)
        best = np.where(left > 0, climb, descent) * bias * (1.0 + gust)
        wanted = np.sign(left) * np.minimum(np.abs(best), np.abs(left) * 60.0 / EASE_S)
        ready = since >= reaction[row, at]
        rate += (np.where(ready, wanted, rate) - rate) * (1.0 - np.exp(-STEP_S / LAG_S))
        altitude = altitude + rate * STEP_S / 60.0
        since += STEP_S
        due = (held >= hold[row, at]) | early[row, at] & (np.abs(left) < APART_FT / 2)
        last = np.minimum(at + 1, CLEARANCES - 1)
        new = due & (levels[row, last] != levels[row, at])
        at, since = np.where(new, last, at), np.where(new, 0.0, since)
    return reported, cleared


def make(config: Climb, folder: Path) -> None:
    """Write flights.csv into `folder`: config.total flights of config.steps * config.step_s
    seconds, in the order of their numbers."""
    rng = stream(config.seed, "climb")
    aircraft = np.arange(config.total) // config.flights_each
    names = np.array(sorted(TYPES))
    which = np.sort(rng.permutation(len(names))[: config.types])
    fleet = which[rng.integers(0, len(which), aircraft[-1] + 1)]
    address = 0x400000 + np.sort(rng.choice(0x80000, aircraft[-1] + 1, replace=False))
    factor = np.clip(1.0 + 0.08 * rng.standard_normal(aircraft[-1] + 1), 0.75, 1.25)
    rows = config.steps * config.step_s // int(STEP_S)
    reported, cleared = fly(rng, fleet[aircraft], factor[aircraft], rows)

    def each(values):
        return np.repeat(values, rows)

    table = pl.DataFrame(
        {
            "FLIGHT_ID": each(np.arange(config.total)),
            "AIRCRAFT_TYPE": each(names[fleet[aircraft]]),
            "CFL": (cleared / LEVEL_FT).ravel().astype(np.int64),
            "TRACK_ALTITUDE": (reported / LEVEL_FT).ravel(),
            "AIRCRAFT": each(np.array([f"{a:06X}" for a in address])[aircraft]),
        }
    )
    with atomic_file(folder / "flights.csv") as file:
        table.write_csv(file)
