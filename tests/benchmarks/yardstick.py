"""What a user of SciPy would write today for causal neighbours: ask the k-d tree for more, drop
what is too young.

The comparison's unit, not a method of ours: it knows one scale, which the caller multiplies in; its
answer equals the contract's up to rounding. Shapes: N points, M
queries, k neighbours.
"""

import numpy as np
from scipy.spatial import cKDTree


def expand_and_filter(
    tree: cKDTree, queries: np.ndarray, k: int, times: np.ndarray, latest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distance and index (M, k) of the k nearest points with times <= latest; infinity and
    -1 where there are fewer.

    `tree` over coordinates (N, 4) and `queries` (M, 4), both times sqrt(scale); `times` (N,) of the
    points and `latest` (M,), the youngest time that a query sees. 2 k neighbours are asked for,
    then twice as many for the queries that still lack some.
    """
    distance, index = np.full((len(queries), k), np.inf), np.full((len(queries), k), -1, np.int64)
    rows, asked = np.arange(len(queries)), min(2 * k, tree.n)
    while len(rows) and tree.n:
        near, which = tree.query(queries[rows], k=np.arange(1, asked + 1))
        short = []
        for row, far, candidates in zip(rows, near, which, strict=True):
            seen = np.flatnonzero(times[candidates] <= latest[row])[:k]
            distance[row, : len(seen)], index[row, : len(seen)] = far[seen] ** 2, candidates[seen]
            if len(seen) < k and asked < tree.n:
                short.append(row)
        rows, asked = np.array(short, np.int64), min(2 * asked, tree.n)
    return distance, index
