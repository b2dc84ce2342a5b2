"""The printed bound's failures, counted: the counterexample checked by hand, the counts against
a count of our own, one pair at a time."""

import numpy as np
import pytest
import torch

from stages.neighbours import walks
from stages.neighbours.experiment import bound
from stages.neighbours.experiment.sets import PointSet


def walked(count: int, length: int, seed: int = 0, window: float = 0.2) -> PointSet:
    points, trajectory = walks.smoothed_random_walk(count, length, np.random.default_rng(seed))
    queries = torch.from_numpy(
        np.random.default_rng(seed + 1).choice(len(points), 20, replace=False)
    )
    return PointSet("toy", torch.from_numpy(points), torch.from_numpy(trajectory), queries, window)


def test_the_counterexample_is_what_one_reckons_by_hand():
    found = bound.counterexample()
    assert (found["distance_to_line"], found["deviation"], found["true"], found["rival_true"]) == (
        3.0,
        pytest.approx(1.0),
        4.0,
        6.25,
    )
    assert (
        found["printed"] == pytest.approx(3**2 - 1**2)
        and found["printed"] > found["rival_true"] > found["true"]
    )
    assert (
        found["segment"] == pytest.approx((3 - 1) ** 2)
        and found["segment"] <= found["true"]
        and found["box"] == 4.0
    )
    assert found["projection"] == [2.0, 0.0, 0.0] and found["run"][found["nearest"]] == [
        2.0,
        1.0,
        0.0,
        0.0,
    ]


def test_every_point_belongs_to_one_run_of_its_own_trajectory_in_order_of_time():
    points = walked(3, 250)
    segments, run = bound.runs_of(points.points.double(), points.trajectory)
    assert (
        sorted(np.bincount(run.numpy()).tolist()) == sorted([100, 100, 50] * 3)
        and len(segments) == 9
    )
    for number in range(9):
        mine = points.points[run == number, 3]
        assert points.trajectory[run == number].unique().numel() == 1
        others = points.points[
            (points.trajectory == points.trajectory[run == number][0]) & (run != number), 3
        ]
        assert not ((others > mine.min()) & (others < mine.max())).any()


@pytest.mark.parametrize(
    "values, distance, run, k, expected",
    [
        ([0.0, 5.0], [1.0, 4.0, 2.0], [0, 0, 1], 1, False),
        ([0.0, 5.0], [3.0, 4.0, 2.0], [0, 0, 1], 1, True),  # the second run's bound is a lie
        ([0.0, 2.0], [3.0, 4.0, 2.0], [0, 0, 1], 1, False),
        ([0.0, 3.0], [3.0, 4.0, 2.0], [0, 0, 1], 1, False),  # as far: still read
        ([0.0, 9.0], [3.0, 4.0, 2.0], [0, 0, 1], 3, False),
        ([0.0, 9.0], [3.0, 4.0, 2.0], [0, 0, 1], 9, False),  # all are wanted
        ([0.0, 9.0], [3.0, 4.0, 2.0], [0, 0, 1], 2, True),
        ([7.0, 0.0, 8.0], [1.0, 6.0, 5.0], [0, 1, 2], 1, True),
    ],
)
def test_a_search_that_believes_a_bound_stops_where_it_says(values, distance, run, k, expected):
    assert bound.lost(np.array(values), np.array(distance), np.array(run), k) is expected


def printed(points: np.ndarray, query: np.ndarray, scale: np.ndarray) -> float:
    """Algorithm 1 on one run of points in order of time, in plain NumPy."""
    a, b = points[0, :3], points[-1, :3]

    def foot(p):
        return a + np.clip((p - a) @ (b - a) / max((b - a) @ (b - a), 1e-300), 0, 1) * (b - a)

    deviation = max(((p[:3] - foot(p[:3])) ** 2).sum() for p in points)
    gap = (query[:3] - foot(query[:3])) ** 2 @ scale[:3] + scale[3] * max(
        query[3] - points[:, 3].max(), 0
    ) ** 2
    return max(0.0, gap - scale[:3].max() * deviation)


@pytest.mark.parametrize("arm, weights", [("iso", (1, 1, 1, 1)), ("aniso", (1, 1, 4, 9))])
def test_counts_are_those_of_one_pair_at_a_time_and_the_mended_bounds_never_fail(arm, weights):
    given, scale = walked(6, 220), np.array(weights, float)
    points, (_, run) = (
        given.points.double().numpy(),
        bound.runs_of(given.points.double(), given.trajectory),
    )
    pairs = above = wrong = asked = 0
    for query in points[given.queries.numpy()]:
        seen = points[:, 3] <= query[3] - given.window
        if not seen.any():
            continue
        said, asked = {}, asked + 1
        distance = ((points - query) ** 2 * scale).sum(1)
        for number in np.unique(run.numpy()[seen]):
            mine = np.flatnonzero(run.numpy() == number)
            said[number] = printed(points[mine[np.argsort(points[mine, 3])]], query, scale)
            pairs = pairs + 1
            above = above + bool(said[number] > distance[mine[seen[mine]]].min() * (1 + 1e-9))
        kept = []
        for number in sorted(said, key=said.get):
            if len(kept) >= 30 and said[number] > sorted(kept)[29]:
                break
            kept += distance[seen & (run.numpy() == number)].tolist()
        wrong += not np.allclose(sorted(kept)[:30], np.sort(distance[seen])[:30])
    found = bound.counted(given, 30)["scales"][arm]
    assert (found["pairs"], found["queries"], found["above"]["printed"], found["wrong"]) == (
        pairs,
        asked,
        above,
        wrong,
    )
    assert above > 0 and found["above"]["segment"] == found["above"]["box"] == 0


def test_a_query_that_sees_nothing_is_not_counted():
    given = walked(2, 100, window=100.0)
    assert bound.counted(given, 5)["scales"]["iso"] == {
        "pairs": 0,
        "queries": 0,
        "above": {"printed": 0, "segment": 0, "box": 0},
        "wrong": 0,
    }
