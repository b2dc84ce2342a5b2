"""t-SNE against its definitions: widths by a root finder, the gradient by differences, planted
clusters, rows in another order."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.distance import cdist, pdist, squareform

from stages.errors import DataError
from stages.sequences.evaluation import tsne

POINTS = np.random.default_rng(0).normal(size=(60, 5)) * [3, 2, 1, 0.5, 0.2]


def squared(points: np.ndarray) -> np.ndarray:
    return squareform(pdist(points, "sqeuclidean"))


def clusters(count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian clusters in 20 dimensions, ten deviations apart, and whose each point is."""
    rng = np.random.default_rng(1)
    middle = 10 * np.eye(20)[:count]
    return np.concatenate([rng.normal(size=(size, 20)) + one for one in middle]), np.repeat(
        np.arange(count), size
    )


@pytest.mark.parametrize("perplexity", [2.0, 5.0, 19.0])
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_every_row_reaches_the_perplexity(perplexity, scale):
    p = tsne.chances(squared(scale * POINTS), perplexity)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(1)
    np.testing.assert_allclose(np.exp(entropy), perplexity, atol=1e-4)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
    assert (np.diag(p) == 0).all()


def test_a_rows_chances_are_those_of_a_root_finder():
    far = np.delete(squared(POINTS)[7], 7)

    def law(sharp: float) -> np.ndarray:
        p = np.exp(-far * sharp)
        return p / p.sum()

    def apart(sharp: float) -> float:
        p = law(sharp)
        return -(p * np.log(np.maximum(p, 1e-300))).sum() - np.log(12)

    np.testing.assert_allclose(
        np.delete(tsne.chances(squared(POINTS), 12)[7], 7),
        law(brentq(apart, 1e-3, 10, xtol=1e-14)),
        atol=1e-7,
    )


def test_joint_chances_are_symmetric_and_sum_to_one():
    joint = tsne.affinities(POINTS, 10)
    np.testing.assert_array_equal(joint, joint.T)
    assert joint.sum() == pytest.approx(1)


def test_the_gradient_is_that_of_the_divergence_by_finite_differences():
    joint, made = tsne.affinities(POINTS[:12], 3), np.random.default_rng(2).normal(size=(12, 2))
    found, expected, step = tsne.gradient(joint, made), np.empty((12, 2)), 1e-5
    for at in np.ndindex(12, 2):
        move = np.zeros((12, 2))
        move[at] = step
        expected[at] = (
            tsne.divergence(joint, made + move) - tsne.divergence(joint, made - move)
        ) / (2 * step)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_divergence_is_the_sum_written_out():
    joint, made = tsne.affinities(POINTS[:8], 2), np.random.default_rng(3).normal(size=(8, 2))
    q = {
        (i, j): 1 / (1 + ((made[i] - made[j]) ** 2).sum())
        for i in range(8)
        for j in range(8)
        if i != j
    }
    total = sum(q.values())
    assert tsne.divergence(joint, made) == pytest.approx(
        sum(joint[at] * np.log(joint[at] * total / one) for at, one in q.items())
    )


def test_the_divergence_falls_from_the_start_and_with_more_steps():
    begun = tsne.divergence(tsne.affinities(POINTS, 10), tsne.start(POINTS))
    few, many = (tsne.project(POINTS, 10, steps)[1] for steps in (60, 250))
    assert many < few < begun and many < 0.25 * begun


def test_it_ends_where_the_gradient_is_nothing():
    made, _ = tsne.project(POINTS, 10, 1500)
    joint = tsne.affinities(POINTS, 10)
    assert (
        np.abs(tsne.gradient(joint, made)).max()
        < 0.01 * np.abs(tsne.gradient(joint, tsne.project(POINTS, 10, 20)[0])).max()
    )


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
    made, other = (tsne.project(points, 10, 60)[0] for points in (POINTS, POINTS[order]))
    np.testing.assert_allclose(other, made[order], atol=1e-6 * np.abs(made).max())


def test_the_same_points_give_the_same_bytes():
    assert (
        tsne.project(POINTS, 10, 50)[0].tobytes()
        == tsne.project(POINTS.copy(), 10, 50)[0].tobytes()
    )


def test_points_that_coincide_are_laid_out_near_each_other():
    points = np.concatenate([np.repeat(POINTS[:1], 40, 0), POINTS[1:]])
    made, left = tsne.project(points, 10, 300)
    assert np.isfinite(made).all() and np.isfinite(left)
    assert np.ptp(made[:40], axis=0).max() < 0.5 * np.ptp(made, axis=0).min()


def test_points_on_a_line_have_a_plane_too():
    made, _ = tsne.project(np.arange(12.0)[:, None], 3, 50)
    assert made.shape == (12, 2) and np.isfinite(made).all()


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
