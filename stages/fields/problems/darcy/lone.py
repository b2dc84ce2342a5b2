"""One Darcy archive by itself, of any resolution, as sets: what a trained cell is scored on.

Places are i/G as in read.py, and drawn as there; a lattice that has fewer points than the cell's
sets gives all it has. A sample that the cell has seen is known by phase and solution at the points
that both lattices share: a medium solved anew is another sample. Shapes: N samples, G points a
side, S sets, C context points, T targets.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.fields.problem import Counts, Sets
from stages.fields.problems.darcy.read import draw, first_of, parted, unpack
from stages.scores.lone import Asked
from stages.seeds import stream

FINEST = 1024  # points a side of the lattice that all others are parts of
FIRST = 24  # points by which most media are told apart
LEAST = 3  # solutions that tell a sample
CLOSE = 1e-4  # of the solution's largest value, between the archive's numbers and the prepared ones


@dataclass(frozen=True)
class Lone:
    """The sets of one archive, and its samples as they are: x bool and y float64 (N, G * G)."""

    sets: Sets
    x: np.ndarray
    y: np.ndarray
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read(asked: Asked, meta: dict[str, Any]) -> Lone:
    """Every sample as one set, with the counts of the prepared sets (`meta`: sets.json).

    InputError for what is no Darcy archive, or of a lattice that is no part of the finest one.
    """
    try:
        x, y = unpack(asked.file)
    except DataError as error:
        raise asked.refuse(error.what, error.expected or "a Darcy archive", error.found) from None
    side, settings = x.shape[1], meta["settings"]
    if FINEST % side:
        raise asked.refuse(
            "the lattice is none that is known",
            f"G points a side, G a divisor of {FINEST}",
            f"{side}",
        )
    x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
    counts = Counts(
        min(meta["context"], side**2), min(meta["targets"], side**2), None, settings.get("overlap")
    )
    lattice = np.stack(np.divmod(np.arange(side**2), side), 1) / side
    c, t = drawn(asked, settings["seed"], len(x), lattice, counts)
    rows = np.arange(len(x))[:, None]
    sets = Sets(
        context_x=lattice[c],
        context_y=x[rows, c][..., None].astype(np.float64),
        target_x=lattice[t],
        target_y=y[rows, t][..., None],
        split=np.full(len(x), 2),
        source=np.zeros(len(x), np.int32),
        record=np.arange(len(x)),
        group=first_of(x),
        files=(asked.file.name,),
        units={key: tuple(value) for key, value in meta["units"].items()},
        names={key: tuple(value) for key, value in meta["names"].items()},
        loss=meta["loss"],
        standardise=meta["standardised"],
    )
    trained = meta["facts"].get("lattice")
    notes = (f"lattice {side} x {side}; the cell was trained on {trained} x {trained}",)
    short = {
        f"{key} of each sample, which the lattice does not have": meta[key] - getattr(counts, key)
        for key in ("context", "targets")
    }
    return Lone(sets, x, y, {why: number for why, number in short.items() if number}, notes)


def drawn(
    asked: Asked, seed: int, number: int, lattice: np.ndarray, counts: Counts
) -> tuple[np.ndarray, np.ndarray]:
    """Places of contexts (number, C) and targets (number, T) on the lattice (G * G, 2)."""
    if counts.overlap is not None:
        return parted(seed, number, lattice, counts, str(asked.file))
    context, targets = (
        draw(stream(seed, "darcy", "lone", word), number, len(lattice), getattr(counts, word))
        for word in ("context", "targets")
    )
    return context, targets


def trained_on(made: Lone, fitted: dict[str, np.ndarray]) -> int:
    """How many samples are those of the fitted sets: context_x (S, C, 2), context_y (S, C, 1),
    target_x (S, T, 2), target_y (S, T, 1), in the problem's units."""
    side = round(made.x.shape[1] ** 0.5)
    seen = np.zeros(len(made.x), bool)
    tables = (fitted[name] for name in ("context_x", "context_y", "target_x", "target_y"))
    for context_x, phase, target_x, solution in zip(*tables, strict=True):
        here, at = shared(context_x, side)
        phases = phase[here, 0] > 0.5
        alike = np.flatnonzero((made.x[:, at[:FIRST]] == phases[:FIRST]).all(1))
        alike = alike[(made.x[np.ix_(alike, at)] == phases).all(1)]
        here, at = shared(target_x, side)
        wanted, near = solution[here, 0], CLOSE * np.abs(solution).max()
        if (np.abs(wanted) > near).sum() < LEAST:  # at the border every solution is zero
            continue
        seen[alike[(np.abs(made.y[np.ix_(alike, at)] - wanted) <= near).all(1)]] = True
    return int(seen.sum())


def shared(places: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Which places (P, 2) are points of a lattice of `side` points, (P,) bool, and which point each
    of those is."""
    scaled = places * side
    whole = np.rint(scaled).astype(np.int64)
    here = (np.abs(scaled - whole) < 1e-3).all(1)
    return here, whole[here, 0] * side + whole[here, 1]
