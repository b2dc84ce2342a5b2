"""The magnetic field at the nodes of a grid, each evaluated once for a stream that flies over the
same cells all day.

decoding/declination.py evaluates the nodes under each table of rows anew, tens of milliseconds
however few the rows; a node is the same in any company, so what was evaluated can be kept. Kept are
at most the nodes of the globe, of the years that the stream saw.
"""

import contextlib
from collections.abc import Iterator

import numpy as np

from stages.winds.decoding import declination


class Nodes:
    """East and north field (2,), nT, by latitude, longitude and year."""

    def __init__(self) -> None:
        self.field: dict[tuple[int, int, int], np.ndarray] = {}
        self.evaluate = declination._nodes

    def at(self, lat: np.ndarray, lon: np.ndarray, year: int) -> np.ndarray:
        """As of `declination`: field (N, 2) at integer coordinates on 1 January of `year`."""
        keys = [(int(y), int(x), year) for y, x in zip(lat, lon, strict=True)]
        new = [i for i, key in enumerate(keys) if key not in self.field]
        if new:
            fresh = self.evaluate(lat[new], lon[new], year)
            self.field |= {keys[i]: row for i, row in zip(new, fresh, strict=True)}
        return np.stack([self.field[key] for key in keys])

    @contextlib.contextmanager
    def remembered(self) -> Iterator[None]:
        """Within it, declinations are found with what is known here."""
        before, declination._nodes = declination._nodes, self.at
        try:
            yield
        finally:
            declination._nodes = before
