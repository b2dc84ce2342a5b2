"""Coasts for maps, kept here so that no map waits for a download.

coast.csv: Natural Earth's countries at 1:110 million (public domain), to a hundredth of a degree:
the edges that no two countries share, joined to lines; not the antimeridian, not the pole. They
are coarse: a harbour may lie some tens of kilometres from its coast.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from stages.errors import IntegrityError
from stages.files import sha256

KEPT = Path(__file__).with_name("coast.csv")
# Another file is other code: what was drawn with it is stale.
DIGEST = "807c8c6e27b7a9dbc428278ce89418728aa8392baf32940dd3f35430486cbdda"


@cache
def lines() -> list[np.ndarray]:
    """Lines of coast, (N, 2) degrees of longitude and latitude each. IntegrityError for another
    file than the one that this code draws."""
    if (found := sha256(KEPT)) != DIGEST:
        raise IntegrityError(
            "the coasts are not those that figures are drawn with",
            where=str(KEPT),
            expected=DIGEST,
            found=found,
            remedy="`git checkout` the file; a new one takes a new DIGEST in coast.py",
        )
    rows = np.loadtxt(KEPT, delimiter=",", skiprows=1)
    return np.split(rows[:, 1:], 1 + np.flatnonzero(np.diff(rows[:, 0])))


def draw(axes: Axes, placed: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
    """The coasts within the limits that the axes have; `placed` puts (N, 2) degrees of longitude
    and latitude where the axes have them."""
    limits = axes.get_xlim(), axes.get_ylim()
    found = lines() if placed is None else [placed(line) for line in lines()]
    axes.add_collection(
        LineCollection(found, colors="#55606c", linewidths=0.8, zorder=1.5), autolim=False
    )
    axes.set(xlim=limits[0], ylim=limits[1])
