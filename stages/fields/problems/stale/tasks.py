"""Tasks of real hours: what a coarse grid said some hours ago and what points say now; the present
is asked at other nodes.

Places are degrees of latitude about the middle of the area: north, and east times the cosine of the
middle's latitude, so that a unit is as long both ways. The grid is the mean over blocks of `block`
x `block` nodes; rows and columns that fill no block are left out of it, and are asked like all
others. Points and targets are nodes, none both. Nobody is told the hour, or how old the grid is.
Shapes: S tasks, C context points, T targets, M cells, N nodes, n hours, p latitudes, q longitudes,
R runs.
"""

from dataclasses import dataclass

import numpy as np

from stages.errors import InputError
from stages.fields.problems.coupled.tasks import Tasks
from stages.fields.problems.functions.plans import Array, Kept, Training


@dataclass(frozen=True)
class Asked:
    """What tasks are of: rows of the fields, and nodes."""

    now: Array  # S
    then: Array  # S
    context: Array  # S C
    real: Array  # S C
    targets: Array  # S T


def counted(rng: np.random.Generator, tasks: int, context: int, kept: bool) -> tuple[int, Array]:
    """How many points the fullest task has, and which of so many are real (S, C): 1 to `context` a
    task where it is kept, else as many in all tasks of a step."""
    counts = rng.integers(1, context + 1, tasks if kept else 1)
    most = context if kept else int(counts.max())
    return most, np.arange(most) < np.broadcast_to(counts, tasks)[:, None]


def middles(line: Array, block: int) -> Array:
    """The middles (n,) of the whole blocks of a line of nodes, from its beginning."""
    found: Array = line[: len(line) // block * block].reshape(-1, block).mean(1)
    return found


def means(values: Array, block: int) -> Array:
    """Means over the whole blocks of fields (S, p, q), from their first row and column: (S, M)."""
    rows, columns = (count // block for count in values.shape[1:])
    whole = values[:, : rows * block, : columns * block]
    parts = whole.reshape(len(values), rows, block, columns, block)
    found: Array = parts.mean((2, 4)).reshape(len(values), -1)
    return found


@dataclass(frozen=True)
class Month:
    """Hours of one split, standardised, and how tasks are drawn from them: 1 to `context` points,
    `targets` others, a grid of `ages` hours from the youngest to the oldest."""

    values: Array  # n p q
    runs: Array  # R 2: [first, end) among the n
    lat: Array
    lon: Array
    block: int
    ages: tuple[int, int]
    context: int
    targets: int

    sphere = False

    def __post_init__(self) -> None:
        nodes, shape = len(self.lat) * len(self.lon), (len(self.lat), len(self.lon))
        if self.context + self.targets > nodes:
            raise InputError(
                "a task needs more nodes than the fields have",
                where="context, targets",
                expected=f"{nodes} at most together",
                found=f"{self.context} and {self.targets}",
            )
        if min(shape) < 2 * self.block:
            raise InputError(
                "the coarse grid has fewer than two cells along an axis",
                where="block",
                expected=f"{min(shape) // 2} at most on {shape[0]} x {shape[1]} nodes",
                found=str(self.block),
            )

    @property
    def lines(self) -> tuple[Array, Array]:
        """Where rows and columns of nodes lie."""
        north, east = self.lat.mean(), self.lon.mean()
        return self.lat - north, (self.lon - east) * np.cos(np.radians(north))

    @property
    def axes(self) -> tuple[Array, ...]:
        """The coarse grid's axes: the middles of blocks."""
        return tuple(middles(line, self.block) for line in self.lines)

    @property
    def nodes(self) -> Array:
        """Where the nodes are (N, 2), row by row."""
        return np.stack(np.meshgrid(*self.lines, indexing="ij"), -1).reshape(-1, 2)

    def coarse(self, rows: Array) -> Array:
        """The coarse grids of some rows of the fields (S, M)."""
        return means(self.values[rows], self.block)

    def asked(self, tasks: int, source: Training | Kept) -> Asked:
        """Which hours and nodes. What is kept goes evenly through all hours that have a grid of
        every age; training draws them, with as many points in all tasks of a step."""
        rng, kept = source.rng(), isinstance(source, Kept)
        hours = np.concatenate([np.arange(first + self.ages[1], end) for first, end in self.runs])
        turn = np.arange(tasks) * len(hours) // tasks
        now = hours[turn] if kept else rng.choice(hours, tasks)
        then = now - rng.integers(self.ages[0], self.ages[1] + 1, tasks)
        most, real = counted(rng, tasks, self.context, kept)
        nodes = len(self.lat) * len(self.lon)
        chosen = np.argsort(rng.random((tasks, nodes)), 1)[:, : most + self.targets]
        return Asked(now, then, chosen[:, :most], real, chosen[:, most:])

    def tasks_of(self, asked: Asked) -> Tasks:
        """What was measured."""
        nodes, flat = self.nodes, self.values.reshape(len(self.values), -1)
        now = asked.now[:, None]
        y, targets = flat[now, asked.context] * asked.real, flat[now, asked.targets]
        return Tasks(nodes[asked.context], y[..., None], asked.real, nodes[asked.targets],
                     targets[..., None], self.coarse(asked.then), {})  # fmt: skip

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream."""
        return self.tasks_of(self.asked(tasks, source))
