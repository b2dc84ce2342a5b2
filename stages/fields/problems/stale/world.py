"""Tasks of one field of the whole globe at full resolution: the coarse grid is known everywhere,
points within a window; other nodes of the window are asked.

Nothing is stale: there is one time, and the grid is of it. The grid is the mean over blocks of
`block` x `block` nodes from the north pole and the date line on; southern rows that fill no block
are left out of it. A window is as many nodes along each axis; it lies whole in a strip of
longitudes, its middle falls evenly over the sphere, and nodes are drawn by the cosine of their
latitude, so that a mean over targets is one over area. What trains, selects and tests lies in
strips of its own: they share no node, only the cells. Longitudes of a task go on beyond 180 degrees
where its window crosses the date line.
Shapes: S tasks, C context points, T targets, M cells, N nodes, p latitudes, q longitudes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stages.errors import DataError, InputError
from stages.fields.problems.coupled.tasks import Tasks
from stages.fields.problems.functions.plans import Array, Kept, Training
from stages.fields.problems.stale import month
from stages.fields.problems.stale.tasks import counted, means, middles

TURN = 360.0  # degrees
EVEN = 1e-3  # degrees: GRIB 1 rounds to as many
Strips = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Field:
    """One time at all nodes, south to north and from the date line eastwards."""

    lat: Array  # p
    lon: Array  # q
    values: Array  # p q

    @property
    def area(self) -> Array:
        """Of a node of every row (p,), without unit; at a pole 0."""
        found: Array = np.maximum(np.cos(np.radians(self.lat)), 0.0)
        found[np.abs(self.lat) >= 90 - EVEN] = 0.0
        return found

    def only(self, strips: Strips) -> "Field":
        """The same, with no values outside of some strips: who reads there, reads NaN."""
        return replace(self, values=np.where(inside(self.lon, strips), self.values, np.nan))

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation over the area of the nodes that have a value."""
        real = np.isfinite(self.values)
        weight = (self.area[:, None] * real).ravel()
        values = np.where(real, self.values, 0.0).ravel()
        mean = float(np.average(values, weights=weight))
        return mean, float(np.sqrt(np.average(np.square(values - mean), weights=weight)))


def inside(lon: Array, strips: Strips) -> Array:
    """Which longitudes (...) lie in strips from west to east, around the globe."""
    found = np.zeros(np.shape(lon), dtype=bool)
    for west, east in strips:
        found |= np.mod(lon - west + EVEN, TURN) <= east - west + 2 * EVEN
    return found


def apart(strips: dict[str, Strips]) -> list[str]:
    """Which strips of two splits are not apart by a degree or more, in words."""
    every = sorted((west, east, split) for split, own in strips.items() for west, east in own)
    following = [*every[1:], (every[0][0] + TURN, every[0][1] + TURN, every[0][2])]
    return [
        f"{one[2]} {one[0]:g} to {one[1]:g} and {other[2]} {other[0]:g} to {other[1]:g}"
        for one, other in zip(every, following, strict=True)
        if other[0] - one[1] < (1.0 if one[2] != other[2] else 0.0)
    ]


def read(raw: Path, block: int) -> Field:
    """The one field of a raw folder's one weather file. DataError as month.read, for several times,
    and for a field that is not global, pole to pole and all around, in blocks."""
    found = month.read(raw)
    lat, lon, where = found.lat, found.lon, str(raw)
    if len(found.hour) != 1:
        raise DataError("a world of several times", where=where, expected="one time",
                        found=f"{len(found.hour)}", remedy="choose one")  # fmt: skip
    step = float(np.diff(lon).mean()) if len(lon) > 1 else TURN
    if abs(step * len(lon) - TURN) > EVEN * len(lon) or max(90 - lat[-1], 90 + lat[0]) > EVEN:
        raise DataError(
            "a field is not global",
            where=where,
            expected="latitudes from -90 to 90, longitudes all around",
            found=f"{lat[0]:g} to {lat[-1]:g}, {lon[0]:g} to {lon[-1]:g} by {step:g}",
        )
    if len(lon) % block or (len(lat) - 1) % block:
        raise DataError(
            "a field does not divide into blocks",
            where=where,
            expected=f"rows but one, and columns, that divide by {block}",
            found=f"{len(lat)} x {len(lon)}",
        )
    return Field(lat, lon, found.values[0])


def drawn_by(weight: Array, count: int, rng: np.random.Generator) -> Array:
    """Of rows of weights (S, N) the numbers (S, count) of different ones in the order in which
    clocks ring whose rates they are: one by one, each by its weight among those left."""
    with np.errstate(divide="ignore"):
        rings = rng.standard_exponential(weight.shape) / weight
    first = np.argpartition(rings, count - 1, 1)[:, :count]
    order = np.argsort(np.take_along_axis(rings, first, 1), 1)
    found: Array = np.take_along_axis(first, order, 1)
    return found


@dataclass(frozen=True)
class World:
    """How tasks of one split's strips are drawn: 1 to `context` points, `targets` others, in a
    window of `window` nodes along each axis; `cells` (M,) of the whole globe."""

    field: Field  # standardised, NaN outside of the strips
    cells: Array
    strips: Strips
    block: int
    window: int
    context: int
    targets: int

    sphere = True

    def __post_init__(self) -> None:
        if self.context + self.targets > self.window**2:
            raise InputError(
                "a window has fewer nodes than a task asks",
                where="context and targets",
                expected=f"{self.window**2} at most together",
                found=f"{self.context} and {self.targets}",
            )
        if not len(self.starts):
            raise InputError(
                "no strip is as wide as a window",
                where="strips_deg and window_deg",
                expected=f"{self.window} columns",
                found=str([*self.strips]),
            )

    @property
    def axes(self) -> tuple[Array, ...]:
        """Latitudes and longitudes of the cells' middles."""
        return axes(self.field.lat, self.field.lon, self.block)

    @property
    def starts(self) -> Array:
        """The westernmost columns of all windows that lie in the strips."""
        columns = np.arange(len(self.field.lon))
        real = inside(self.field.lon, self.strips)
        whole = np.ones_like(real)
        for step in range(self.window):
            whole &= np.roll(real, -step)
        return columns[whole]

    def windows(self, tasks: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """The first row and column (S,) of windows whose middles fall evenly over the sphere."""
        lat, wide = self.field.lat, self.window
        rows = np.arange(len(lat) - wide + 1)
        area = np.cos(np.radians((lat[rows] + lat[rows + wide - 1]) / 2))
        return rng.choice(rows, tasks, p=area / area.sum()), rng.choice(self.starts, tasks)

    def placed(self, tasks: int, source: Training | Kept) -> tuple[Tasks, Array]:
        """Tasks of a stream, and the latitude and longitude (S, 2) of their windows' middles.
        DataError where a task would leave its strips."""
        rng, kept = source.rng(), isinstance(source, Kept)
        row, column = self.windows(tasks, rng)
        most, real = counted(rng, tasks, self.context, kept)
        lines = np.arange(self.window)
        area = self.field.area[row[:, None] + lines]
        chosen = drawn_by(np.repeat(area, self.window, 1), most + self.targets, rng)
        north, east = row[:, None] + chosen // self.window, column[:, None] + chosen % self.window
        lat, lon = self.field.lat, self.field.lon
        y = self.field.values[north, east % len(lon)]
        if not np.isfinite(y).all():
            raise DataError("a task reads nodes outside of its strips", where="world",
                            expected=f"longitudes in {[*self.strips]}")  # fmt: skip
        x = np.stack((lat[north], lon[0] + TURN / len(lon) * east), -1)
        half = (self.window - 1) / 2
        middle = np.stack(((lat[row] + lat[row + self.window - 1]) / 2,
                           lon[0] + TURN / len(lon) * (column + half)), 1)  # fmt: skip
        cells = np.broadcast_to(self.cells, (tasks, len(self.cells)))
        known = (y[:, :most] * real)[..., None]
        found = Tasks(x[:, :most], known, real, x[:, most:], y[:, most:, None], cells, {})
        return found, middle

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream."""
        return self.placed(tasks, source)[0]


def axes(lat: Array, lon: Array, block: int) -> tuple[Array, Array]:
    """Latitudes and longitudes of the cells' middles; southern rows fill no block."""
    return middles(lat[len(lat) % block :], block), middles(lon, block)


def cells(field: Field, block: int) -> Array:
    """The means (M,) over blocks, row by row from the south."""
    found: Array = means(field.values[None, len(field.lat) % block :], block)[0]
    return found


def blocks(places: Array, strips: Strips, high: float) -> Array:
    """Which block of latitude, `high` degrees, of which strip places (S, 2) lie in: numbers
    (S,), -1 outside of all strips."""
    rows = int(np.ceil(180 / high))
    row = np.clip((places[:, 0] + 90) // high, 0, rows - 1).astype(int)
    found = np.full(len(places), -1)
    for number, strip in enumerate(strips):
        mine = inside(places[:, 1], [strip])
        found[mine] = number * rows + row[mine]
    return found
