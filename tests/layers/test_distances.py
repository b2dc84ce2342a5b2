"""Exact nearest points of padded sets against float64 brute force; ties, masks, too few points,
chunks."""

import numpy as np
import pytest
import torch

from stages import seeds
from stages.layers import distances


def cloud(count, name):
    return seeds.stream(0, "linear", name).normal(size=(2, count, 4)).astype(np.float32)


@pytest.mark.parametrize("chunk", [1, 700, 1 << 22])
@pytest.mark.parametrize("k", [1, 16, 300])
def test_equal_to_brute_force(k, chunk, monkeypatch):
    monkeypatch.setattr(distances, "PAIRS", chunk)
    points, queries = cloud(300, "points"), cloud(40, "queries")
    mask = seeds.stream(0, "linear", "mask").random((2, 300)) < 0.7
    found = distances.nearest(*(torch.tensor(a) for a in (queries, points)), k, torch.tensor(mask))
    square = ((queries[:, :, None].astype(np.float64) - points[:, None]) ** 2).sum(-1)
    square[np.broadcast_to(~mask[:, None], square.shape)] = np.inf
    expected = np.sort(square, -1)[..., :k]
    np.testing.assert_allclose(found.square_distance, expected, rtol=1e-5)
    real = np.isfinite(expected)
    assert (found.index.numpy()[~real] == -1).all() and real.sum(-1).min() == min(
        k, mask.sum(1).min()
    )
    indices = np.where(real, found.index.numpy(), 0)
    np.testing.assert_allclose(
        np.where(real, np.take_along_axis(square, indices, 2), 0),
        np.where(real, expected, 0),
        rtol=1e-5,
    )


def test_ties_go_to_the_lowest_index_and_equal_points_are_at_distance_zero():
    points = torch.zeros(1, 64, 4) + 1e3  # the expanded form would see noise here
    found = distances.nearest(points[:, :1], points, 5)
    assert found.index.tolist() == [[[0, 1, 2, 3, 4]]] and not found.square_distance.any()


def test_no_points_no_queries_and_fewer_than_asked():
    nothing = distances.nearest(torch.zeros(2, 3, 4), torch.zeros(2, 0, 4), 2)
    assert (nothing.index == -1).all() and torch.isinf(nothing.square_distance).all()
    assert distances.nearest(torch.zeros(2, 0, 4), torch.zeros(2, 3, 4), 2).index.shape == (2, 0, 2)
    assert distances.nearest(torch.zeros(1, 1, 4), torch.zeros(1, 1, 4), 3).index.tolist() == [
        [[0, -1, -1]]
    ]
