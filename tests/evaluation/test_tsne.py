"""t-SNE's divergence against its definition, with widths by a root finder; planted clusters, rows
in another order."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.distance import cdist, pdist, squareform

from stages.errors import DataError, InputError
from stages.sequences.evaluation import tsne

POINTS = np.random.default_rng(0).normal(size=(60, 5)) * [3, 2, 1, 0.5, 0.2]


def joint(points: np.ndarray, perplexity: float) -> np.ndarray:
    """P (n, n): every row's width is the root at which its perplexity is the one asked for."""
    made = np.zeros((len(points), len(points)))
    for row, squared in enumerate(squareform(pdist(points, "sqeuclidean"))):
        far = np.delete(squared, row)

        def law(sharp: float, far: np.ndarray = far) -> np.ndarray:
            p = np.exp(-(far - far.min()) * np.exp(sharp))
            return p / p.sum()

        def excess(sharp: float, law=law) -> float:
            p = law(sharp)
            return -(p * np.log(np.maximum(p, 1e-300))).sum() - np.log(perplexity)

        made[row, np.arange(len(points)) != row] = law(brentq(excess, -40, 40, xtol=1e-14))
    return (made + made.T) / (2 * len(points))


def divergence(p: np.ndarray, plane: np.ndarray) -> float:
    """KL(P||Q) in nats, the sum written out."""
    near = 1 / (1 + cdist(plane, plane, "sqeuclidean"))
    np.fill_diagonal(near, 0)
    one, other = p[p > 0], (near / near.sum())[p > 0]
    return float((one * np.log(one / other)).sum())


def slopes(p: np.ndarray, plane: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The divergence's gradient (n, 2), by differences."""
    found = np.empty(plane.shape)
    for at in np.ndindex(*plane.shape):
        move = np.zeros(plane.shape)
        move[at] = step
        found[at] = (divergence(p, plane + move) - divergence(p, plane - move)) / (2 * step)
    return found


def clusters(count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian clusters in 20 dimensions, ten deviations apart, and whose each point is."""
    rng = np.random.default_rng(1)
    middle = 10 * np.eye(20)[:count]
    return np.concatenate([rng.normal(size=(size, 20)) + one for one in middle]), np.repeat(
        np.arange(count), size
    )


@pytest.mark.parametrize("perplexity", [2.0, 5.0, 19.0])
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_the_divergence_told_is_that_of_the_definition_at_the_perplexity_asked(perplexity, scale):
    plane, left = tsne.project(scale * POINTS, perplexity)
    assert left == pytest.approx(divergence(joint(POINTS, perplexity), plane), rel=1e-3)
    assert left != pytest.approx(divergence(joint(POINTS, 1.1 * perplexity), plane), rel=2e-3)


def test_perplexity_is_a_third_of_the_others_at_most():
    plane, left = tsne.project(POINTS[:31], 30)
    assert left == pytest.approx(divergence(joint(POINTS[:31], 10), plane), rel=1e-3)


def test_it_ends_where_the_divergence_falls_no_more():
    p = joint(POINTS, 10)
    begun = divergence(p, tsne.start(POINTS))
    few, many = (tsne.project(POINTS, 10, steps)[0] for steps in (260, 1000))
    assert divergence(p, many) < 0.3 * divergence(p, few) < 0.3 * begun
    assert np.abs(slopes(p, many)).max() < 0.01 * np.abs(slopes(p, few)).max()


def test_clusters_that_are_well_apart_stay_apart():
    points, whose = clusters(4, 40)
    made, _ = tsne.project(points)
    near = cdist(made, made)
    np.fill_diagonal(near, np.inf)
    assert (whose[near.argsort(1)[:, :20]] == whose[:, None]).mean() > 0.99
    centres = np.stack([made[whose == one].mean(0) for one in range(4)])
    widths = max(
        np.linalg.norm(made[whose == one] - centres[one], axis=1).max() for one in range(4)
    )
    assert pdist(centres).min() > 1.2 * widths


def test_rows_in_another_order_give_the_same_plane_in_that_order():
    order = np.random.default_rng(4).permutation(len(POINTS))
    np.testing.assert_allclose(tsne.start(POINTS[order]), tsne.start(POINTS)[order], atol=1e-12)
    made, other = (tsne.project(points, 10)[0] for points in (POINTS, POINTS[order]))
    np.testing.assert_array_equal(other, made[order])


def test_the_same_points_give_the_same_bytes():
    (made, left), (again, same) = (tsne.project(points, 10) for points in (POINTS, POINTS.copy()))
    assert made.dtype == np.float64 and (made.tobytes(), left) == (again.tobytes(), same)


def test_points_that_coincide_are_laid_out_near_each_other():
    points = np.concatenate([np.repeat(POINTS[:1], 40, 0), POINTS[1:]])
    made, left = tsne.project(points, 10, 300)
    assert np.isfinite(made).all() and 0 < left < 5
    assert np.ptp(made[:40], axis=0).max() < 0.5 * np.ptp(made, axis=0).min()


def test_points_on_a_line_keep_their_order():
    made, left = tsne.project(np.arange(12.0)[:, None], 3)
    assert made.shape == (12, 2) and (np.diff(made[:, 0]) > 0).all() and 0 < left < 1


def test_the_fewest_points_have_a_plane():
    made, left = tsne.project(POINTS[:4])
    assert np.isfinite(made).all() and 0 <= left < 1


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((3, 2)),
        np.zeros((tsne.MOST + 1, 2)),
        np.full((9, 2), np.nan),
        np.zeros(9),
        np.zeros((9, 0)),
        np.ones((9, 2)),
    ],
)
def test_what_cannot_be_laid_out_is_refused(wrong):
    with pytest.raises(DataError):
        tsne.project(wrong)


def test_the_library_is_loaded_only_where_points_are_laid_out():
    code = (
        "import sys; from stages.sequences.evaluation import generations\n"
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_library_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(InputError, match="maps"):
        tsne.project(POINTS)
