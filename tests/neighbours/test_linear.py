"""Linear search against float64 brute force; ties, masks, too few points, chunks; what `Linear`
adds to test_methods.py."""

import clouds
import numpy as np
import pytest
import torch

from stages import seeds
from stages.neighbours import linear


def cloud(count, name):
    return seeds.stream(0, "linear", name).normal(size=(2, count, 4)).astype(np.float32)


@pytest.mark.parametrize("chunk", [1, 700, 1 << 22])
@pytest.mark.parametrize("k", [1, 16, 300])
def test_equal_to_brute_force(k, chunk, monkeypatch):
    monkeypatch.setattr(linear, "PAIRS", chunk)
    points, queries = cloud(300, "points"), cloud(40, "queries")
    mask = seeds.stream(0, "linear", "mask").random((2, 300)) < 0.7
    found = linear.nearest(*(torch.tensor(a) for a in (queries, points)), k, torch.tensor(mask))
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
    found = linear.nearest(points[:, :1], points, 5)
    assert found.index.tolist() == [[[0, 1, 2, 3, 4]]] and not found.square_distance.any()


def test_no_points_no_queries_and_fewer_than_asked():
    nothing = linear.nearest(torch.zeros(2, 3, 4), torch.zeros(2, 0, 4), 2)
    assert (nothing.index == -1).all() and torch.isinf(nothing.square_distance).all()
    assert linear.nearest(torch.zeros(2, 0, 4), torch.zeros(2, 3, 4), 2).index.shape == (2, 0, 2)
    assert linear.nearest(torch.zeros(1, 1, 4), torch.zeros(1, 1, 4), 3).index.tolist() == [
        [[0, -1, -1]]
    ]


@pytest.mark.parametrize("held", [4, 40, 1000])
@pytest.mark.parametrize("cloud", ["smooth", "integers", "magnitudes"])
def test_the_prefix_in_pieces_is_the_prefix_and_no_piece_is_larger_than_allowed(
    cloud, held, monkeypatch
):
    rng, sizes, computed = seeds.stream(0, "linear", cloud), [], linear._columns_distance
    monkeypatch.setitem(linear.HELD, "cpu", held)
    monkeypatch.setattr(
        linear,
        "_columns_distance",
        lambda *a: sizes.append((square := computed(*a)).numel()) or square,
    )
    points = getattr(clouds, cloud)(rng, 300).astype(np.float32)
    case = clouds.Case(
        points, np.zeros(300, int), points[::20], 12, 0.1, np.array([1.0, 1, 4, 9]), 0
    )
    found = clouds.ask(linear.Linear(torch.tensor(points)), case)
    assert not clouds.complaint(found, case) and max(sizes) <= held
    allowed = (points[:, 3] <= points[::20, 3, None].astype(float) - 0.1).sum(1)
    assert found.comparisons.tolist() == allowed.tolist()


@pytest.mark.parametrize("width", [1, 7, 40, 5000])
@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("values", [2, 50, 10**6])
def test_the_smallest_by_distance_and_index(values, k, width):
    """From two values, ties everywhere, to none; some infinite; 5,000 columns are narrowed to
    groups before they are compared."""
    rng = seeds.stream(0, "smallest", values, k, width)
    distance = rng.integers(0, values, (6, width)).astype(np.float32)
    distance[rng.random((6, width)) < 0.1] = np.inf
    distance[0] = np.inf
    distance[1, 1:] = 0.5
    index = np.stack([rng.permutation(width) for _ in range(6)])
    near, which = linear.ordered(*linear.smallest(torch.tensor(distance), torch.tensor(index), k))
    for row in range(6):
        order = np.lexsort((index[row], distance[row]))[:k]
        order = order[np.isfinite(distance[row, order])]
        missing = k - len(order)
        assert near[row].tolist() == [*distance[row, order].tolist(), *[np.inf] * missing]
        assert which[row].tolist() == [*index[row, order].tolist(), *[-1] * missing]
