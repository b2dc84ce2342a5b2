"""Sine and random sets: the targets are the context's own points in another order, sets keep to
one split, damage is told by name."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.errors import DataError, InputError
from stages.fields import problem as table
from stages.fields.problem import Counts
from stages.fields.problems import sines
from stages.fields.problems import sines as simulation
from stages.params import Sines

PLAN = dict(seed=1, frequency=None, points=12, train=40, val=6, test=4)


@pytest.fixture
def raw(tmp_path):
    simulation.make(Sines(**PLAN), tmp_path)
    return tmp_path


def test_a_context_is_its_record_and_its_targets_are_the_same_points(raw):
    sets = sines.read(raw, 0, Counts(12, 12))
    table.check(sets, "here")
    points, values = np.load(raw / "points.npy"), np.load(raw / "values.npy")
    assert (sets.context_x == points[sets.record]).all() and (
        sets.context_y[..., 0] == values[sets.record]
    ).all()
    assert (
        sets.files[0] == "points.npy"
        and not sets.source.any()
        and sets.record.tolist() == list(range(50))
    )
    for number in range(50):
        pairs = [
            sorted(map(tuple, np.concatenate([x[number], y[number]], 1).tolist()))
            for x, y in ((sets.context_x, sets.context_y), (sets.target_x, sets.target_y))
        ]
        assert pairs[0] == pairs[1]
    assert np.bincount(sets.split).tolist() == [40, 6, 4] and (sets.loss, sets.standardise) == (
        "mse",
        False,
    )


def test_a_targets_place_in_the_list_tells_nothing(tmp_path):
    """Over 1,500 sets every context point stands equally often at every place among the targets,
    so it is no copy by number."""
    simulation.make(Sines(**PLAN | dict(train=1490, points=6)), tmp_path)
    sets = sines.read(tmp_path, 0, Counts(6, 6))
    of = sets.target_y[:, :, None, 0] == sets.context_y[:, None, :, 0]
    assert (of.sum(-1) == 1).all()
    often, n = of.sum(0), len(of)
    assert np.abs(often - n / 6).max() < 5 * np.sqrt(n * 5 / 36)


def test_the_nearest_context_point_answers_every_target(raw):
    """The least error of the task is zero: what a model without a bottleneck is asked to reach."""
    sets = sines.read(raw, 0, Counts(12, 12))
    apart = ((sets.target_x[:, :, None] - sets.context_x[:, None]) ** 2).sum(-1)
    answer = np.take_along_axis(sets.context_y, apart.argmin(-1)[..., None], 1)
    assert ((answer - sets.target_y) ** 2).max() == 0 and (sets.target_y.std() > 0.9)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_plan_and_seed_gives_every_set_once_and_as_many_of_each_split_as_planned(
    tmp_path_factory, data
):
    split = {name: data.draw(st.integers(1, 9)) for name in table.SPLITS}
    plan = Sines(
        **PLAN
        | split
        | dict(
            points=data.draw(st.integers(1, 5)),
            frequency=data.draw(st.sampled_from([None, 0.1, 10.0])),
        )
    )
    folder, seed = tmp_path_factory.mktemp("raw"), data.draw(st.integers(0, 99))
    simulation.make(plan, folder)
    sets = sines.read(folder, seed, Counts(plan.points, plan.points))
    table.check(sets, "here")
    assert np.bincount(sets.split).tolist() == list(
        split.values()
    ) and sets.record.tolist() == list(range(sum(split.values())))
    some = sines.read(folder, seed, Counts(plan.points, plan.points, 3))
    assert (
        len(some.split) == 3
        and (some.split == sets.split[some.record]).all()
        and (np.diff(some.record) > 0).all()
    )


def test_the_seed_draws_split_and_order(raw):
    a, b, c = (sines.read(raw, seed, Counts(12, 12)) for seed in (0, 0, 1))
    for name in ("target_x", "target_y", "split"):
        assert (getattr(a, name) == getattr(b, name)).all() and not (
            getattr(a, name) == getattr(c, name)
        ).all()
    assert (a.context_x == c.context_x).all()


@pytest.mark.parametrize("name", ["points.npy", "values.npy"])
@pytest.mark.parametrize(
    "damage, told",
    [
        ("missing", "missing"),
        ("cut", "no whole"),
        ("longer", "goes on"),
        ("shape", "type and shape"),
        ("type", "type and shape"),
        ("infinite", "not finite"),
    ],
)
def test_a_damaged_file_is_told_by_name(raw, name, damage, told):
    path = raw / name
    body, array = path.read_bytes(), np.load(path)
    if damage == "missing":
        path.unlink()
    elif damage in ("cut", "longer"):
        path.write_bytes(body[:-3] if damage == "cut" else body + b"\0")
    else:
        array.flat[5] = np.inf if damage == "infinite" else array.flat[5]
        np.save(
            path, {"shape": array[1:], "type": array.astype(np.float16), "infinite": array}[damage]
        )
    with pytest.raises(DataError, match=told) as caught:
        sines.read(raw, 0, Counts(12, 12))
    assert caught.value.where.endswith(name) and caught.value.expected and caught.value.remedy


@pytest.mark.parametrize(
    "changes",
    [
        {"points": 0},
        {"points": "12"},
        {"split": None},
        {"split": {"train": 50, "val": 0}},
        {"split": {"train": 51, "val": -1, "test": 0}},
    ],
)
def test_a_description_without_counts_is_refused(raw, changes):
    path = raw / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(DataError, match="points"):
        sines.read(raw, 0, Counts(12, 12))


@pytest.mark.parametrize("counts", [Counts(12, 11), Counts(11, 12), Counts(6, 6), Counts(64, 64)])
def test_context_and_targets_are_all_points(raw, counts):
    with pytest.raises(InputError, match="all its points"):
        sines.read(raw, 0, counts)
