"""Means over few groups with Student's intervals: runs of a system, blocks of a series.

A bootstrap over ten or sixteen groups draws intervals that are too narrow: of nominal 90 % they
hold 84 to 87 % (groups.py is for many). Here the interval is Student's, from how far the groups'
sums lie off what the mean says of them, with as many degrees of freedom as there are groups, less
one. Shapes: S members, G groups.
"""

import math
from typing import Any

import numpy as np
from scipy.special import stdtrit


def mean_of(values: np.ndarray, group: np.ndarray, unit: str) -> dict[str, Any]:
    """The mean of values (S,) that are never below 0, with its 90 % interval over groups (S,);
    shares, of unit "1", are at most 1."""
    _, which = np.unique(group, return_inverse=True)
    count, total = np.bincount(which), np.bincount(which, values.astype(np.float64))
    members, groups = int(count.sum()), len(count)
    mean = float(total.sum() / members)
    entry = {"value": mean, "unit": unit, "n": members}
    if groups > 1:
        off = np.square(total - mean * count).sum() * groups / (groups - 1)
        half = float(stdtrit(groups - 1, 0.95)) * math.sqrt(off) / members
        most = 1.0 if unit == "1" else math.inf
        entry |= {"low": max(mean - half, 0.0), "high": min(mean + half, most)}
    return entry
