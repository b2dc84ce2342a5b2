"""The forest's own promises: margins that cover every rounding, trees kept by scale, bounded
candidates; and SciPy's plain way, the yardstick."""

import numpy as np
import pytest
import torch
from clouds import CLOUDS, DTYPES, SCALES, Case, ask, complaint
from scipy.spatial import cKDTree

from stages import seeds
from stages.neighbours import forest
from stages.neighbours.contract import square_distance
from stages.neighbours.forest import Forest
from stages.neighbours.walks import random_points, smoothed_random_walk
from tests.benchmarks.yardstick import expand_and_filter


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.__name__)
def test_the_margins_cover_both_roundings(cloud, dtype):
    """SciPy's distance of a point never exceeds the radius of its contract's distance, nor that
    the reach of SciPy's; both ways every pair."""
    rng = seeds.stream(0, "margins", cloud.__name__)
    points = cloud(rng, 200).astype(dtype)
    for scale in (np.ones(4), np.array([1.0, 0, 0, 3]), *(10.0 ** rng.uniform(-8, 8, (4, 4)))):
        scale = scale.astype(dtype)
        index = Forest(torch.tensor(points), blocks=1)
        trees = index.trees_of(scale)
        scipys = np.sqrt(np.square(trees.scaled(points)[:, None] - trees[0].data).sum(-1))
        ours = (
            square_distance(
                torch.tensor(points)[:, None], torch.tensor(index.table), torch.tensor(scale)
            )
            .double()
            .numpy()
        )
        error = trees.error(points)[:, None]
        assert (scipys <= trees.radius(ours, error)).all() and (
            ours <= trees.reach(scipys, error)
        ).all()
        least = 2 * error.max() + 2 * np.sqrt(trees.tiny)
        assert (
            trees.radius(ours, error) <= scipys * (1 + 1e-4) + least
        ).all()  # and they are hardly wider than needed


@pytest.mark.parametrize("way", ["whole", "no slack", "no error", "no tiny"])
def test_no_margin_can_be_left_out(way, monkeypatch):
    """A search for the 3 nearest of many points that nearly tie is wrong without each of the
    three parts of the margin."""
    rng, wrong = seeds.stream(0, "left out"), 0
    if way == "no slack":
        monkeypatch.setattr(forest, "SLACK", 0.0)
    if way == "no error":
        monkeypatch.setattr(forest._Trees, "error", lambda self, queries: np.zeros(len(queries)))
    for dtype, spread, outlier in (
        (np.float32, 1, 0),
        (np.float64, 1e-6, 1e9),
        (np.float32, 1e-23, 0),
    ):
        for _ in range(20):
            around = rng.normal(size=(60, 4))
            points = (spread * (around / np.linalg.norm(around, axis=1, keepdims=True))).astype(
                dtype
            )  # all as far from the origin
            points[:, 3] = -np.abs(points[:, 3])
            points[0] = [-outlier, -outlier, 0, -spread]
            index = Forest(torch.tensor(points), blocks=4)
            if way == "no tiny":
                index.trees_of(np.ones(4, dtype)).tiny = 0.0
            case = Case(points, np.zeros(60, int), np.zeros((1, 4), dtype), 3, None, 1.0, 0)
            wrong += bool(complaint(ask(index, case), case))
    assert (wrong > 0) == (way != "whole")


def test_trees_are_built_once_a_scale_and_the_last_few_are_kept(monkeypatch):
    points, _ = random_points(400, seeds.stream(0, "kept"))
    index, built = Forest(torch.tensor(points), blocks=4), []
    monkeypatch.setattr(forest, "cKDTree", lambda *a, **k: built.append(1) or cKDTree(*a, **k))

    def ask_scale(scale):
        return index.query(torch.tensor(points[-9:]), 3, 0.0, torch.tensor(scale))

    for _ in range(3):
        ask_scale([1.0, 1, 4, 9])
    assert 1 <= len(built) <= 4 and len(index.trees) == 1
    for number in range(3 * forest.KEPT):
        ask_scale([1.0, 1, 4, float(number)])
    assert len(index.trees) == forest.KEPT


@pytest.mark.parametrize(("pairs", "rows"), [(1, 512), (50, 512), (1 << 22, 1), (50, 3)])
def test_candidates_in_pieces_give_the_same(pairs, rows, monkeypatch):
    monkeypatch.setattr(forest, "PAIRS", pairs)
    monkeypatch.setattr(forest, "ROWS", rows)
    rng = seeds.stream(0, "pieces")
    for cloud in CLOUDS:
        points = cloud(rng, 90).astype(np.float32)
        case = Case(
            points,
            np.zeros(90, int),
            points[::9],
            20,
            0.05,
            SCALES["per query, some zero"](rng, 10),
            0,
        )
        assert not complaint(ask(Forest(torch.tensor(points), blocks=7), case), case)


def test_few_candidates_are_looked_at():
    points, _ = smoothed_random_walk(40, 500, seeds.stream(0, "walk"))
    found = Forest(torch.tensor(points), blocks=16).query(torch.tensor(points[5000::500]), 10, 0.05)
    assert found.mask.all() and found.comparisons.float().mean() < 0.02 * len(points)


@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("scale", [np.ones(4), np.array([1.0, 1, 4, 9])], ids=["iso", "aniso"])
def test_the_yardstick_finds_the_same_up_to_rounding(k, scale):
    points, _ = smoothed_random_walk(10, 200, seeds.stream(0, "yardstick"))
    queries, root = points[::100], np.sqrt(scale)
    times = points[:, 3].astype(float)
    latest = queries[:, 3].astype(float) - 0.05
    distance, index = expand_and_filter(cKDTree(points * root), queries * root, k, times, latest)
    exact = Forest(torch.tensor(points)).query(torch.tensor(queries), k, 0.05, torch.tensor(scale))
    assert ((index >= 0) == exact.mask.numpy()).all() and (
        times[index][index >= 0] <= np.repeat(latest, k)[(index >= 0).ravel()]
    ).all()
    assert not (index >= 0).all() and (distance[:, :-1] <= distance[:, 1:]).all()
    np.testing.assert_allclose(distance, exact.square_distance, rtol=1e-4, atol=1e-9)
    assert expand_and_filter(cKDTree(points[:0]), queries, k, times, latest)[1].max() == -1
