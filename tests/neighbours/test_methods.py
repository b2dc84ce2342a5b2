"""Every search of METHODS against brute force, bit for bit, on hostile points; the edge cases by
name; and wrong searches are caught."""

import numpy as np
import pytest
import torch
from clouds import CLOUDS, WINDOWS, Case, as_tensor, ask, brute_force, cases, complaint
from hypothesis import HealthCheck, Phase, given, settings

from stages import seeds
from stages.errors import InputError
from stages.neighbours.linear import Linear
from stages.neighbours.methods import METHODS, build

# Each method's own options, the default first; small ones give many parts to few points.
OPTIONS = {
    "linear": [{}],
    "kdtree": [{}, {"leaf": 1}, {"leaf": 5}],
    "forest": [{}, {"blocks": 1}, {"blocks": 5}, {"blocks": 1000}],
    "trajectory": [{}, {"segment": 1}, {"segment": 5, "fetch": 1}, {"segment": 7, "fetch": 3}],
    "boxes": [{}, {"leaf": 8}, {"leaf": 16}],
    "compiled": [{}],
}
EXAMPLES = {method: 150 if method == "kdtree" else 230 for method in OPTIONS}
every = pytest.mark.parametrize("method", METHODS)


def generated(count):
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[phase for phase in Phase if phase is not Phase.explain],
    )


def made(method, case, **options):
    return build(method, torch.tensor(case.points), torch.tensor(case.trajectory), **options)


def wrong(method, case, **options):
    """What is wrong with a method's answer, in words; nothing when it is brute force's."""
    return complaint(ask(made(method, case, **options), case), case)


def some(cloud="random", n=60, m=6, k=5, window=0.0, scale=1.0, dtype=np.float32):
    """One plain case, the same every time."""
    rng = seeds.stream(0, "methods", cloud, n, m)
    points = next(c for c in CLOUDS if c.__name__ == cloud)(rng, n).astype(dtype)
    queries = points[rng.integers(0, n, m)] if n else rng.normal(size=(m, 4)).astype(dtype)
    return Case(points, np.arange(n) // 7, queries, k, window, scale, 0)


@every
def test_equal_to_brute_force_in_every_bit(method):
    """1,300 cases over all methods, the same in every run."""
    asked = []

    @generated(EXAMPLES[method])
    @given(case=cases())
    def run(case):
        asked.append(case)
        assert not wrong(method, case, **OPTIONS[method][case.pick % len(OPTIONS[method])])

    run()
    assert len(asked) >= EXAMPLES[method]


@every
def test_equal_to_brute_force_on_more_points(method):
    """Enough points for every method to have several levels, blocks and rounds with its own
    defaults."""

    @generated(20)
    @given(case=cases(most=3000))
    def run(case):
        assert not wrong(method, case)

    run()


@every
@pytest.mark.parametrize("cloud", ["random", "integers"])
def test_fewer_points_than_asked_are_marked(method, cloud):
    case = some(cloud, n=20, k=30, window=None)
    found = ask(made(method, case), case)
    assert found.mask.sum(1).tolist() == [20] * 6 and found.mask[:, :20].all()
    assert (found.index[:, 20:] == -1).all() and torch.isinf(found.square_distance[:, 20:]).all()
    assert not wrong(method, case)


@every
def test_a_query_before_all_data_sees_nothing(method):
    case = some()
    case.queries[::2, 3] = case.points[:, 3].min() - 1
    found = ask(made(method, case), case)
    assert (
        not found.mask[::2].any()
        and (found.index[::2] == -1).all()
        and torch.isinf(found.square_distance[::2]).all()
    )
    assert found.mask[1::2].any() and not complaint(found, case)


@every
def test_an_index_without_points_and_a_query_of_none(method):
    nothing = build(method, torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)).query(
        torch.zeros(3, 4), 2
    )
    assert (
        nothing.index.tolist() == [[-1, -1]] * 3
        and torch.isinf(nothing.square_distance).all()
        and not nothing.mask.any()
    )
    assert nothing.comparisons.tolist() == [0, 0, 0]
    silent = made(method, some()).query(torch.zeros(0, 4), 2)
    assert [tuple(part.shape) for part in silent] == [(0, 2)] * 3 + [(0,)]


@every
@pytest.mark.parametrize("count", [1, 2, 60])
def test_trajectories_of_one_point(method, count):
    case = some(n=count, window=None)
    assert not wrong(method, case._replace(trajectory=np.arange(count)))


@every
@pytest.mark.parametrize("cloud", ["stationary", "one_place_and_time", "simultaneous", "collinear"])
@pytest.mark.parametrize(
    "scale", [1.0, np.array([1.0, 1, 4, 9]), 0.0], ids=["iso", "aniso", "zero"]
)
def test_aircraft_that_do_not_move(method, cloud, scale):
    for options in OPTIONS[method]:
        assert not wrong(method, some(cloud, n=150, k=20, window=None, scale=scale), **options)


@every
def test_ties_go_to_the_lowest_index_and_no_point_stands_there_twice(method):
    """300 equal points, cut by every method into parts, and one nearer: the first places go to
    it and to the lowest indices."""
    points = torch.ones(301, 4)
    points[123] = 0.5
    for options in OPTIONS[method]:
        found = build(method, points, torch.arange(301) // 7, **options).query(
            torch.zeros(2, 4), 50, window=None
        )
        assert (
            found.index.tolist() == [[123, *range(49)]] * 2
            and found.square_distance[0].tolist() == [1.0] + [4.0] * 49
        )
    everything = build(method, points).query(torch.zeros(1, 4), 400, window=None)
    assert sorted(everything.index[0].tolist()) == [-1] * 99 + list(range(301))


@every
def test_a_scale_for_every_query_is_that_query_asked_alone(method):
    scale = seeds.stream(0, "scales").uniform(0, 4, (6, 4))
    scale[2, 1:3] = 0
    case = some(scale=scale)
    index = made(method, case)
    together = ask(index, case)
    for row in range(6):
        alone = index.query(
            torch.tensor(case.queries[row : row + 1]), 5, 0.0, torch.tensor(scale[row])
        )
        assert all(
            torch.equal(one[row], other[0])
            for one, other in zip(together[:3], alone[:3], strict=True)
        )
    assert not complaint(together, case)


@every
def test_a_new_scale_needs_no_new_index(method):
    case = some("smooth", n=200)
    kept = made(method, case)
    for number in range(8):
        scale = 10.0 ** seeds.stream(number, "scales").uniform(-3, 3, 4)
        again = ask(made(method, case), case._replace(scale=scale))
        assert all(
            torch.equal(one, other)
            for one, other in zip(ask(kept, case._replace(scale=scale))[:3], again[:3], strict=True)
        )
    assert not complaint(ask(kept, case), case)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_window_includes_the_point_that_lies_on_it(method, dtype):
    points = np.zeros((4, 4), dtype)
    points[:, 3] = [3, 1, 2, 4]
    queries = np.repeat(np.array([[0, 0, 0, 4]], dtype), 3, 0)
    below = np.nextafter(2.0, 3)  # 4 - below is just under 2
    found = build(method, torch.tensor(points)).query(
        torch.tensor(queries), 4, torch.tensor([2.0, below, 0.0], dtype=torch.float64)
    )
    assert found.index.tolist() == [[2, 1, -1, -1], [1, -1, -1, -1], [3, 0, 2, 1]]


@every
def test_a_number_of_points_seen_stands_for_the_window(method):
    case = some("integers", k=60)
    allowed = torch.tensor([0, 1, 7, 30, 60, 99])
    found = made(method, case).query(torch.tensor(case.queries), 60, allowed=allowed)
    assert found.mask.sum(1).tolist() == [0, 1, 7, 30, 60, 60]
    first = np.argsort(case.points[:, 3], kind="stable")
    assert [set(row[row >= 0].tolist()) for row in found.index] == [
        set(first[:count].tolist()) for count in (0, 1, 7, 30, 60, 60)
    ]


@every
def test_queries_between_batches_do_not_matter(method):
    case = some(n=200, m=40, window=WINDOWS["per query"](seeds.stream(0, "windows"), 40))
    index = made(method, case)
    together = ask(index, case)
    turned = ask(
        index, case._replace(queries=case.queries[::-1].copy(), window=case.window[::-1].copy())
    )
    assert all(
        torch.equal(one, other.flip(0)) for one, other in zip(together[:3], turned[:3], strict=True)
    )


@every
def test_what_carries_a_gradient_can_be_searched(method):
    case = some()
    index = build(method, torch.tensor(case.points).requires_grad_())
    found = index.query(
        torch.tensor(case.queries).requires_grad_(), 5, 0.0, torch.ones(4).requires_grad_()
    )
    assert not found.square_distance.requires_grad and not complaint(found, case)


@every
@pytest.mark.parametrize(
    "points",
    [
        torch.zeros(3, 3),
        torch.zeros(4),
        torch.zeros(3, 4, dtype=torch.int64),
        torch.zeros(3, 4, dtype=torch.float16),
        torch.tensor([[0, 0, 0, torch.nan]]),
        torch.tensor([[0, torch.inf, 0, 0]]),
    ],
    ids=["three columns", "one row", "integers", "half", "not a number", "infinite"],
)
def test_points_that_are_none_are_refused(method, points):
    with pytest.raises(InputError, match="points to index"):
        build(method, points)


@every
@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("queries do not fit", {"queries": torch.zeros(2, 3)}),
        ("queries do not fit", {"queries": torch.zeros(2, 4, dtype=torch.float64)}),
        ("not all finite", {"queries": torch.tensor([[0.0, 0, torch.nan, 0]])}),
        ("k is not", {"k": 0}),
        ("k is not", {"k": True}),
        ("window", {"window": -0.1}),
        ("window", {"window": torch.zeros(3)}),
        ("window", {"window": torch.nan}),
        ("`allowed`", {"allowed": torch.zeros(2)}),
        ("scale does not fit", {"scale": torch.ones(3)}),
        ("scale is negative", {"scale": -1.0}),
        ("scale is negative", {"scale": torch.inf}),
        ("overflow", {"scale": 3e38}),
        ("overflow", {"queries": torch.full((1, 4), 1e20)}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_questions_that_are_none_are_refused(method, words, asked):
    case = some()
    with pytest.raises(InputError, match=words):
        made(method, case).query(**{"queries": torch.tensor(case.queries[:2]), "k": 2} | asked)


def test_unknown_words_are_refused_with_the_nearest_known():
    with pytest.raises(InputError, match="'forest'"):
        build("forrest", torch.zeros(1, 4))
    with pytest.raises(InputError, match="'leaf'"):
        build("kdtree", torch.zeros(1, 4), leafs=3)
    for method, options in (("kdtree", {"leaf": 0}), ("forest", {"blocks": 0})):
        with pytest.raises(InputError):
            build(method, torch.zeros(1, 4), **options)


class _Strayed(Linear):
    """Searches that are nearly right, each wrong in one way."""

    def __init__(self, points, trajectory, way):
        super().__init__(points, trajectory)
        self.way = way

    def _search(self, queries, k, scale, allowed):
        if self.way == "sees one point more":
            allowed = (allowed + 1).clamp(max=len(self.points))
        found = super()._search(queries, k, scale, allowed)
        if self.way == "rounds once less":
            found.square_distance[:] = (found.square_distance.double() * (1 + 2.0**-24)).to(
                self.points.dtype
            )
        if self.way == "ties the other way":
            order = torch.argsort(-found.index, dim=1)
            by_distance = torch.argsort(found.square_distance.gather(1, order), dim=1, stable=True)
            found.index[:] = found.index.gather(1, order).gather(1, by_distance)
        if self.way == "loses the last" and k > 1:
            found.index[:, -1], found.mask[:, -1], found.square_distance[:, -1] = (
                -1,
                False,
                torch.inf,
            )
        if self.way == "pads with copies":
            found.index[:] = torch.where(found.mask, found.index, found.index[:, :1])
        return found


@pytest.mark.parametrize(
    "way",
    [
        "sees one point more",
        "rounds once less",
        "ties the other way",
        "loses the last",
        "pads with copies",
        "is right",
    ],
)
def test_a_wrong_search_is_caught(way):
    caught = []

    @generated(60)
    @given(case=cases())
    def run(case):
        index = _Strayed(torch.tensor(case.points), torch.tensor(case.trajectory), way)
        caught.append(bool(complaint(ask(index, case), case)))

    run()
    assert any(caught) == (way != "is right")


def test_the_brute_force_knows_a_case_by_hand():
    """Four points on a line, weighted 1, 4: what a reader can work out."""
    points = np.array([[0, 0, 0, 0], [1, 0, 0, 1], [0, 2, 0, 2], [5, 0, 0, 3]], np.float32)
    case = Case(
        points,
        np.zeros(4, int),
        np.array([[0, 0, 0, 2.5]], np.float32),
        3,
        0.5,
        np.array([1.0, 4, 1, 0]),
        0,
    )
    distance, index = brute_force(case)
    assert distance.tolist() == [[0, 1, 16]] and index.tolist() == [[0, 1, 2]]
    assert as_tensor(None) is None and not complaint(ask(made("linear", case), case), case)
