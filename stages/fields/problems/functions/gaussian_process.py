"""Functions drawn from a Gaussian process, and its exact prediction (document N, section 5.1.1;
reference code H).

Kernels of unit variance by r = |x - x'| / l: "eq" exp(-r^2 / 2); "matern12", "matern32",
"matern52"; "periodic" exp(-2 sum_a sin^2(pi |x_a - x'_a| / period) / l), the division by l, not
l^2, as the authors' library has it. log10 l is uniform; values have Gaussian noise. The prediction
of a target given the context is Gaussian: k' (K + s^2 I)^-1 y and k(x, x) - k' (K + s^2 I)^-1 k +
s^2, by Cholesky factors in float64. Given the length, no forecast's expected likelihood is higher.
Shapes: S tasks, N points, C context, T targets, X axes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stages.errors import DataError
from stages.fields.problems.functions.plans import Array, Kept, Layout, Tasks, Training

PERIOD = 2.0
JITTER = 1e-8  # of the noiseless function, of whose covariance equal points make two rows alike


def _matern(order: int, r: Array) -> Array:
    scaled = np.sqrt(order) * r
    more = {1: 1.0, 3: 1.0 + scaled, 5: 1.0 + scaled + scaled * scaled / 3}[order]
    return np.asarray(more * np.exp(-scaled))


KERNELS: dict[str, Callable[[Array], Array]] = {
    "eq": lambda r: np.exp(-0.5 * r * r),
    "matern12": lambda r: _matern(1, r),
    "matern32": lambda r: _matern(3, r),
    "matern52": lambda r: _matern(5, r),
}
NAMES = (*KERNELS, "periodic")


def covariance(kernel: str, a: Array, b: Array, length: Array) -> Array:
    """k of each pair of points (S, N, X) and (S, M, X), of lengths (S,): (S, N, M)."""
    gap = np.abs(a[:, :, None] - b[:, None])
    length = length[:, None, None]
    if kernel == "periodic":
        return np.asarray(np.exp(-2 * (np.sin(np.pi * gap / PERIOD) ** 2).sum(3) / length))
    return KERNELS[kernel](np.sqrt((gap * gap).sum(3)) / length)


def factor(matrix: Array, kernel: str, length: Array) -> Array:
    """Lower Cholesky factors (S, N, N). DataError names the kernel and the length of the first
    matrix that has none."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(matrix)[:, 0]
        worst = int(least.argmin())
        raise DataError(
            "the covariance is not positive definite",
            where=f"kernel {kernel}, length {length[worst]:.4g}",
            expected="eigenvalues above 0",
            found=f"{least[worst]:.3g}",
            remedy="raise the noise, or have fewer points",
        ) from None


def prediction(
    kernel: str, length: Array, noise: float, x: Array, y: Array, real: Array, targets: Array
) -> tuple[Array, Array]:
    """Mean and standard deviation (S, T) of a measurement at each target, given y (S, C) at x."""
    both = real[:, :, None] & real[:, None]
    among = np.where(both, covariance(kernel, x, x, length), 0.0)
    # a point that is not real is independent of all
    among += np.where(real, noise * noise, 1.0)[:, :, None] * np.eye(x.shape[1])
    cross = np.where(real[:, :, None], covariance(kernel, x, targets, length), 0.0)
    lower = factor(among, kernel, length)
    white = np.linalg.solve(lower, np.concatenate((cross, (y * real)[:, :, None]), 2))
    cross, known = white[:, :, :-1], white[:, :, -1]
    mean = np.einsum("sct,sc->st", cross, known)
    left = np.maximum(1.0 - np.einsum("sct,sct->st", cross, cross), 0.0)
    return mean, np.sqrt(left + noise * noise)


@dataclass(frozen=True)
class GaussianProcess:
    """Tasks of one kernel: log10 of the length from `low` to `high`, `noise` a standard
    deviation."""

    kernel: str
    low: float
    high: float
    noise: float
    layout: Layout

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream; with the exact prediction where they are kept."""
        rng, kept = source.rng(), isinstance(source, Kept)
        length = 10 ** rng.uniform(self.low, self.high, tasks)
        x, real, targets = self.layout.drawn(tasks, rng, not kept)
        places = np.concatenate((x, targets), 1)
        whole = covariance(self.kernel, places, places, length)
        lower = factor(whole + JITTER * np.eye(places.shape[1]), self.kernel, length)
        values = np.einsum("snm,sm->sn", lower, rng.standard_normal(places.shape[:2]))
        values += self.noise * rng.standard_normal(values.shape)
        y, asked = values[:, : x.shape[1]] * real, values[:, x.shape[1] :]
        told = {"length": length}
        exact = self.exact(told, x, y, real, targets) if kept else (None, None)
        return Tasks(x, y[..., None], real, targets, asked[..., None], told, *exact)

    def exact(
        self, function: Mapping[str, Array], x: Array, y: Array, real: Array, targets: Array
    ) -> tuple[Array, Array]:
        """Mean and standard deviation (S, T) at targets, given y (S, C) and the lengths."""
        return prediction(self.kernel, function["length"], self.noise, x, y, real, targets)

    @property
    def prior(self) -> tuple[float, float]:
        """Mean and standard deviation of a value of which nothing is known."""
        return 0.0, float(np.sqrt(1 + self.noise**2))
