"""Search spaces: what params.yaml may say, which values an axis has, and that a draw depends on
nothing but what it should."""

import itertools

import numpy as np
import pytest
import toy_sweep

from stages import params
from stages.figures.sweeps import expected_best
from stages.sweeps import search, space
from stages.sweeps.store import Store

AXIS = {"low": 1.0, "high": 2.0}


@pytest.mark.parametrize(
    ("axis", "says"),
    [
        ({"low": 5.0, "high": 5.0}, "not below"),
        ({"low": -1.0, "high": 5.0, "log": True}, "no logarithm"),
        ({"low": 1.0}, "both `low` and `high`"),
        ({}, "either `of`"),
        ({**AXIS, "of": (1, 2)}, "either `of`"),
        ({"of": (1, 2, 1)}, "has 1 twice"),
        ({"of": ("a", "b", "a", "b")}, "has a, b twice"),
        ({"of": (1, 2), "log": True}, "without log"),
        ({"of": (1, 2), "steps": 2}, "without log"),
        ({"of": ()}, "at least 1 item"),
        ({**AXIS, "steps": 1}, "greater than or equal to 2"),
        ({"of": (True,)}, "valid"),
        ({"of": (float("nan"),)}, "finite number"),
        ({"low": 1.5, "high": 3.0, "whole": True}, "whole numbers do not end at 1.5 and 3"),
        ({**AXIS, "lwo": 1.0}, "Extra inputs"),
        ({"low": float("-inf"), "high": 1.0}, "finite number"),
    ],
)
def test_an_axis_that_is_none_is_refused(axis, says):
    with pytest.raises(ValueError, match=says):
        params.Range(**axis)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sampler": "grid"}, "length_km: a grid needs `steps`"),
        ({"sampler": "anneal"}, "'tpe', 'random' or 'grid'"),
        ({"pruner": "hyperband"}, "'none' or 'median'"),
        ({"space": {"a": {**AXIS, "steps": 3}}}, "a: `steps` belong to a grid, not to random"),
        ({"space": {}}, "at least 1 item"),
        ({"trials": 0}, "greater than or equal to 1"),
        (
            {
                "sampler": "grid",
                "trials": 5,
                "space": {"a": {**AXIS, "steps": 3}, "b": {"of": (1, 2)}},
            },
            "5 are fewer than the 6 points of the grid",
        ),
        ({"space": {"state": AXIS, "draw": AXIS}}, "draw, state is a column of trials.csv"),
        ({"space": {"a b": AXIS}}, "match pattern"),
    ],
)
def test_a_sweep_that_cannot_be_made_is_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        toy_sweep.wanted(**changes)


def test_a_grid_is_every_combination_once_whatever_trials_exceed_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    axes = {
        "length_km": {"low": 1.0, "high": 100.0, "log": True, "steps": 3},
        "places": {"low": 1.0, "high": 9.0, "whole": True, "steps": 3},
        "kind": {"of": ("gaussian", "flat")},
    }
    which = toy_sweep.plan(sampler="grid", trials=100, space=axes)
    draws, _ = search.sweep(which, Store("grid"), toy_sweep.plain)
    tried = [(d.arguments["length_km"], d.arguments["places"], d.arguments["kind"]) for d in draws]
    assert which.wanted.draws == 18 and tried == list(
        itertools.product((1.0, 10.0, 100.0), (1, 5, 9), ("gaussian", "flat"))
    )
    assert all(type(places) is int for _, places, _ in tried)


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ({"low": 0.0, "high": 1.0, "steps": 5}, (0.0, 0.25, 0.5, 0.75, 1.0)),
        ({"low": 1.0, "high": 3.0, "whole": True, "steps": 9}, (1, 2, 3)),
        ({"low": 0.1234, "high": 12.34, "log": True, "steps": 3}, (0.1234, 1.23, 12.3)),
        ({"of": ("b", 2, 0.5)}, ("b", 2, 0.5)),
    ],
)
def test_the_values_of_a_grids_axis(axis, values):
    assert params.Range(**axis).grid() == values


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_draws_lie_in_their_space_differ_and_depend_on_seed_model_and_number(sampler):
    wanted = toy_sweep.wanted(sampler=sampler)
    drawn = [space.proposed(wanted, 0, "toy", draw) for draw in range(40)]
    assert all(
        1 <= one["length_km"] <= 500
        and one["places"] in range(1, 31)
        and one["kind"] in ("gaussian", "flat")
        for one in drawn
    )
    assert len({one["length_km"] for one in drawn}) > 35 and {one["kind"] for one in drawn} == {
        "gaussian",
        "flat",
    }
    assert [space.proposed(wanted, 0, "toy", draw) for draw in reversed(range(40))] == drawn[::-1]
    assert space.proposed(wanted, 1, "toy", 0) != drawn[0] != space.proposed(wanted, 0, "other", 0)


def test_random_draws_are_even_on_their_axes():
    """Kolmogorov-Smirnov by hand: 300 draws on a logarithmic axis, 1.63 / sqrt(n) is the 1 %
    point; the seed is fixed."""
    wanted = toy_sweep.wanted()
    logs = np.sort(
        [
            np.log(space.proposed(wanted, 0, "toy", draw)["length_km"]) / np.log(500)
            for draw in range(300)
        ]
    )
    assert np.abs(logs - np.arange(1, 301) / 300).max() < 1.63 / np.sqrt(300)


def test_tpe_learns_from_the_draws_before_and_the_store_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which = toy_sweep.plan(sampler="tpe", trials=30)
    draws, _ = search.sweep(which, Store("tpe"), toy_sweep.plain)
    assert draws == toy_sweep.serial(which)
    alone = [space.proposed(which.wanted, 0, "toy", draw) for draw in range(30)]
    assert [draw.arguments for draw in draws[:10]] == alone[:10] and all(
        draw.arguments != other for draw, other in zip(draws[10:], alone[10:], strict=True)
    )
    assert np.mean([draw.value for draw in draws[10:]]) < np.mean(
        [toy_sweep.error(one) for one in alone[10:]]
    )


@pytest.mark.parametrize(
    "values", [[3.0], [1.0, 2.0], [5.0, 1.0, 1.0, 2.5], [0.5, 4.0, 2.0, 2.0, 9.0]]
)
def test_the_expected_best_of_k_draws_is_the_mean_over_all_k_tuples(values):
    by_hand = [
        np.mean([min(drawn) for drawn in itertools.product(values, repeat=k)])
        for k in range(1, len(values) + 1)
    ]
    np.testing.assert_allclose(expected_best(np.array(values)), by_hand, rtol=1e-12)
