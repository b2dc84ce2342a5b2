"""The benchmark's point sets are what their description says, measured on the sets themselves."""

import numpy as np
import pytest

from stages import seeds
from stages.neighbours.walks import SMOOTHING, STRAY, random_points, smoothed_random_walk


@pytest.fixture(scope="module")
def walk():
    return smoothed_random_walk(300, 400, seeds.stream(0, "walk"))


def paths(walk):
    """The walks one by one, (trajectories, points, 4), each in order of time."""
    points, trajectory = walk
    return points[np.argsort(trajectory, kind="stable")].reshape(300, 400, 4).astype(float)


def test_shapes_types_and_order(walk):
    points, trajectory = walk
    assert (
        points.shape == (120_000, 4) and points.dtype == np.float32 and trajectory.dtype == np.int64
    )
    assert (np.bincount(trajectory) == 400).all() and (np.diff(points[:, 3]) >= 0).all()
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(points.std(0), 1, atol=1e-3)


def test_a_walk_lasts_a_tenth_of_the_starts_range(walk):
    times = paths(walk)[..., 3]
    lasting, starts = np.ptp(times, axis=1), np.ptp(times[:, 0])
    np.testing.assert_allclose(lasting, lasting.mean(), rtol=1e-4)
    assert lasting.mean() / starts == pytest.approx(0.1 / 0.9, rel=0.02)
    np.testing.assert_allclose(np.diff(times, axis=1), lasting.mean() / 399, rtol=0.05)


def test_velocities_are_a_box_mean_of_independent_ones(walk):
    """Their correlation falls in a straight line and is gone after SMOOTHING steps."""
    steps = np.diff(paths(walk)[..., :3], axis=1)
    for lag in (0, 10, 25, 40, 50, 80):
        product = (steps[:, : steps.shape[1] - lag] * steps[:, lag:]).mean() / (steps**2).mean()
        assert product == pytest.approx(max(0, 1 - lag / SMOOTHING), abs=0.05)


def test_walks_start_all_over_a_box_and_stray_by_its_half(walk):
    space = paths(walk)[..., :3]
    starts, strays = space[:, 0], space[:, -1] - space[:, 0]
    box = np.ptp(starts, axis=0)  # the widest of 300 uniform starts: nearly the box
    assert (strays.std(0) / box == pytest.approx(STRAY, rel=0.2)) and np.abs(
        np.histogram(starts[:, 0], 4)[0] - 75
    ).max() < 35


def test_the_same_stream_gives_the_same_walk(walk):
    again = smoothed_random_walk(300, 400, seeds.stream(0, "walk"))
    assert all((one == other).all() for one, other in zip(walk, again, strict=True))


def test_random_points_have_no_order():
    points, trajectory = random_points(20_000, seeds.stream(0, "random"), group=500)
    assert (
        points.dtype == np.float32
        and trajectory.dtype == np.int64
        and (np.bincount(trajectory) == 500).all()
    )
    assert (np.diff(points[:, 3]) >= 0).all()
    np.testing.assert_allclose(np.cov(points.T), np.eye(4), atol=0.05)
    means = np.array([points[trajectory == number].mean(0) for number in range(40)])
    assert np.abs(means).max() < 5 / np.sqrt(500)  # a group is spread like the whole, in time too
    assert len(np.unique(random_points(1001, seeds.stream(0, "rest"))[1])) == 3
