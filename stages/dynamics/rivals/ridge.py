"""Ridge regression from sums: rows come in parts, only F x F numbers are kept.

Minimises the mean squared error plus `penalty` times the squared weights of features in units of
their own size. Shapes: N rows, F features, O outputs.
"""

from collections.abc import Iterable

import numpy as np

Array = np.ndarray
LEAST = 1e-12


def solve(parts: Iterable[tuple[Array, Array]], penalty: float) -> Array:
    """Weights (F, O) of features (N, F) for outputs (N, O), given in parts. float64."""
    square: Array | float = 0.0
    cross: Array | float = 0.0
    count = 0
    for features, outputs in parts:
        square = square + features.T @ features
        cross = cross + features.T @ outputs
        count += len(features)
    square, cross = np.asarray(square), np.asarray(cross)
    scale = np.sqrt(np.maximum(np.diag(square) / count, LEAST))
    matrix = square / count / scale[:, None] / scale[None]
    matrix[np.diag_indices(len(matrix))] += penalty
    return np.linalg.solve(matrix, cross / count / scale[:, None]) / scale[:, None]
