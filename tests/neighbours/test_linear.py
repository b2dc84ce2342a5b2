"""What `Linear` adds to test_methods.py: pieces of the prefix, and choices among candidates."""

import clouds
import numpy as np
import pytest
import torch

from stages import seeds
from stages.neighbours import linear


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
