"""The boxes' own promises: exact however small their parts are, true bounds without slack, few
points looked at, memory bounded."""

import itertools

import numpy as np
import pytest
import torch
from clouds import CLOUDS, DTYPES, SCALES, Case, ask, brute_force, cases, complaint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages import seeds
from stages.errors import InputError
from stages.neighbours import boxes
from stages.neighbours.boxes import Boxes
from stages.neighbours.contract import square_distance
from stages.neighbours.walks import random_points, smoothed_random_walk

# Sizes at which a hundred points make many blocks, levels, rounds, halved batches and poor radii;
# the last is as shipped.
SIZES = [
    {
        "BLOCK": 40,
        "ROOTS": 4,
        "CHILDREN": 1,
        "SEEDS": 1,
        "MORE": 1,
        "POOR": 1,
        "HELD": {"cpu": 64},
        "SLICE": {"cpu": 16},
    },
    {
        "BLOCK": 16,
        "ROOTS": 1,
        "CHILDREN": 2,
        "SEEDS": 2,
        "MORE": 1,
        "POOR": 2,
        "HELD": {"cpu": 200},
        "SLICE": {"cpu": 8},
    },
    {
        "BLOCK": 1 << 20,
        "ROOTS": 2,
        "CHILDREN": 1,
        "SEEDS": 1,
        "MORE": 0,
        "POOR": 1,
        "HELD": {"cpu": 1 << 20},
        "SLICE": {"cpu": 4},
    },
    {},
]


def generated(count):
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


def resize(monkeypatch, sizes):
    for name, value in sizes.items():
        monkeypatch.setattr(boxes, name, value)


@pytest.mark.parametrize("sizes", SIZES, ids=["small", "smaller", "deep", "as shipped"])
def test_equal_to_brute_force_whatever_the_sizes_of_the_parts(sizes, monkeypatch):
    """4 x 130 cases, bit for bit: distances, indices, masks."""
    resize(monkeypatch, sizes)
    asked = []

    @generated(130)
    @given(case=cases(), leaf=st.sampled_from([1, 2, 3, 8, 32]))
    def run(case, leaf):
        asked.append(case)
        problem = complaint(ask(Boxes(torch.tensor(case.points), leaf=leaf), case), case)
        assert not problem, problem

    run()
    assert len(asked) >= 130


@pytest.mark.parametrize("sizes", SIZES[1:], ids=["smaller", "deep", "as shipped"])
def test_equal_to_brute_force_when_what_a_query_sees_is_counted(sizes, monkeypatch):
    """A count may part points measured at the same time; then the first in the order of points
    are seen."""
    resize(monkeypatch, sizes)

    @generated(40)
    @given(case=cases(), numbers=st.integers(0, 2**32 - 1))
    def run(case, numbers):
        allowed = np.random.default_rng(numbers).integers(
            0, len(case.points) + 2, len(case.queries)
        )
        found = Boxes(torch.tensor(case.points), leaf=4).query(
            torch.tensor(case.queries),
            case.k,
            scale=torch.as_tensor(case.scale),
            allowed=torch.tensor(allowed),
        )
        ranked = np.argsort(case.points[:, 3], kind="stable")
        for row, count in enumerate(allowed):
            seen = np.sort(ranked[:count])
            alone = case._replace(
                points=case.points[seen],
                queries=case.queries[row : row + 1],
                window=None,
                scale=case.scale if np.ndim(case.scale) < 2 else case.scale[row],
            )
            distance, index = brute_force(alone)
            expected = np.where(index >= 0, seen[index], -1) if len(seen) else index
            assert (found.index[row].numpy() == expected[0]).all() and (
                found.square_distance[row].numpy() == distance[0]
            ).all()

    run()


@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.__name__)
@pytest.mark.parametrize(
    ("count", "leaf", "sizes"),
    [(1, 1, {}), (97, 10, {}), (1000, 32, {}), (700, 5, {"BLOCK": 90, "ROOTS": 20, "CHILDREN": 3})],
    ids=["1", "97", "1000", "blocks"],
)
def test_every_point_lies_once_in_its_boxes(cloud, count, leaf, sizes, monkeypatch):
    resize(monkeypatch, sizes)
    points = torch.tensor(cloud(seeds.stream(0, "boxes"), count).astype(np.float32))
    index = Boxes(points, leaf=leaf)
    real = index.ranks < count
    assert index.leaf <= leaf and sorted(index.ranks[real].tolist()) == list(range(count))
    assert torch.equal(
        index.leaves.transpose(1, 2)[real], points[index.order[index.ranks[real]].long()]
    )
    for level in index.levels:  # every level's boxes, in order, hold equally many leaves
        low, high = (part.transpose(1, 2).reshape(-1, 1, 4, 1) for part in level[:2])
        inside = index.leaves.view(len(low), -1, 4, index.leaf)
        assert (low <= inside).all() and (inside <= high).all()
        assert torch.equal(level.first.flatten(), index.ranks.view(len(low), -1).amin(1))
    assert (
        level.first.numel() == len(index.leaves) and level.first.shape[1] <= 1 << boxes.CHILDREN
    ) or len(index.levels) == 1
    blocks = index.ranks.view(max(1, -(-count // boxes.BLOCK)), -1)
    seen = [block[block < count] for block in blocks]
    assert all(earlier.max() < later.min() for earlier, later in itertools.pairwise(seen))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.__name__)
def test_a_bound_never_exceeds_a_distance_and_is_reached(cloud, dtype):
    """No slack: below every seen point's computed distance, and equal to it in a box of one
    point."""
    rng = seeds.stream(0, "bounds", cloud.__name__)
    points = torch.tensor(cloud(rng, 130).astype(DTYPES[dtype]))
    queries = points[:40] + torch.tensor(rng.choice([0, 1e-3, 5], (40, 4))).to(points)
    allowed = torch.tensor(rng.integers(1, 131, 40))
    for leaf in (1, 9):
        index = Boxes(points, leaf=leaf)
        for scale in [
            torch.tensor(np.broadcast_to(make(rng, 40), (40, 4)).copy()).to(points)
            for make in SCALES.values()
        ]:
            least = torch.zeros(40, 4, 1).to(points)
            least[:, 3, 0] = (queries[:, 3] - index.times[allowed - 1]).clamp(min=0)
            ready = boxes._Queries(queries[:, :, None], scale[:, :, None], least, allowed)
            every = square_distance(
                queries[:, None], index.leaves.transpose(1, 2).flatten(0, 1), scale[:, None]
            )
            every = (
                every.view(40, *index.ranks.shape)
                .masked_fill(index.ranks >= allowed[:, None, None], torch.inf)
                .amin(2)
            )
            level, each = index.levels[-1], every.view(40, *index.levels[-1].first.shape)
            for parent in range(len(level.first)):
                bound = boxes._bounds(level, ready, torch.full((40,), parent))
                assert (bound <= each[:, parent]).all() and torch.equal(
                    torch.isinf(bound), torch.isinf(each[:, parent])
                )
                assert leaf > 1 or torch.equal(bound, each[:, parent])


@pytest.mark.parametrize("kind", ["smooth", "random"])
def test_a_query_late_in_a_longer_recording_costs_about_the_same(kind, monkeypatch):
    """Ten times the points, as dense as before and ten times as long: at most 1.1 times the
    points and 1.5 times the boxes looked at."""
    monkeypatch.setattr(
        boxes, "BLOCK", 1 << 14
    )  # as many blocks as 33 million points have in blocks of a million
    rng, looked = seeds.stream(0, "longer", kind), []
    bounds = boxes._bounds
    monkeypatch.setattr(
        boxes,
        "_bounds",
        lambda level, *a: looked.append(bounds(level, *a).numel()) or bounds(level, *a),
    )
    stretches = [
        smoothed_random_walk(60, 500, rng)[0] if kind == "smooth" else random_points(30_000, rng)[0]
        for _ in range(10)
    ]
    for number, stretch in enumerate(stretches):
        stretch[:, 3] += 3.6 * number  # standardised times last about 3.5
    long = torch.tensor(np.concatenate(stretches))
    queries, costs = torch.tensor(stretches[-1][8000::211]), []
    for points in (torch.tensor(stretches[-1]), long):
        looked.clear()
        found = Boxes(points).query(queries, 16, 0.05)
        assert found.mask.all()
        costs.append(
            (found.comparisons.double().mean(), sum(looked) / len(queries), found.square_distance)
        )
    (few, boxes_few, near), (many, boxes_many, nearer) = costs
    assert (
        many <= 1.1 * few < 0.1 * len(stretch)
        and boxes_many <= 1.5 * boxes_few
        and (nearer <= near).all()
    )


def test_memory_is_bounded_where_every_point_ties(monkeypatch):
    """150,000 equal points: at no time more than HELD bounds or candidates, or SLICE distances,
    of all queries together."""
    resize(monkeypatch, {"HELD": {"cpu": 1 << 14}, "SLICE": {"cpu": 1 << 13}})
    sizes, weigh, select = [], boxes._weigh, Boxes._select
    monkeypatch.setattr(boxes, "_weigh", lambda *a: sizes.append(weigh(*a).numel()) or weigh(*a))
    monkeypatch.setattr(
        Boxes,
        "_select",
        lambda self, rows, k, row, *a: sizes.append(len(row)) or select(self, rows, k, row, *a),
    )
    found = Boxes(torch.ones(150_000, 4)).query(torch.zeros(5, 4), 20, None)
    assert found.index.tolist() == [
        list(range(20))
    ] * 5 and found.square_distance.unique().tolist() == [4]
    assert max(sizes) <= (1 << 14) + (1 << 13) + 2 * 20
    assert (found.comparisons <= 1.5 * 150_000).all() and (found.comparisons >= 150_000).all()


@pytest.mark.parametrize("k", [1, 7, 100])
def test_a_query_that_reaches_everything_keeps_the_nearest_so_far(k, monkeypatch):
    """No room for a first look, so every leaf is read, a few at a time."""
    resize(monkeypatch, {"HELD": {"cpu": 16}, "SLICE": {"cpu": 64}})
    points = seeds.stream(0, "everything").normal(size=(2000, 4)).astype(np.float32)
    case = Case(points, np.zeros(2000, int), points[:4], k, None, 1.0, 0)
    found = ask(Boxes(torch.tensor(points)), case)
    assert not complaint(found, case) and (found.comparisons >= 2000).all()


def test_queries_with_a_poor_radius_are_asked_again_alone(monkeypatch):
    """About the first query, a leaf holds one or two points that it sees: more leaves are looked
    at, for it only."""
    rng = seeds.stream(0, "poor")
    points = rng.normal(size=(6000, 4)).astype(np.float32)
    points[3000:, 0] += 1000
    points[:3000:60, 3] = -9  # the only ones of the first half before the queries
    points[:3000, 3] += np.where(np.arange(3000) % 60 > 0, 100, 0)
    queries = np.concatenate([np.zeros((1, 4)), points[3000:3005]]).astype(np.float32)
    queries[:, 3] = 9
    case = Case(points, np.zeros(6000, int), queries, 40, 0.0, np.array([1.0, 1, 1, 0]), 0)
    asked, fill, reached, reach = [], Boxes._fill, [], Boxes._reach
    monkeypatch.setattr(
        Boxes,
        "_fill",
        lambda self, found, queries, rows, *a: (
            asked.append(rows.tolist()) or fill(self, found, queries, rows, *a)
        ),
    )
    monkeypatch.setattr(
        Boxes, "_reach", lambda self, *a: reached.append(reach(self, *a)) or reached[-1]
    )
    assert not complaint(
        ask(Boxes(torch.tensor(points), leaf=16, units=torch.tensor([1, 1, 1, 1e9])), case), case
    )
    assert asked[0] == [0, 1, 2, 3, 4, 5] and asked[1:] and all(rows == [0] for rows in asked[1:])
    assert reached[0][0].unique().tolist() == [1, 2, 3, 4, 5]


def test_a_weight_of_minus_zero_weighs_nothing():
    points = torch.rand(500, 4, generator=torch.Generator().manual_seed(1))
    scale = torch.tensor([[-0.0, 1, 1, 1], [-0.0] * 4, [0.0, -0.0, 0.0, 2]])
    for one, other in zip(
        *(Boxes(points).query(points[:3], 40, None, weights) for weights in (scale, scale.abs())),
        strict=True,
    ):
        assert torch.equal(one, other)


def test_units_say_how_boxes_are_cut_and_not_what_is_found():
    points = torch.rand(4096, 4, generator=torch.Generator().manual_seed(0))
    plain, cut = Boxes(points), Boxes(points, units=torch.tensor([1e-9, 1, 1, 1]))
    width = [
        (index.levels[-1].high - index.levels[-1].low).transpose(1, 2).reshape(-1, 4).mean(0)
        for index in (plain, cut)
    ]
    assert width[0].max() < 2 * width[0].min() and width[1][0] < 0.02 * width[1][1:].min()
    for one, other in zip(plain.query(points[:50], 9), cut.query(points[:50], 9), strict=True):
        assert torch.equal(one, other) or one.ndim == 1


@pytest.mark.parametrize(
    "options",
    [{"leaf": 0}, {"leaf": -3}, {"units": torch.ones(3)}, {"units": torch.tensor([1, 1, 1, 0.0])}],
    ids=str,
)
def test_what_no_box_can_be_cut_by_is_refused(options):
    with pytest.raises(InputError, match="leaf|units"):
        Boxes(torch.zeros(5, 4), **options)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.__name__)
def test_a_gpu_answers_as_the_cpu_does(cloud):
    rng = seeds.stream(0, "gpu", cloud.__name__)
    points = torch.tensor(cloud(rng, 5000).astype(np.float32))
    queries, scale = points[::50], torch.tensor(rng.uniform(0, 4, (100, 4)), dtype=torch.float32)
    expected = Boxes(points).query(queries, 20, 0.1, scale)
    found = Boxes(points.cuda()).query(queries.cuda(), 20, 0.1, scale.cuda())
    for one, other in zip(expected[:3], found[:3], strict=True):
        assert torch.equal(one, other.cpu())
