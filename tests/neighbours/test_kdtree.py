"""The k-d tree's own promises: balanced leaves, true boxes, few points looked at, none that is
not seen; its answers stand in test_methods.py."""

import numpy as np
import pytest
import torch
from clouds import CLOUDS

from stages import seeds
from stages.neighbours.kdtree import KDTree
from stages.neighbours.walks import smoothed_random_walk


@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.__name__)
@pytest.mark.parametrize(
    ("count", "leaf"), [(1, 1), (2, 1), (3, 1), (97, 10), (128, 16), (1000, 100)]
)
def test_leaves_share_the_points_and_boxes_hold_them(cloud, count, leaf):
    points = cloud(seeds.stream(0, "kdtree"), count).astype(np.float32)
    tree = KDTree(torch.tensor(points), leaf=leaf)
    sizes, first = np.diff(tree.edges), tree.first_leaf
    assert (
        sorted(tree.index.tolist()) == list(range(count))
        and sizes.max() <= leaf + 1
        and np.ptp(sizes) <= 1
        and len(sizes) == first + 1
    )
    for number, (start, stop) in enumerate(zip(tree.edges[:-1], tree.edges[1:], strict=True)):
        inside, ranks = points[tree.index[start:stop]], tree.rank.numpy()[tree.index[start:stop]]
        assert (tree.low[:, first + number] == inside.min(0)).all() and (
            tree.high[:, first + number] == inside.max(0)
        ).all()
        assert (np.diff(ranks) > 0).all() and tree.earliest[first + number] == ranks[0]
    for node in range(first):
        children = slice(2 * node + 1, 2 * node + 3)
        assert (tree.low[:, node] == tree.low[:, children].min(1)).all() and (
            tree.high[:, node] == tree.high[:, children].max(1)
        ).all()
        assert tree.earliest[node] == tree.earliest[children].min()


def test_a_leaf_is_cut_where_the_points_are_widest():
    points = torch.zeros(64, 4)
    points[:, 2] = torch.arange(64) * 3.0
    points[:, 0] = torch.arange(64) % 2
    tree = KDTree(points, leaf=16)
    assert tree.low[2, tree.first_leaf :].tolist() == [0, 48, 96, 144]


def test_few_points_are_looked_at_and_only_those_seen():
    points, trajectory = smoothed_random_walk(40, 500, seeds.stream(0, "walk"))
    tree = KDTree(torch.tensor(points), torch.tensor(trajectory), leaf=50)
    queries = torch.tensor(points[5000::500])
    plain = tree.query(queries, 10, None).comparisons
    masked = tree.query(queries, 10, 0.05)
    assert plain.float().mean() < 0.05 * len(points)
    allowed = torch.tensor((points[:, 3] <= points[5000::500, 3, None] - 0.05).sum(1))
    assert (masked.comparisons <= allowed).all() and (
        masked.comparisons >= masked.mask.sum(1)
    ).all()


def test_all_leaves_are_read_where_every_point_ties():
    tree = KDTree(torch.ones(1000, 4), leaf=10)
    assert tree.query(torch.zeros(1, 4), 3, None).comparisons.tolist() == [1000]
