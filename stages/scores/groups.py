"""Bootstrap over groups: how far a mean would move with other groups of the same kind.

Sequences or sets of one trajectory, file or aircraft are not independent, so whole groups are drawn
with replacement, never their members; intervals are the central 90 % (bootstrap.py).
Shapes: S members, G groups, K sums, R resamples.
"""

from typing import Any

import numpy as np

from stages.scores import bootstrap

CHUNK = 1_000_000  # drawn groups held at once
Sums = dict[str, np.ndarray]


def grouped(found: Sums, group: np.ndarray) -> Sums:
    """Sums over the members of each group, in the order of the groups' numbers: name -> (G,)."""
    numbers, which = np.unique(group, return_inverse=True)
    return {
        name: np.bincount(which, column, minlength=len(numbers)) for name, column in found.items()
    }


def drawn(sums: Sums, resamples: int, rng: np.random.Generator) -> Sums:
    """Sums (G,) of groups -> sums (R,) of resamples: as many groups as there are, drawn with
    replacement."""
    matrix = np.stack(list(sums.values()), 1)
    count, parts = len(matrix), []
    step = max(1, CHUNK // count)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        chosen = rng.integers(count, size=(rows, count)) + count * np.arange(rows)[:, None]
        times = np.bincount(chosen.ravel(), minlength=rows * count).reshape(rows, count)
        parts.append(
            np.einsum("rg,gk->rk", times, matrix)
        )  # not BLAS: the same bits for any number of threads
    return dict(zip(sums, np.concatenate(parts).T, strict=True))


def mean_of(
    values: np.ndarray,
    group: np.ndarray,
    unit: str,
    resamples: int,
    rng: np.random.Generator,
    weight: np.ndarray | None = None,
) -> dict[Any, Any]:
    """The mean of one value a member (S,), or of sums (S,) over their `weight` (S,), with its 90 %
    interval over groups."""
    count = np.ones(len(values)) if weight is None else weight.astype(np.float64)
    sums = grouped({"total": values.astype(np.float64), "n": count}, group)
    sums = {name: column[sums["n"] > 0] for name, column in sums.items()}
    entry = {
        "value": float(sums["total"].sum() / sums["n"].sum()),
        "unit": unit,
        "n": int(sums["n"].sum()),
    }
    if len(sums["n"]) > 1:
        replicates = drawn(sums, resamples, rng)
        entry |= dict(
            zip(
                ("low", "high"),
                bootstrap.interval(replicates["total"] / replicates["n"]),
                strict=True,
            )
        )
    return entry
