"""Navier-Stokes sets: the vorticity at some grid nodes now, to be told at others 50 outputs later
(thesis C.1.3).

Raw: vorticity-K.npy (float32, trajectories x outputs x G x G) and meta.json. A set is a pair of
outputs (t, t + 50) of one trajectory: the context are nodes drawn at random with the vorticity at
t, the targets are nodes drawn anew with the vorticity at t + 50; within each, no node twice.
Positions are 2 index / G - 1, so in [-1, 1). Whole trajectories are drawn for a split, as many as
meta.json says, since pairs of one trajectory overlap; a record is trajectory * pairs + t within its
file. Not standardised, as in the documents: positions are bounded and the vorticity's standard
deviation is about 1.
Shapes: S sets, C context, T targets, G grid. Numbers without dimension; the box's side is 2.
"""

from pathlib import Path
from typing import Any

import numpy as np

from stages.arrays import load
from stages.errors import DataError, InputError
from stages.fields.problem import Counts, Sets
from stages.files import read_json
from stages.seeds import stream
from stages.splits import SPLITS

GAP = 50  # outputs from context to target


def read_meta(path: Path) -> dict[str, Any]:
    """meta.json, checked: grid, outputs, trajectories of each file, and how many of all are for
    which split."""
    meta = read_json(path)

    def whole(value, least):
        return type(value) is int and value >= least

    checks = {
        "grid": lambda v: whole(v, 2),
        "outputs": lambda v: whole(v, 1),
        "trajectories": lambda v: isinstance(v, list) and bool(v) and all(whole(n, 1) for n in v),
        "split": lambda v: (
            isinstance(v, dict) and set(v) == set(SPLITS) and all(whole(n, 0) for n in v.values())
        ),
    }
    for key, good in checks.items():
        if not isinstance(meta, dict) or key not in meta or not good(meta[key]):
            raise DataError(
                f"meta.json tells no usable `{key}`",
                where=str(path),
                remedy="acquire the data set again",
                expected="grid 2 or more, outputs 1 or more; a list of trajectories; a split in "
                "train, val and test",
                found=repr(meta.get(key) if isinstance(meta, dict) else meta)[:80],
            )
    if sum(meta["split"].values()) != sum(meta["trajectories"]):
        raise DataError(
            "split and files disagree",
            where=str(path),
            expected=f"{sum(meta['trajectories'])} trajectories, as in the files",
            found=f"{sum(meta['split'].values())} in the split",
            remedy="acquire the data set again",
        )
    if meta["outputs"] <= GAP:
        raise DataError(
            "trajectories are too short for a pair",
            where=str(path),
            expected=f"more than {GAP} outputs",
            found=f"{meta['outputs']}",
            remedy="raise `outputs` of the simulation",
        )
    return meta


def nodes(rng: np.random.Generator, sets: int, points: int, grid: int) -> np.ndarray:
    """Node numbers (S, points) of a G x G grid, row by row: each set's drawn uniformly, none
    twice in a set."""
    return np.stack([rng.choice(grid * grid, points, replace=False) for _ in range(sets)])


def positions(number: np.ndarray, grid: int) -> np.ndarray:
    """Positions (..., 2) in [-1, 1) of node numbers (...)."""
    return np.stack(np.divmod(number, grid), -1) / (grid / 2) - 1


def enough(raw: Path, grid: int, counts: Counts, remedy: str) -> None:
    """InputError where a set wants more points than a grid has nodes."""
    if max(counts.context, counts.targets) > grid * grid:
        raise InputError(
            "a set wants more points than the grid has nodes",
            where=str(raw),
            expected=f"at most {grid * grid}",
            found=f"{counts.context} context points, {counts.targets} targets",
            remedy=remedy,
        )


def read(raw: Path, seed: int, counts: Counts) -> Sets:
    """All pairs (or `counts.sets` of them, drawn at random), context and targets drawn anew for
    each pair.

    DataError for raw files that are damaged, not finite, too short or disagree; InputError for more
    points than nodes.
    """
    meta = read_meta(raw / "meta.json")
    grid, pairs = meta["grid"], meta["outputs"] - GAP
    enough(raw, grid, counts, "lower them, or raise `grid`")
    total = sum(meta["trajectories"])
    part = stream(seed, "navier_stokes", "split").permutation(
        np.repeat(np.arange(3), [meta["split"][name] for name in SPLITS])
    )
    kept = np.sort(stream(seed, "navier_stokes", "sets").permutation(total * pairs)[: counts.sets])
    group, t = np.divmod(kept, pairs)
    begin = np.concatenate([[0], np.cumsum(meta["trajectories"])])
    source = np.searchsorted(begin, group, side="right") - 1
    inside = group - begin[source]
    context, target = (
        nodes(stream(seed, "navier_stokes", name), len(kept), points, grid)
        for name, points in (("context", counts.context), ("targets", counts.targets))
    )
    context_y, target_y = np.empty(context.shape), np.empty(target.shape)
    names = tuple(f"vorticity-{k}.npy" for k in range(len(meta["trajectories"])))
    for k, name in enumerate(names):
        fields = load(raw / name, (meta["trajectories"][k], meta["outputs"], grid, grid)).reshape(
            meta["trajectories"][k], -1, grid * grid
        )
        mine = source == k
        at, now = inside[mine, None], t[mine, None]
        context_y[mine], target_y[mine] = (
            fields[at, now, context[mine]],
            fields[at, now + GAP, target[mine]],
        )
    return Sets(
        context_x=positions(context, grid),
        context_y=context_y[..., None],
        target_x=positions(target, grid),
        target_y=target_y[..., None],
        split=part[group],
        source=source,
        record=inside * pairs + t,
        group=group,
        files=names,
        units={"x": ("half box", "half box"), "i": ("1",), "o": ("1",)},
        names={"x": ("x", "y"), "i": ("vorticity",), "o": ("vorticity",)},
        loss="mse",
        standardise=False,
        facts={
            "trajectories": total,
            "pairs_per_trajectory": pairs,
            "gap_outputs": GAP,
            "grid": grid,
        },
    )
