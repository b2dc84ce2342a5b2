"""Runs that no cell declares any more are set aside, and nothing else is touched."""

from pathlib import Path

import pytest

from flows.leftovers import HOME, set_aside
from flows.process import FlowError

CELLS = """mini: &mini
  plain:
    mini-sky-knn: {dataset: sky, model: knn}
  cells:
    mini-sky-msa-shared-5k-s0: {dataset: sky, model: msa, arm: shared, size: 5k, seed: 0}
sample: &sample
  cells: {}
run: *mini
"""
KEPT = ("mini/runs/sky/knn", "mini/runs/sky/msa-shared-5k-s0", "sample/runs/sky/old-a-b-s0",
        "mini/evaluated/sky")  # fmt: skip
OLD = ("mini/runs/sky/msa-shared-5k-s1", "mini/runs/sea/knn")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (*KEPT, *OLD):
        (Path("reports/winds") / name).mkdir(parents=True)
        (Path("reports/winds") / name / "weights").write_text(name)
    Path("reports/winds/cells.yaml").write_text(CELLS)
    Path("reports/winds/mini/runs/.gitignore").write_text("/sky\n")
    return Path("reports/winds")


def test_what_no_cell_of_the_profile_declares_moves_with_its_bytes(home):
    assert sorted(set_aside("mini")) == sorted(HOME / home / name for name in OLD)
    for name in OLD:
        assert not (home / name).exists()
        assert (HOME / home / name / "weights").read_text() == name
    for name in KEPT:
        assert (home / name / "weights").read_text() == name
    assert (home / "mini/runs/.gitignore").exists()
    assert set_aside("mini") == []


def test_an_evaluation_that_the_experiment_leaves_out_moves_where_it_has_a_list(home):
    (home / "mini/evaluated/sea").mkdir()
    assert home / "mini/evaluated/sea" not in {one.relative_to(HOME) for one in set_aside("mini")}
    file = home / "cells.yaml"
    file.write_text(CELLS.replace("mini: &mini\n", "mini: &mini\n  evaluated: [sky]\n"))
    assert set_aside("mini") == [HOME / home / "mini/evaluated/sea"]
    assert (home / "mini/evaluated/sky/weights").exists()


@pytest.mark.parametrize("broken", ["{model: knn}", "knn", "[sky]", "null"])
def test_cells_that_cannot_be_read_move_nothing(home, broken):
    file = home / "cells.yaml"
    file.write_text(CELLS.replace("{dataset: sky, model: knn}", broken))
    with pytest.raises(FlowError, match="names no `dataset`") as caught:
        set_aside("mini")
    assert caught.value.exit_code == 2 and str(file) in str(caught.value)
    assert all((home / name / "weights").exists() for name in (*KEPT, *OLD))


def test_of_an_experiment_that_does_not_name_the_profile_nothing_moves(home):
    (home / "cells.yaml").write_text(CELLS.replace("mini: &mini", "other: &mini"))
    assert set_aside("mini") == []


def test_one_of_a_name_that_was_set_aside_before_stays(home):
    set_aside("mini")
    (home / OLD[0]).mkdir(parents=True)
    (home / OLD[0] / "weights").write_text("another")
    (place,) = set_aside("mini")
    assert place == HOME / home / f"{OLD[0]}.1"
    assert (place / "weights").read_text() == "another"
    assert (HOME / home / OLD[0] / "weights").read_text() == OLD[0]


def test_a_file_of_cells_that_holds_nothing_is_refused_before_anything_moves(home):
    Path("reports/a").mkdir()
    Path("reports/a/cells.yaml").write_text("")
    with pytest.raises(FlowError, match="reports/a/cells.yaml") as error:
        set_aside("mini")
    assert error.value.exit_code == 2 and all((home / name).exists() for name in OLD)
