"""The grand table: what metrics.json holds stands beside each model's main number, and nothing
else; the front page finds and sorts its rows, and shows its first table whole at a desk."""

from pathlib import Path

import chromium
import pytest

from stages import files
from stages.page import grand

ROOT = Path(__file__).resolve().parents[2]
RESULT = dict(
    dataset="d", measure="RMSE [kn]", value="7.2", published="8", bound="1.9", trivial="9"
)


def view(experiment, *arms):
    results = [RESULT | {"arm": arm, "name": arm.upper()} for arm in arms]
    return {"experiment": experiment, "profile": "mini", "results": results}


def write(experiment, arms, cells):
    home = Path("reports", experiment, "mini")
    home.mkdir(parents=True)
    files.write_json(home / "metrics.json", {"arms": arms, "cells": cells})


def test_a_row_holds_what_was_measured_and_says_what_was_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    metrics = {
        "log_likelihood": {"mean": -1.23456},
        "crps_kn": {"mean": 4.5678, "unit": "kn"},
        "coverage_90": {"mean": 0.8765},
    }
    metrics["memory_100_1000"] = {"mean": 0.92164, "unit": "MB"}
    history = {"val": [[500, 2.0], [1500, 1.0]]}
    seeds = {f"d/msa-s{seed}": {"parameters": 20_480, "history": history} for seed in (0, 1)}
    other = {"d/msa-shared-s0": {"parameters": 999_999}}
    write("winds", {"d/msa": {"metrics": metrics}, "d/knn": {"metrics": {}}}, seeds | other)
    first, second = grand.rows([view("winds", "msa", "knn")])
    assert first[:8] == ["winds/mini", "d", "MSA", "RMSE [kn]", "7.2", "8", "1.9", "9"]
    assert first[8:] == ["-1.23", "4.57 kn", "87.6", "20,480", "1,500", "0.922"]
    assert second[8:] == ["–"] * 6 and len(grand.TITLES) == len(first)


def test_experiments_that_tell_none_of_it_are_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("searches", {"d/tree": {"metrics": {}}}, {"d/tree": {}})
    assert grand.rows([view("searches", "tree"), view("not_tabulated", "tree")]) == []


@pytest.mark.skipif(chromium.PROGRAM is None, reason="no chromium is installed here")
def test_in_a_browser_rows_are_found_and_sorted_and_the_first_table_is_whole():
    with chromium.browser() as tab:
        tab.size(1440)
        tab.open(ROOT / "reports/index.html")
        whole = "(one => one.scrollWidth <= one.clientWidth)"
        assert tab.ask(f"{whole}(document.querySelector('.opening .scroll'))")
        tab.open(ROOT / "reports/grand.html")
        rows = "[...document.querySelectorAll('#grand-table tbody tr')]"
        every = tab.ask(f"{rows}.length")
        tab.ask(
            "(one => { one.value = 'processes eq_1d'; one.dispatchEvent(new Event('input')); })"
            "(document.querySelector('#grand-words'))"
        )
        kept = tab.ask(f"{rows}.filter((one) => !one.hidden).map((one) => one.textContent)")
        assert 0 < len(kept) < every and all("processes" in one for one in kept)
        told = tab.ask("document.querySelector('#grand-shown').textContent")
        assert told == f"{len(kept)} of {every} rows"
        tab.ask("document.querySelectorAll('#grand-table th button')[8].click()")
        number = "(one) => parseFloat(one.cells[8].textContent)"
        numbers = tab.ask(f"{rows}.filter((one) => !one.hidden).map({number})")
        finite = [one for one in numbers if one is not None and one == one]
        assert len(finite) > 5 and finite == sorted(finite)
