"""The wind, what aircraft measure of it and what a late grid says of it: one Gaussian law, so that
the best forecast from both sources is known.

Each component is mean + sum over parts of a Gaussian process, independent of the other component,
with covariance sd^2 exp(-(de^2 + dn^2) / (2 horizontal^2) - dz^2 / (2 vertical^2) - |dt| / time): a
part is a wind as `gp_wind` has it (stages/winds/sky/gaussian_wind.py). An aircraft's wind has
independent noise. The grid is of one moment, `age` before now: of every cell the smoothed mean
(operator.py) of the wind of that moment, with a bias that all its cells share, N(0, bias^2), and
independent noise. Values are over the wind's standard deviation, without its mean. The law of a
target given what is read is k' (K + N)^-1 y and k(x, x) - k' (K + N)^-1 k, by Cholesky factors in
float64, of a measurement with N(0, noise^2). Shapes: S tasks, N points, T targets, M cells, O
components. A place is km east, north and up and minutes after now.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stages.errors import DataError
from stages.winds.joint.operator import Array, Axis

READS = ("both", "aircraft", "grid")
Answer = tuple[Array, Array]  # means (S, T, O) and standard deviations (S, T)


@dataclass(frozen=True)
class Part:
    """One process: `sd` over the wind's; km and minutes."""

    sd: float
    horizontal: float
    vertical: float
    time: float

    @property
    def lengths(self) -> tuple[float, float, float]:
        """Along east, north and up."""
        return self.horizontal, self.horizontal, self.vertical

    def points(self, a: Array, b: Array) -> Array:
        """Covariance of the wind at a (S, N, 4) and b (S, M, 4): (S, N, M)."""
        exponent = -np.abs(a[:, :, None, 3] - b[:, None, :, 3]) / self.time
        for axis, length in enumerate(self.lengths):
            exponent -= 0.5 * np.square((a[:, :, None, axis] - b[:, None, :, axis]) / length)
        return np.asarray(self.sd**2 * np.exp(exponent))

    def cells(self, axes: Sequence[Axis]) -> Array:
        """Covariance of the cells of one moment (M, M)."""
        total = np.full((1, 1), self.sd**2)
        for axis, length in zip(axes, self.lengths, strict=True):
            among = along(axis.nodes[None], axis.nodes, length)[0]
            one = np.einsum("gq,qr,hr->gh", axis.weights, among, axis.weights)
            total = np.einsum("ab,gh->agbh", total, one).reshape(len(total) * len(one), -1)
        return total

    def across(self, x: Array, axes: Sequence[Axis], stamp: Array) -> Array:
        """Covariance of the wind at x (S, N, 4) and of cells of the moments `stamp` (S,):
        (S, N, M)."""
        total = self.sd**2 * np.exp(-np.abs(x[:, :, 3] - stamp[:, None]) / self.time)[..., None]
        for place, (axis, length) in enumerate(zip(axes, self.lengths, strict=True)):
            one = along(x[:, :, place], axis.nodes, length) @ axis.weights.T
            total = (total[..., None] * one[:, :, None]).reshape(*x.shape[:2], -1)
        return total


def along(x: Array, nodes: Array, length: float) -> Array:
    """exp(-d^2 / (2 length^2)) of x (S, N) and nodes (Q,): (S, N, Q)."""
    found: Array = np.exp(-0.5 * np.square((x[:, :, None] - nodes) / length))
    return found


def factor(matrix: Array) -> Array:
    """Lower Cholesky factors (S, N, N). DataError where there is none."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise DataError(
            "the covariance of winds and cells is not positive definite",
            where="the joint nowcast",
            expected="eigenvalues above 0",
            found=f"{float(np.linalg.eigvalsh(matrix)[:, 0].min()):.3g}",
            remedy="raise noise_m_s, of the aircraft or of the grid",
        ) from None


@dataclass(frozen=True)
class Law:
    """The parts, the grid's axes, and the noise of aircraft, the bias and the noise of the grid,
    all over the wind's standard deviation."""

    parts: tuple[Part, ...]
    axes: tuple[Axis, ...]
    noise: float
    bias: float
    grid_noise: float

    @property
    def cell_places(self) -> Array:
        """The middles of the cells (M, 3), in their order."""
        middles = (axis.middles for axis in self.axes)
        return np.stack(np.meshgrid(*middles, indexing="ij"), -1).reshape(-1, len(self.axes))

    def points(self, a: Array, b: Array) -> Array:
        """Covariance of the wind at a (S, N, 4) and b (S, M, 4): (S, N, M)."""
        found: Array = np.add.reduce([part.points(a, b) for part in self.parts])
        return found

    def across(self, x: Array, stamp: Array) -> Array:
        """Covariance of the wind at x (S, N, 4) and of cells of `stamp` (S,): (S, N, M)."""
        found: Array = np.add.reduce([part.across(x, self.axes, stamp) for part in self.parts])
        return found

    def cells(self) -> Array:
        """Covariance of the cells of one moment (M, M), their bias in it, their noise not."""
        found: Array = np.add.reduce([part.cells(self.axes) for part in self.parts])
        return found + self.bias**2

    def joint(self, x: Array, stamp: Array) -> Array:
        """Covariance of the wind at x (S, N, 4), then of the cells (S, N + M, N + M), without
        independent noise."""
        cells, across = self.cells(), self.across(x, stamp)
        first = np.concatenate((self.points(x, x), across), 2)
        last = np.broadcast_to(cells, (len(x), *np.shape(cells)))
        return np.concatenate((first, np.concatenate((across.swapaxes(1, 2), last), 2)), 1)

    def drawn(self, x: Array, stamp: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """One draw: the wind at x (S, N, 2), and the cells with their noise (S, M, 2)."""
        whole = self.joint(x, stamp)
        count = x.shape[1]
        on = np.arange(whole.shape[1]) >= count
        # what aircraft measure has noise of its own; a small share of it lets equal places be
        diagonal = np.where(on, self.grid_noise**2, 1e-8)
        lower = factor(whole + diagonal[:, None] * np.eye(len(on)))
        found = np.einsum("snm,smo->sno", lower, rng.standard_normal((*whole.shape[:2], 2)))
        return found[:, :count], found[:, count:]

    def answers(
        self, x: Array, y: Array, real: Array, cells: Array, stamp: Array, targets: Array
    ) -> dict[str, Answer]:
        """Of each of READS the law of a measurement at the targets (S, T, 4), given measurements y
        (S, N, 2) at x (S, N, 4), of which `real` (S, N), and cells (S, M, 2) of `stamp` (S,)."""
        whole, count = self.joint(x, stamp), x.shape[1]
        told = self.across(targets, stamp).swapaxes(1, 2)
        cross = np.concatenate((self.points(x, targets), told), 1)
        known = np.concatenate((y, cells), 1)
        noise = np.where(np.arange(whole.shape[1]) < count, self.noise**2, self.grid_noise**2)
        prior = sum(part.sd**2 for part in self.parts)
        on = np.ones(cells.shape[:2], dtype=bool)
        found = {}
        for reads in READS:
            read = np.concatenate((real & (reads != "grid"), on & (reads != "aircraft")), 1)
            # what is not read is independent of all
            matrix = np.where(read[:, :, None] & read[:, None], whole, 0.0)
            matrix += np.where(read, noise, 1.0)[:, :, None] * np.eye(whole.shape[1])
            parts = np.concatenate((cross, known), 2) * read[:, :, None]
            white = np.linalg.solve(factor(matrix), parts)
            mean = np.einsum("snt,sno->sto", white[..., :-2], white[..., -2:])
            left = np.maximum(prior - np.square(white[..., :-2]).sum(1), 0.0)
            found[reads] = (mean, np.sqrt(left + self.noise**2))
        return found
