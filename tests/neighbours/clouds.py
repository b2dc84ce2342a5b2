"""Point sets that searches for neighbours get wrong, as hypothesis cases, and brute force in
NumPy that shares no code with any of them."""

from typing import NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

DTYPES = {"float32": np.float32, "float64": np.float64}


def smooth(rng, n):
    return np.cumsum(rng.normal(size=(n, 4)) * 0.1, 0) + [0, 0, 0, 1] * np.arange(n)[:, None] * 0.05


def random(rng, n):
    return rng.normal(size=(n, 4))


def stationary(rng, n):  # aircraft on the ground that report all day
    return np.concatenate(
        [np.repeat(rng.normal(size=(3, 3)), n, 0)[:n], np.sort(rng.uniform(size=(n, 1)), 0)], 1
    )


def one_place_and_time(rng, n):
    return np.repeat(rng.normal(size=(1, 4)), n, 0)


def simultaneous(rng, n):
    return np.concatenate([rng.normal(size=(n, 3)), np.full((n, 1), 0.5)], 1)


def clustered(rng, n):
    return rng.normal(size=(4, 4))[rng.integers(0, 4, n)] * 10 + rng.normal(size=(n, 4)) * 1e-3


def duplicated(rng, n):
    return rng.normal(size=(max(1, n // 5), 4))[rng.integers(0, max(1, n // 5), n)]


def collinear(rng, n):
    return rng.normal(size=4) + rng.integers(-3, 4, 4) * np.sort(rng.uniform(size=(n, 1)), 0)


def far_away(
    rng, n
):  # coordinates as of a day counted from 1970, with few digits left for differences
    return random(rng, n) + [1e5, -3e6, 1e4, 1.6e7]


def integers(rng, n):  # equal distances everywhere
    return rng.integers(0, 4, size=(n, 4)).astype(float)


def magnitudes(
    rng, n
):  # differences from ones that vanish when squared to ones that drown all others
    return rng.normal(size=(n, 4)) * 10.0 ** rng.integers(-24, 10, size=(n, 4))


def vanishing(rng, n):  # differences whose squares are zero or the smallest numbers of float32
    return rng.normal(size=(n, 4)) * 1e-22


def outlier(rng, n):  # about their middle, coordinates have fewer digits than differences need
    points = rng.normal(size=(n, 4)) * 1e-3
    points[:1] += 1e9
    return points


CLOUDS = (
    smooth,
    random,
    stationary,
    one_place_and_time,
    simultaneous,
    clustered,
    duplicated,
    collinear,
    far_away,
    integers,
    magnitudes,
    vanishing,
    outlier,
)
SCALES = {
    "one": lambda rng, m: 1.0,
    "axes": lambda rng, m: np.array([1.0, 1, 4, 9]),
    "zero": lambda rng, m: 0.0,
    "flat": lambda rng, m: np.array([1.0, 0, 0, 3]),
    "steep": lambda rng, m: 10.0 ** rng.uniform(-8, 8, 4),
    "per query": lambda rng, m: rng.uniform(0, 5, (m, 4)),
    "per query, some zero": lambda rng, m: rng.integers(0, 3, (m, 4)).astype(float),
}
WINDOWS = {
    "all": lambda rng, m: None,
    "now": lambda rng, m: 0.0,
    "gap": lambda rng, m: 0.3,
    "whole": lambda rng, m: 1.0,
    "per query": lambda rng, m: rng.uniform(0, 2, m),
}


class Case(NamedTuple):
    """What one query asks; arrays of NumPy."""

    points: np.ndarray
    trajectory: np.ndarray
    queries: np.ndarray
    k: int
    window: float | np.ndarray | None
    scale: float | np.ndarray
    pick: int  # which of a method's options


@st.composite
def cases(draw, most: int = 120):
    """A cloud, queries on, between and far from its points, before and after them, and a way to
    ask."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, most))
    m = draw(st.integers(1, 9))
    dtype = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
    points = draw(st.sampled_from(CLOUDS))(rng, n).astype(dtype)
    rng.shuffle(points)
    longest = draw(st.sampled_from([1, 3, 17, 50]))
    queries = points[rng.integers(0, n, m)] + rng.choice(
        [0, 0, 1e-3, 1, 30], (m, 1)
    ) * rng.integers(-1, 2, (m, 4))
    return Case(
        points,
        rng.permutation(np.arange(n) // longest),
        queries.astype(dtype),
        draw(st.sampled_from([1, 2, 5, 16, 40, 150])),
        WINDOWS[draw(st.sampled_from(sorted(WINDOWS)))](rng, m),
        SCALES[draw(st.sampled_from(sorted(SCALES)))](rng, m),
        draw(st.integers(0, 3)),
    )


def as_tensor(value):
    """Arrays as tensors, numbers and None as they are."""
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def ask(index, case: Case):
    """The answer of an index to a case."""
    return index.query(
        torch.tensor(case.queries), case.k, as_tensor(case.window), as_tensor(case.scale)
    )


def brute_force(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Distance and index (M, k) by the definition: every point, one rounding an operation, a
    full sort."""
    points, queries, (m, k) = case.points, case.queries, (len(case.queries), case.k)
    scale = np.broadcast_to(np.asarray(case.scale, points.dtype), (m, 4))
    window = np.broadcast_to(
        -np.inf if case.window is None else np.asarray(case.window, np.float64), m
    )
    distance, index = np.full((m, k), np.inf, points.dtype), np.full((m, k), -1)
    for row in range(m):
        gap = queries[row] - points
        x, y, z, t = (scale[row] * (gap * gap)).T
        square = ((x + y) + z) + t
        seen = np.flatnonzero(
            points[:, 3].astype(np.float64) <= queries[row, 3].astype(np.float64) - window[row]
        )
        order = seen[np.lexsort((seen, square[seen]))][:k]
        distance[row, : len(order)], index[row, : len(order)] = square[order], order
    return distance, index


def complaint(found, case: Case) -> str:
    """How an answer differs from brute force; empty where it does not in a single bit."""
    distance, index = brute_force(case)
    got = [part.numpy() for part in found]
    if (
        [part.shape for part in got] != [distance.shape] * 3 + [(len(distance),)]
        or got[0].dtype != distance.dtype
        or got[1].dtype != np.int64
    ):
        return f"shapes or types: {[(part.shape, part.dtype) for part in got]}"
    problems = []
    for name, part, expected in zip(
        ("distance", "index", "mask"), got, (distance, index, index >= 0), strict=False
    ):
        wrong = np.flatnonzero((part != expected).any(1))
        problems += [
            f"{name} of query {row}: {part[row]} instead of {expected[row]}" for row in wrong[:1]
        ]
    if got[3].dtype != np.int64 or (got[3] < (index >= 0).sum(1)).any():
        problems.append(f"comparisons {got[3]}: fewer than neighbours")
    return "; ".join(problems)
