"""A factor that shrinks the model's own spread is used where the winds known are like those that it
was found on, and nowhere else."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from stages import api, cli
from stages.winds.nowcast import spread
from stages.winds.nowcast.answers import unlike
from stages.winds.recalibration import ALL, Recalibration

TOLD = "too few winds lie near {}, so the spread was not recalibrated"


@pytest.fixture(scope="module")
def example():
    return api.example()


def made(factor, usual=4.0):
    fitted = Recalibration({ALL: factor}, {ALL: 500})
    return spread.CellSpread("words", fitted, usual_m_s=usual)


def test_a_spread_beyond_the_usual_is_not_shrunk():
    own = np.array([[3.0, 3.0], [4.3, 4.3], [4.5, 4.5], [12.0, 1.0]])
    found, stands = made(0.5).of(own, np.zeros(4))
    assert stands == [False, False, True, True]
    assert found == [(1.5, 1.5), (2.15, 2.15), (4.5, 4.5), (12.0, 1.0)]


def test_a_factor_above_one_holds_everywhere():
    own = np.full((2, 2), [4.0, 40.0]).T
    found, stands = made(1.5).of(own, np.zeros(2))
    assert stands == [False, False] and found == [(6.0, 6.0), (60.0, 60.0)]


def test_an_error_without_a_spread_of_the_models_own_is_that_of_its_distance():
    found, stands = made(0.5).of(None, np.zeros(2))
    assert stands == [False, False] and found == [(0.5, 0.5)] * 2


def wide(model, known, grid):
    """How many points are told their own spread, and the answer."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = model.predict(grid, context=known)
    return [str(one.message) for one in told], found


def test_python_warns_where_few_winds_are_known(example):
    model, winds, time_s = example
    grid = pl.DataFrame({"lat_deg": np.linspace(45.5, 48, 6)}).with_columns(
        lon_deg=7.0, alt_ft=34e3, ts_s=time_s
    )
    last = winds.filter(pl.col("ts_s") >= time_s - 1860)
    answers = [wide(model, known, grid) for known in (winds, last[:5], last[:1])]
    assert not answers[0][0]  # half an hour of winds says enough here
    assert answers[2][0] == [f"spread: {TOLD.format('the points')}"]
    spreads = [found["u_spread_m_s"].mean() for _, found in answers]
    assert spreads[0] < 4.2 and spreads[1] > 9 and spreads[2] > spreads[1]


def test_every_form_says_that_the_models_own_spread_stands(example, tmp_path, monkeypatch, capsys):
    _, winds, time_s = example
    winds.filter(pl.col("ts_s") >= time_s - 1860)[:3].write_parquet(tmp_path / "few.parquet")
    words = ["tradewind", "nowcast", "--context", str(tmp_path / "few.parquet"), "--model"]
    words += ["example", "--at", f"46.5,7.2,34000,{time_s:.0f}"]
    for form, where in (
        ([], "out"),
        (["--json"], "out"),
        (["--csv"], "err"),
        (["--out", str(tmp_path / "a.csv")], "err"),
        (["--plot", str(tmp_path / "a.png")], "err"),
    ):
        monkeypatch.setattr("sys.argv", [*words, *form])
        assert cli.main() == 0
        told = capsys.readouterr()
        assert TOLD.format("the point") in getattr(told, where)
    monkeypatch.setattr("sys.argv", [*words, "--json"])
    assert cli.main() == 0
    assert json.loads(capsys.readouterr().out)["spread"].endswith(TOLD.format("the point"))


@pytest.mark.parametrize(
    "own, told",
    [
        ([False, False], ""),
        ([True, False, False], TOLD.format("1 of 3 points") + " there"),
        ([True, True], TOLD.format("the points")),
    ],
)
def test_it_is_said_at_how_many_points_the_spread_is_not_recalibrated(own, told):
    assert unlike([SimpleNamespace(own_spread=one) for one in own]) == told
