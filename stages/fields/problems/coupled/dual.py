"""Two functions of one Gaussian process (document G, section 3.1.1; reference code I): a Hadamard
kernel of two tasks, cov(f_i(x), f_j(x')) = B_ij exp(-|x - x'|^2 / 2 l^2), B = [[1, c], [c, 1]].

log10 l is uniform, one a task. Values of both have the same noise. Points lie as Layout has them,
cells evenly from -range to range, both ends included. No dimension.
"""

from dataclasses import dataclass, replace

import numpy as np

from stages.fields.problems.coupled.tasks import Tasks, exact, values
from stages.fields.problems.functions.plans import Array, Kept, Layout, Training


@dataclass(frozen=True)
class Hadamard:
    """The law of one draw of lengths (S,)."""

    correlation: float
    length: Array

    def mean(self, quantity: int, x: Array) -> Array:
        """0."""
        return np.zeros(x.shape[:2])

    def covariance(self, first: int, second: int, a: Array, b: Array) -> Array:
        """B_ij k."""
        square = np.square(a[:, :, None] - b[:, None]).sum(3)
        share = 1.0 if first == second else self.correlation
        return np.asarray(share * np.exp(-0.5 * square / np.square(self.length)[:, None, None]))


@dataclass(frozen=True)
class Dual:
    """Tasks of correlation `correlation`, `cells` along each axis."""

    correlation: float
    low: float
    high: float
    noise: float
    cells: int
    layout: Layout

    sphere = False

    @property
    def axes(self) -> tuple[Array, ...]:
        """The grid's axes."""
        return (np.linspace(-self.layout.range, self.layout.range, self.cells),) * self.layout.axes

    @property
    def places(self) -> Array:
        """Where the cells are (M, X)."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), -1).reshape(-1, self.layout.axes)

    @property
    def prior(self) -> tuple[float, float]:
        """Mean and standard deviation of a value of which nothing is known."""
        return 0.0, float(np.hypot(1.0, self.noise))

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream; with the exact laws where they are kept."""
        rng, kept = source.rng(), isinstance(source, Kept)
        law = Hadamard(self.correlation, 10 ** rng.uniform(self.low, self.high, tasks))
        x, real, targets = self.layout.drawn(tasks, rng, not kept)
        cells = np.broadcast_to(self.places, (tasks, *self.places.shape))
        noise = (self.noise, self.noise)
        off, on = values(law, np.concatenate((x, targets), 1), cells, noise, rng)
        y, asked = off[:, : x.shape[1]] * real, off[:, x.shape[1] :]
        found = Tasks(x, y[..., None], real, targets, asked[..., None], on, {})
        return replace(found, exact=exact(law, found, cells, noise)) if kept else found
