"""The compiled tree against brute force of this file's own: the same neighbours, bit for bit, on
all that points can look like."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages import seeds
from stages.errors import InputError
from stages.layers.kernels import machine_code
from stages.neighbours import contract
from stages.neighbours.compiled import Compiled

KINDS = ("smooth", "random", "stationary", "clustered", "duplicated", "far", "flat", "one time")


def cloud(kind: str, count: int, draw: np.random.Generator) -> np.ndarray:
    """Points (count, 4) of one kind."""
    points = draw.normal(size=(count, 4))
    if kind == "smooth":  # runs of 50
        points = (
            points.cumsum(0) / 7 + 10 * draw.normal(size=(-(-count // 50), 4)).repeat(50, 0)[:count]
        )
        points[:, 3] = draw.uniform(0, 3) + np.arange(count) % 50 / 50
    elif kind == "stationary":
        points[:, :3] = points[:1, :3]
    elif kind == "clustered":
        points = points * 1e-4 + draw.integers(0, 3, (count, 4))
    elif kind == "duplicated":
        points = draw.integers(0, 3, (count, 4)).astype(float)
    elif kind == "far":
        points = points + [3e6, -7e5, 1e4, 1.6e9]
    elif kind == "flat":
        points[:, draw.integers(0, 4, 2)] = 0
    elif kind == "one time":
        points[:, 3] = 1
    return points


def brute(points: np.ndarray, queries: np.ndarray, k: int, seen: np.ndarray, scale: np.ndarray):
    """Distances and indices (M, k) in the arrays' own dtype; seen (M, N), scale (M, 4)."""
    gap = queries[:, None] - points
    x, y, z, t = (scale[:, None, axis] * (gap[..., axis] * gap[..., axis]) for axis in range(4))
    square = np.where(seen, ((x + y) + z) + t, np.inf).astype(points.dtype)
    order = np.lexsort((np.broadcast_to(np.arange(len(points)), square.shape), square))[:, :k]
    distance = np.full((len(queries), k), np.inf, points.dtype)
    index = np.full((len(queries), k), -1)
    distance[:, : order.shape[1]] = np.take_along_axis(square, order, 1)
    index[:, : order.shape[1]] = np.where(np.isfinite(distance[:, : order.shape[1]]), order, -1)
    return distance, index


def assert_exact(found: contract.Neighbours, distance: np.ndarray, index: np.ndarray) -> None:
    """Equal bit for bit (+0 and -0 apart)."""
    assert found.square_distance.numpy().dtype == distance.dtype
    np.testing.assert_array_equal(found.index.numpy(), index)
    np.testing.assert_array_equal(found.square_distance.numpy(), distance)
    np.testing.assert_array_equal(found.mask.numpy(), index >= 0)
    assert (
        (found.comparisons.numpy() >= (index >= 0).sum(1)) & (found.comparisons.numpy() >= 0)
    ).all()


@st.composite
def problems(draw):
    """Points, queries, k, window or allowed, scale."""
    stream = seeds.stream(draw(st.integers(0, 1 << 40)), "compiled")
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    count = draw(st.one_of(st.integers(0, 130), st.integers(0, 700)))
    points = cloud(draw(st.sampled_from(KINDS)), count, stream).astype(dtype)
    rows = stream.integers(0, max(count, 1), 12)
    near = (
        points[rows] + draw(st.sampled_from([0, 1e-3, 1])) * stream.normal(size=(12, 4))
        if count
        else stream.normal(size=(12, 4))
    )
    queries = near.astype(dtype)
    weights = {
        "one": np.ones(4),
        "unlike": np.array([1, 1, 4, 9.0]),
        "many": stream.uniform(0, 3, (12, 4)),
        "none": np.zeros(4),
        "some": stream.integers(0, 2, (12, 4)) * 10.0 ** stream.integers(-6, 7, (12, 4)),
        "-0": np.array([-0.0, 1, 1, -0.0]),
    }
    windows = {
        "none": None,
        "0": 0.0,
        "1": 0.7,
        "many": stream.uniform(0, 2, 12),
        "before all": 1e4,
        "allowed": stream.integers(0, count + 1, 12),
    }
    name = draw(st.sampled_from([*windows]))
    return (
        points,
        queries,
        draw(st.sampled_from([1, 2, 16, 40, 1000])),
        name,
        windows[name],
        weights[draw(st.sampled_from([*weights]))].astype(dtype),
    )


@settings(
    max_examples=600,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(problems())
def test_equal_to_brute_force(problem):
    points, queries, k, name, window, scale = problem
    if name == "allowed":
        order = np.lexsort((np.arange(len(points)), points[:, 3]))
        rank = np.argsort(order)
        seen, asked = rank < window[:, None], {"allowed": torch.tensor(window)}
    else:
        latest = np.inf if window is None else queries[:, 3].astype(np.float64) - window
        seen = points[:, 3].astype(np.float64) <= np.broadcast_to(latest, 12)[:, None]
        asked = {"window": torch.tensor(window) if isinstance(window, np.ndarray) else window}
    found = Compiled(torch.tensor(points)).query(
        torch.tensor(queries), k, scale=torch.tensor(scale), **asked
    )
    assert_exact(found, *brute(points, queries, k, seen, np.broadcast_to(scale, (12, 4))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_points_and_the_contracts_own_rounding(dtype):
    """Five steps deep; and one rounding less, as fused operations have, would show."""
    draw = seeds.stream(0, "compiled", "many")
    points, queries = (draw.normal(size=(count, 4)).astype(dtype) for count in (70_000, 20))
    scale = draw.uniform(0, 2, (20, 4)).astype(dtype)
    found = Compiled(torch.tensor(points)).query(
        torch.tensor(queries), 300, 0.5, torch.tensor(scale)
    )
    assert_exact(
        found,
        *brute(
            points, queries, 300, points[:, 3] <= queries[:, 3:].astype(np.float64) - 0.5, scale
        ),
    )
    index = found.index.clamp(min=0)
    own = contract.square_distance(
        torch.tensor(queries)[:, None], torch.tensor(points)[index], torch.tensor(scale)[:, None]
    )
    assert torch.equal(own[found.mask], found.square_distance[found.mask])
    gap = queries.astype(np.longdouble)[:, None] - points[index.numpy()]
    wide = (scale[:, None] * gap**2).sum(-1).astype(dtype)
    assert (wide[found.mask.numpy()] != found.square_distance[found.mask].numpy()).mean() > 0.05


def test_the_number_of_threads_and_the_order_of_queries_change_nothing():
    draw, threads = seeds.stream(0, "compiled", "threads"), torch.get_num_threads()
    points, queries = (
        torch.tensor(draw.integers(0, 9, (count, 4))).float() for count in (5000, 200)
    )
    try:
        torch.set_num_threads(1)
        once = Compiled(points).query(queries, 50, 1.0)
        for count in (2, 5):
            torch.set_num_threads(count)
            again = Compiled(points).query(queries.flip(0), 50, 1.0)
            assert all(torch.equal(a, b.flip(0)) for a, b in zip(once, again, strict=True))
    finally:
        torch.set_num_threads(threads)


def test_causal_queries_look_at_few_points_and_what_comes_later_costs_nothing():
    draw = seeds.stream(0, "compiled", "cost")
    points = torch.tensor(draw.normal(size=(60_000, 4)))
    points[:, 3] = torch.tensor(draw.uniform(0, 60, 60_000)).sort().values

    def searched(count, queries):
        return float(Compiled(points[:count]).query(queries, 8, 0.1).comparisons.double().mean())

    few = searched(1000, points[:1000:10])
    assert few < 400
    assert (
        searched(60_000, points[:1000:10]) < 5 * few
    )  # 59,000 of the points come after the last query
    assert searched(60_000, points[-1000::10]) < 8 * few  # and 59,000 before the first


def test_equal_points_give_the_lowest_indices_and_are_not_all_looked_at():
    found = Compiled(torch.ones(50_000, 4)).query(torch.ones(2, 4), 5)
    assert found.index.tolist() == [[0, 1, 2, 3, 4]] * 2 and not found.square_distance.any()
    assert int(found.comparisons.max()) < 5000


def test_a_window_is_not_rounded_to_the_points_dtype():
    """1 - 1e-9 lies between two float32: the point at 1 is not seen, the one below it is."""
    below = np.nextafter(np.float32(1), np.float32(0))
    points = torch.tensor([[0, 0, 0, 1], [0, 0, 0, below]], dtype=torch.float32)
    assert Compiled(points).query(points[:1], 2, 1e-9).index.tolist() == [[1, -1]]
    assert Compiled(points).query(points[:1], 2, -0.0).index.tolist() == [[0, 1]]


def test_views_and_gradients_do_no_harm():
    draw = seeds.stream(0, "compiled", "views")
    wide = torch.tensor(draw.normal(size=(300, 8)), requires_grad=True)
    points, scale = wide[::3, ::2], torch.ones(4, dtype=torch.float64, requires_grad=True)
    plain = points.detach().contiguous()
    found = Compiled(points).query(points, 3, scale=scale)
    expected = Compiled(plain).query(plain, 3)
    assert all(
        torch.equal(a, b) and not a.requires_grad for a, b in zip(found, expected, strict=True)
    )


def test_units_change_the_tree_and_no_answer():
    points = torch.tensor(seeds.stream(0, "compiled", "units").normal(size=(3000, 4)))
    expected = Compiled(points).query(points[:50], 9, 0.2)
    for units in (torch.tensor([1e-9, 1, 1, 1]), torch.tensor([0, 0, 0, 5.0]), torch.zeros(4)):
        found = Compiled(points, units=units).query(points[:50], 9, 0.2)
        assert torch.equal(found.index, expected.index)
        assert not torch.equal(found.comparisons, expected.comparisons)
    for units in (torch.ones(3), torch.tensor([1, 1, 1, -1.0]), torch.full((4,), torch.nan)):
        with pytest.raises(InputError, match="units"):
            Compiled(points, units=units)


def test_the_base_keeps_ranks_and_refuses_what_is_no_point():
    points = torch.tensor([[0, 0, 0, 2.0], [0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 0]])
    index = Compiled(points)
    assert index.order.tolist() == [3, 1, 0, 2] and index.rank.tolist() == [2, 1, 3, 0]
    assert index.times.tolist() == [0, 1, 2, 2] and index.extent.tolist() == [[0] * 4, [0, 0, 0, 2]]
    for points, words in (
        (torch.zeros(3, 4, device="meta"), "points.cpu"),
        (torch.zeros(1, 4).expand(1 << 31, 4), "stretches"),
        (torch.tensor([[0, 0, 0, 0.0], [0, torch.nan, 0, 0]]), "1 rows of 2"),
        (torch.full((1, 4), torch.inf), "1 rows"),
    ):
        with pytest.raises(InputError, match=words):
            Compiled(points)


def test_where_nothing_can_be_cached_it_is_compiled_all_the_same(monkeypatch):
    asked = []

    def njit(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("no locator available")
        return lambda function: function

    monkeypatch.setattr(machine_code.numba, "njit", njit)
    assert machine_code.compiled(len) is len and asked == [
        {"nogil": True, "cache": True},
        {"nogil": True},
    ]
