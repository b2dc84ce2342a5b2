"""Point sets on which searches for neighbours are compared (thesis section 1.4.2).

Two extremes: trajectories that fill space smoothly, which segments fit well, and points without any
order, which they do not fit. Both come sorted by time, as a recording is. Shapes: N points; columns
x, y, z, t, standardised, without unit.
"""

import numpy as np

SMOOTHING = 50  # steps over which a velocity is averaged
# how far a walk strays from its start (standard deviation per axis), in sides of the box of starts
STRAY = 0.5


def smoothed_random_walk(
    trajectories: int, points: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """`trajectories` walks of `points` points each: positions (N, 4) float32 and whose they are
    (N,) int64.

    Positions add up Gaussian velocities averaged over SMOOTHING steps, from starts uniform in the
    unit box; times run 0.1 from starts uniform in [0, 0.9]. The documents leave the walks' length
    to the reader: STRAY is ours. All four columns are standardised at last.
    """
    table: np.ndarray = np.empty((trajectories, points, 4))
    noise = rng.normal(size=(trajectories, points + SMOOTHING - 1, 3)).cumsum(1)
    velocities = (
        noise[:, SMOOTHING - 1 :] - np.pad(noise, ((0, 0), (1, 0), (0, 0)))[:, :points]
    ) / SMOOTHING
    table[..., :3] = rng.uniform(size=(trajectories, 1, 3)) + velocities.cumsum(
        1
    ) * STRAY / np.sqrt(points)
    table[..., 3] = rng.uniform(0, 0.9, size=(trajectories, 1)) + np.linspace(0, 0.1, points)
    table = table.reshape(-1, 4)
    return _in_time(
        (table - table.mean(0)) / table.std(0), np.repeat(np.arange(trajectories), points)
    )


def random_points(
    count: int, rng: np.random.Generator, group: int = 500
) -> tuple[np.ndarray, np.ndarray]:
    """`count` points of N(0, I) in four dimensions, (N, 4) float32, put at random into trajectories
    of `group` points, (N,) int64.

    The thesis takes such points as measured simultaneously. A causal query would then see all of
    them or none, so time is drawn like the other axes here; ask with `window=None` for its case.
    """
    return _in_time(rng.normal(size=(count, 4)), rng.permutation(np.arange(count) // group))


def _in_time(points: np.ndarray, trajectory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    points = points.astype(np.float32)
    order = np.argsort(points[:, 3], kind="stable")
    return points[order], trajectory[order]
