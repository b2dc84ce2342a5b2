"""Exact t-SNE (van der Maaten and Hinton 2008; thesis, figure 4.4) by scikit-learn: points on a
plane such that near ones stay near.

It starts at the first two principal components, so nothing is drawn, and it reads the points in
sorted order, for its steps make the rounding of another order visible: the same points give the
same plane, and rows in another order the same plane in that order. Its rate is n / exaggeration
(Belkina et al. 2019): the library's own is 50 or more, at which few points jump past each other.
Distances between clusters, their sizes and their densities on the plane say little: it is a
picture, not a measure. Time and memory grow with the square of the points: 1500, the most allowed,
take some 20 seconds and 90 MB.
Shapes: n points, D dimensions.
"""

import numpy as np

from stages.errors import DataError, InputError

MOST = 1500  # points
PERPLEXITY = 30.0
EXAGGERATION = 12.0  # of P in the first steps
SPREAD = 1e-4  # deviation of the first coordinate at the start
LEAST = 1e-12  # of the largest number: points that differ by less are all the same


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
    points: np.ndarray, perplexity: float = PERPLEXITY, steps: int = 1000
) -> tuple[np.ndarray, float]:
    """A plane (n, 2) float64 of points (n, D), and its KL(P||Q) in nats. Perplexity is a third of
    the other points at most; the steps are more than the first 250, which exaggerate P.

    DataError for fewer than 4 points or more than MOST, points that are no finite numbers, or all
    the same; InputError without scikit-learn.
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
    try:
        from sklearn.manifold import TSNE  # it takes a second to load
    except ImportError:
        raise InputError(
            "t-SNE needs the library scikit-learn",
            found="it is not installed",
            remedy="`pip install -c constraints.txt -e '.[maps]'`",
        ) from None

    order = np.lexsort(points.T)
    law = TSNE(
        perplexity=min(perplexity, (len(points) - 1) / 3),
        max_iter=steps,
        early_exaggeration=EXAGGERATION,
        learning_rate=len(points) / EXAGGERATION,
        init=start(points[order]),
        method="exact",
        random_state=0,
    )
    plane = np.empty((len(points), 2))
    plane[order] = law.fit_transform(points[order])
    return plane, float(law.kl_divergence_)
