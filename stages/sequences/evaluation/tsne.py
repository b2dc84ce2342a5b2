"""Exact t-SNE (van der Maaten and Hinton 2008; thesis, figure 4.4): points on a plane such that
near ones stay near.

Near is told by Gaussian chances p of picking a neighbour, each point's width such that it has
`perplexity` neighbours; on the plane by Student chances q. Gradient descent lessens KL(P||Q), with
momentum, a gain a coordinate, P exaggerated in the first steps and a rate of n / exaggeration
(Belkina et al. 2019). It starts at the first two principal components, so nothing is drawn: the
same points give the same plane, and rows in another order the same plane in that order, until many
steps have made another's rounding visible. Distances between clusters, their sizes and their
densities on the plane say little: it is a picture, not a measure.
Memory: six tables of n x n float64, 48 n² bytes (108 MB at 1500 points, the most allowed). Shapes:
n points, D dimensions.
"""

import numpy as np
from scipy.spatial.distance import cdist

from stages.errors import DataError

MOST = 1500  # points
PERPLEXITY = 30.0
EXAGGERATION, EARLY = 12.0, 0.3  # P times this in the first share of the steps
MOMENTUM = (0.5, 0.8)  # early, later
SPREAD = 1e-4  # deviation of the first coordinate at the start
LEAST = 1e-12  # a chance, in logarithms


def chances(squared: np.ndarray, perplexity: float) -> np.ndarray:
    """p(j|i) (n, n), rows of sum 1 and of entropy log(perplexity), from squared distances (n, n).

    A point with more than `perplexity` others at the same least distance has these as neighbours,
    all alike.
    """
    apart = squared.copy()
    np.fill_diagonal(apart, np.inf)
    apart -= apart.min(1, keepdims=True)  # nothing underflows
    goal, low, high = np.log(perplexity), np.zeros(len(apart)), np.full(len(apart), np.inf)
    sharp = 1 / np.maximum(np.where(np.isfinite(apart), apart, 0).mean(1), LEAST)
    for _ in range(100):
        p = np.exp(-apart * sharp[:, None])
        total = p.sum(1)
        entropy = np.log(total) + sharp * (np.where(p > 0, apart, 0) * p).sum(1) / total
        if np.abs(entropy - goal).max() < 1e-9:
            break
        wide = entropy > goal
        low, high = np.where(wide, sharp, low), np.where(wide, high, sharp)
        sharp = np.where(
            np.isinf(high), np.minimum(sharp * 2, 1e300), (low + np.minimum(high, 1e300)) / 2
        )
    return p / total[:, None]


def affinities(points: np.ndarray, perplexity: float) -> np.ndarray:
    """P (n, n), symmetric, of sum 1, from points (n, D)."""
    one = chances(cdist(points, points, "sqeuclidean"), perplexity)
    return (one + one.T) / (2 * len(one))


def student(made: np.ndarray) -> np.ndarray:
    """1 / (1 + squared distance) (n, n) on the plane (n, 2), 0 on the diagonal; the chances q
    are these over their sum."""
    near = cdist(made, made, "sqeuclidean")
    near += 1
    np.reciprocal(near, out=near)
    np.fill_diagonal(near, 0)
    return near


def divergence(joint: np.ndarray, made: np.ndarray) -> float:
    """KL(P||Q) in nats of P (n, n) and a plane (n, 2)."""
    near = student(made)
    return float(
        (joint * np.log(np.maximum(joint, LEAST) / np.maximum(near / near.sum(), LEAST))).sum()
    )


def gradient(joint: np.ndarray, made: np.ndarray) -> np.ndarray:
    """The gradient (n, 2) of KL(P||Q) by the plane (n, 2): 4 sum_j (p - q)(y_i - y_j) / (1 +
    |y_i - y_j|²)."""
    near = student(made)
    pull = near * (-1 / near.sum())
    pull += joint
    pull *= near
    return 4 * (pull.sum(1)[:, None] * made - pull @ made)


def start(points: np.ndarray) -> np.ndarray:
    """The first two principal components (n, 2), small; each points to where the loading of
    largest size is positive."""
    centred = points - points.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    if not sizes[0] > LEAST * max(np.abs(points).max(), LEAST):
        raise DataError(
            "points that are all the same cannot be laid out",
            expected="two different points or more",
            found=str(points.shape),
        )
    axes = axes[:2] * np.sign(axes[np.arange(len(axes[:2])), np.abs(axes[:2]).argmax(1)])[:, None]
    made = centred @ axes.T
    made = np.pad(made, ((0, 0), (0, 2 - made.shape[1])))
    return made * SPREAD / made[:, 0].std()


def project(
    points: np.ndarray, perplexity: float = PERPLEXITY, steps: int = 500
) -> tuple[np.ndarray, float]:
    """A plane (n, 2) float64 of points (n, D), and its KL(P||Q). Perplexity is a third of the other
    points at most.

    DataError for fewer than 4 points or more than MOST, points that are no finite numbers, or all
    the same.
    """
    points = np.asarray(points, np.float64)
    if (
        points.ndim != 2
        or not 4 <= len(points) <= MOST
        or not points.shape[1]
        or not np.isfinite(points).all()
    ):
        raise DataError(
            "points that t-SNE cannot lay out",
            expected=f"4 to {MOST} of finite numbers",
            found=str(points.shape),
        )
    made = start(points)
    joint = affinities(points, min(perplexity, (len(points) - 1) / 3))
    early, rate = round(EARLY * steps), len(points) / EXAGGERATION
    move, gain, sharp = np.zeros_like(made), np.ones_like(made), joint * EXAGGERATION
    for step in range(steps):
        slope = gradient(sharp if step < early else joint, made)
        gain = np.maximum(np.where(slope * move < 0, gain + 0.2, gain * 0.8), 0.01)
        move = MOMENTUM[step >= early] * move - rate * gain * slope
        made = made + move
        made -= made.mean(0)
    return made, divergence(joint, made)
