"""Sines and random values: the files obey the formula at their own positions, and the law of
positions and random values."""

import json

import numpy as np
import pydantic
import pytest
from scipy import stats

from stages.fields.problems import sines
from stages.params import Sines

BASE = dict(seed=3, frequency=1.0, points=64, train=300, val=50, test=50)


def made(folder, **changes):
    sines.make(Sines(**BASE | changes), folder)
    return (
        np.load(folder / "points.npy"),
        np.load(folder / "values.npy"),
        json.loads((folder / "meta.json").read_text()),
    )


@pytest.mark.parametrize("frequency", [0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
def test_the_values_are_the_sine_at_the_files_positions(tmp_path, frequency):
    points, values, meta = made(tmp_path, frequency=frequency)
    assert (
        points.shape == (400, 64, 2)
        and values.shape == (400, 64)
        and points.dtype == values.dtype == "<f4"
    )
    x, y = np.moveaxis(points.astype(float), -1, 0) * np.pi * frequency
    product = (np.sin(x + y) + np.sin(x - y)) / 2  # sin x cos y, the other way round
    assert values == pytest.approx(product, abs=1e-7)
    assert (meta["frequency"], meta["points"], meta["split"]) == (
        frequency,
        64,
        {"train": 300, "val": 50, "test": 50},
    )


def test_the_formula_at_points_worked_out_by_hand():
    """sin(pi f x) cos(pi f y): not symmetric in x and y, nor even in x."""
    points = np.array([[0.5, 0.0], [0.0, 0.5], [0.25, 0.25], [-0.25, 0.25], [1 / 6, 1 / 3]])
    assert sines.sine(points, 1.0) == pytest.approx([1, 0, 0.5, -0.5, 0.25], abs=1e-15)
    assert sines.sine(points / 2, 2.0) == pytest.approx(sines.sine(points, 1.0), abs=1e-15)


def test_positions_and_random_values_are_independent_standard_normal_numbers(tmp_path):
    points, values, meta = made(tmp_path, frequency=None)
    assert meta["frequency"] is None
    columns = np.stack([points[..., 0], points[..., 1], values], -1).reshape(-1, 3).astype(float)
    n = len(columns)
    for column in columns.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    assert np.abs(columns.T @ columns / n - np.eye(3)).max() < 5 * np.sqrt(2 / n)
    powers = np.corrcoef(np.concatenate([columns, columns**2], 1).T) - np.eye(6)
    assert np.abs(powers).max() < 5 / np.sqrt(n)


def test_no_set_and_no_point_comes_twice(tmp_path):
    points, _, _ = made(tmp_path)
    assert len(np.unique(points.reshape(-1, 2), axis=0)) == 400 * 64


def test_all_frequencies_of_a_seed_share_their_positions_and_another_seed_does_not(tmp_path):
    found = [
        made(tmp_path / str(k), **changes)
        for k, changes in enumerate(
            (dict(), dict(frequency=5.0), dict(frequency=None), dict(seed=4), dict())
        )
    ]
    assert (
        all((found[k][0] == found[0][0]).all() for k in (1, 2, 4))
        and not (found[3][0] == found[0][0]).any()
    )
    assert (found[4][1] == found[0][1]).all() and not (found[1][1] == found[0][1]).all()


@pytest.mark.parametrize(
    "changes, told",
    [
        (dict(frequency=0.0), "frequency"),
        (dict(frequency=float("inf")), "frequency"),
        (dict(points=0), "points"),
        (dict(val=0), "val"),
        (dict(points=4096, train=1_000_000), "4096409600 points, more than 100 million"),
        (dict(phase=1.0), "phase"),
    ],
)
def test_what_the_schema_refuses(changes, told):
    with pytest.raises(pydantic.ValidationError, match=told):
        Sines(**BASE | changes)
    with pytest.raises(pydantic.ValidationError, match="frequency"):
        Sines(
            **{key: value for key, value in BASE.items() if key != "frequency"}
        )  # null must be said, not left out
