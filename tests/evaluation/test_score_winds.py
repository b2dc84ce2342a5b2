"""What `tradewind score` tells of a cell of the winds alone: the recalibrated coverage, and which
cell a short name means."""

import shutil
import sys

import polars as pl
import pytest
from test_score_verb import CELL, START, ask

from stages import cli, files, params


@pytest.fixture(scope="module")
def minutes(airspace, tmp_path_factory):
    """The winds of the toy's test minutes and of their contexts, as a file."""
    path = tmp_path_factory.mktemp("minutes") / "test.parquet"
    rows = pl.read_parquet(airspace / "winds.parquet").filter(pl.col("ts_s") >= START + 3000)
    rows.write_parquet(path)
    return path


@pytest.mark.parametrize("cell", ["kernel", "msa-gaussian-5k-s0"])
def test_the_recalibrated_coverage_is_told_where_the_cell_has_one(
    airspace, runs, settings, minutes, tmp_path, cell
):
    shutil.copytree(airspace / "data", tmp_path / "data")
    home = tmp_path / "reports/wind_nowcast/mini"
    shutil.copytree(runs / cell, home / "runs/toy" / cell)
    _, before = ask(tmp_path, settings, f"{CELL}/{cell}", minutes)
    assert "coverage_90_recalibrated" not in before.shown
    numbers = {name: {"value": 0.9} for name in ("coverage_90", "coverage_90_recalibrated")}
    wide = {"all": {"value": 1e3, "unit": "1", "n": 900}}
    entry = {"metrics": numbers, "recalibration": wide}
    files.write_json(home / "evaluated/toy/metrics.json", {"cells": {cell: entry}})
    _, after = ask(tmp_path, settings, f"{CELL}/{cell}", minutes)
    assert "coverage_90_recalibrated" in after.shown
    assert after.metrics["coverage_90_recalibrated"]["value"] == 1.0
    assert after.metrics["rmse_component_kn"] == before.metrics["rmse_component_kn"]


@pytest.mark.parametrize("name", ["knn", "toy/kernel", "wind_nowcast/msa-shared-5k-s1"])
def test_a_cell_may_be_called_by_a_shorter_name(
    airspace, settings, minutes, monkeypatch, capsys, name
):
    monkeypatch.chdir(airspace)
    monkeypatch.setattr(params, "load", lambda: settings)
    monkeypatch.setattr(sys, "argv", ["tradewind", "score", name, str(minutes)])
    assert cli.main() == 0
    assert f"scored with {CELL}/{name.rpartition('/')[2]}" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["tradewind", "score", "msa", str(minutes)])
    assert cli.main() == 2 and "several trained cells" in capsys.readouterr().err
