"""The convex hull of values (thesis C.7): an average with positive weights cannot leave it.

Shapes: N values asked, C values of the hull; both of two components, in one unit.
"""

import numpy as np
from scipy.spatial import ConvexHull, QhullError


class Hull:
    """The convex hull of values (C, 2); also when they are one point, or lie on one line."""

    def __init__(self, values: np.ndarray):
        values = np.unique(np.asarray(values, np.float64), axis=0)
        self.centre = values.mean(0)
        self.planes = None
        centred = values - self.centre
        self.axis = (
            np.linalg.svd(centred, full_matrices=False)[2][0]
            if len(values) > 1
            else np.array([1.0, 0.0])
        )
        along = centred @ self.axis
        self.ends = along.min(), along.max()
        if len(values) > 2:
            try:
                self.planes = ConvexHull(values).equations
            except QhullError:  # on one line
                self.planes = None

    def outside(self, values: np.ndarray, tolerance: float) -> np.ndarray:
        """True (N,) where a value (N, 2) lies farther than `tolerance` beyond an edge."""
        values = np.asarray(values, np.float64)
        if self.planes is not None:
            return (values @ self.planes[:, :2].T + self.planes[:, 2]).max(1) > tolerance
        centred = values - self.centre
        along = centred @ self.axis
        beyond = np.maximum(np.maximum(self.ends[0] - along, along - self.ends[1]), 0.0)
        across = centred @ np.array([-self.axis[1], self.axis[0]])
        return np.hypot(beyond, across) > tolerance
