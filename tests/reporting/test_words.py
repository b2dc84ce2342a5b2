"""What the documents say in words is listed whole; ours beside it are the numbers of metrics."""

import json
from pathlib import Path

import polars as pl
import pytest

from stages.errors import DataError
from stages.page import words

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def real(monkeypatch):
    monkeypatch.chdir(ROOT)
    return words.numbers()


def test_every_transcribed_number_stands_once_with_ours_or_why_there_is_none(real):
    printed = sum(len(pl.read_csv(ROOT / file)) for file in words.PRINTED)
    assert len(real) == printed > 40
    assert all(row["why"] for row in real)
    assert sum(1 for row in real if row["values"]) > 30
    slides = [row for row in real if row["table"] == "slides wind"]
    assert [row["printed"] for row in slides] == ["10.2", "10.4", "9.65", "9.12"]


def test_each_of_ours_is_there_and_a_number_is_that_of_the_experiment(real):
    for row in real:
        for name, value in row["values"]:
            assert (value is not None) != (ROOT / "reports" / name).is_file(), name
    address = "wind_nowcast/sample/hour_winds/msa-traditional-20k-s0/rmse_component_kn"
    (value,) = {v for row in real for name, v in row["values"] if name == address}
    cells = json.loads((ROOT / "reports/wind_nowcast/sample/metrics.json").read_text())["cells"]
    metric = cells["hour_winds/msa-traditional-20k-s0"]["metrics"]["rmse_component_kn"]
    assert value == f"{metric['value']:.2f} kn"


def test_what_was_not_run_has_no_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words.numbers() == []  # nothing is transcribed here
    assert words.number("wind_nowcast/sample/hour_winds/msa-shared-20k-s0/hull_share") is None


@pytest.mark.parametrize("change", ["twice", "one less"])
def test_a_list_that_is_not_the_transcriptions_is_an_error(tmp_path, monkeypatch, change):
    monkeypatch.chdir(ROOT)
    frame = pl.read_csv(words.WORDS, infer_schema_length=0)
    wrong = pl.concat([frame, frame[:1]]) if change == "twice" else frame[1:]
    wrong.write_csv(tmp_path / "words.csv")
    with pytest.raises(DataError, match="other numbers"):
        words.numbers(tmp_path / "words.csv")
