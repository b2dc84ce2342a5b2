"""What git keeps to be tried: the winds that were known and no later one, and the answer of the
cell that it was copied from."""

import shutil
from pathlib import Path

import polars as pl
import pytest
from test_nowcast_choice import numbers

from stages import cli, files, params
from stages.errors import InputError
from stages.runner import Asked
from stages.winds import example
from stages.winds.nowcast import nowcast

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(airspace, runs, tmp_path, monkeypatch):
    """A project whose best cell is knn, in the working folder."""
    monkeypatch.chdir(tmp_path)
    prepared = tmp_path / "data/mini/prepared/toy"
    shutil.copytree(airspace / "data/mini/prepared/toy", prepared)
    (tmp_path / "data/mini/decoded/toy").mkdir(parents=True)
    shutil.copy(airspace / "winds.parquet", tmp_path / "data/mini/decoded/toy/winds.parquet")
    home = tmp_path / "reports/wind_baselines/mini"
    shutil.copytree(runs / "knn", home / "runs/toy/knn")
    folder = home / "evaluated/toy"
    folder.mkdir(parents=True)
    far = {"all": {"value": 3.0, "unit": "m/s", "n": 900}}
    entry = {"metrics": numbers(7.0, 20.0, coverage_90_recalibrated=0.9), "recalibration": far}
    files.write_json(folder / "metrics.json", {"cells": {"knn": entry}})
    return tmp_path


def made(settings):
    """The example's folder, written anew."""
    cell = Path("reports/wind_baselines/mini/runs/toy/knn")
    example.gather(cell, "best", Path("data/mini"), example.place("mini"))
    return example.place("mini")


def test_it_answers_as_the_cell_does_from_all_winds(project, settings):
    home = made(settings)
    told = files.read_json(home / "example.json")
    asked = f"46.5,7.0,25000,{told['time_s']}"
    model = home / "runs" / told["dataset"] / told["cell"]
    (kept,) = nowcast.nowcast(home / "winds.parquet", at=[asked], model=model, settings=settings)
    whole = project / "data/mini/decoded/toy/winds.parquet"
    cell = project / "reports/wind_baselines/mini/runs/toy/knn"
    (full,) = nowcast.nowcast(whole, at=[asked], model=cell, settings=settings)
    assert (kept.u_m_s, kept.v_m_s, kept.spread_m_s) == (full.u_m_s, full.v_m_s, full.spread_m_s)
    assert "held 90 % of the test winds" in kept.spread_from


def test_no_wind_of_it_is_later_than_the_forecast_knew(project, settings):
    home = made(settings)
    meta = files.read_json(project / "data/mini/prepared/toy/prepared.json")
    issue_s = files.read_json(home / "example.json")["time_s"] - meta["lead_s"]
    winds = pl.read_parquet(home / "winds.parquet")
    assert 0 < issue_s - winds["ts_s"].max() < 60
    assert winds["ts_s"].min() >= issue_s - example.PAST_S


def test_a_data_set_that_is_no_example_is_refused(project, settings):
    asked = Asked({"profile": "mini", "dataset": "gp_wind"}, params.load(ROOT / "params.yaml"))
    with pytest.raises(InputError, match="unknown data set"):
        example.plan(asked)


def test_the_verb_draws_a_level_of_what_git_keeps(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", ["tradewind", "try", "--plot", str(tmp_path / "a.png")])
    assert cli.main() == 0
    out = capsys.readouterr().out
    assert "tradewind nowcast --context data/mini/example/winds.parquet" in out
    assert (tmp_path / "a.png").stat().st_size > 10_000
    size = sum(path.stat().st_size for path in example.place("mini").rglob("*") if path.is_file())
    assert size <= 200_000


def test_without_an_example_it_is_said_where_one_is(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["tradewind", "try"])
    monkeypatch.setattr(params, "home", lambda: tmp_path)
    assert cli.main() == 2 and "no example here" in capsys.readouterr().err
