"""`tradewind compare --measure`: the spread of training, kept and pooled."""

import json
from pathlib import Path

import pytest
from comparison_project import (  # noqa: F401 (a fixture)
    CELL,
    EXPERIMENTS,
    RECORD,
    TABLE,
    change,
    git,
    lose,
    other_code,
    project,
    rename_unit,
    scaled,
    tradewind,
)

from stages import spreads

OTHER = TABLE.replace("sparse_fields", "failure_modes")


def drift(content):
    """Another arithmetic: every trained number moves by some thousandths, none as another."""
    cells = [cell for name, cell in content["cells"].items() if "-s" in name]
    for k, one in enumerate(one for cell in cells for one in cell["metrics"].values()):
        one["value"] *= 1 + 0.002 * (-1) ** k * (1 + k / 10)


@pytest.fixture
def foreign(project) -> Path:
    """The project without spreads, whose working copy holds the results of another arithmetic."""
    git(project, "rm", "-qr", "data/spreads")
    git(project, "commit", "-qam", "no spreads")
    change(project, TABLE, drift)
    change(project, RECORD, lambda record: record["environment"].update(arithmetic="two"))
    return project


def test_spreads_that_were_measured_make_the_comparison_reproduced(foreign, monkeypatch, capsys):
    assert tradewind(monkeypatch) == 1
    assert "no spread was measured for its kind" in capsys.readouterr().out
    before = json.loads((foreign / TABLE).read_text())
    assert tradewind(monkeypatch, "--measure") == 0
    written = spreads.place("sparse_fields", "mini")
    assert capsys.readouterr().out == f"{written}\n"  # what is identical tells nothing
    kept = json.loads((foreign / written).read_text())
    assert kept["rounding"] == spreads.measure(json.loads(committed(foreign, TABLE)), before)
    assert kept["seeds"] == spreads.of_seeds(before) and set(kept["seeds"]) == {"msa"}
    commit = git(foreign, "rev-parse", "HEAD")
    assert kept["between"] == [[commit[:9], "one", "two"]]
    assert tradewind(monkeypatch) == 0
    assert "REPRODUCED" in capsys.readouterr().out
    change(foreign, TABLE, scaled(times=3.0))  # and they excuse no wrong number
    assert tradewind(monkeypatch) == 1
    moved = f"moved sparse_fields/mini/cells/{CELL}/metrics/mse/value: 1 -> "
    assert moved in capsys.readouterr().out


def test_a_second_measurement_is_pooled_with_the_first_and_the_same_one_refused(
    foreign, monkeypatch, capsys
):
    assert tradewind(monkeypatch, "--measure") == 0
    file = foreign / spreads.place("sparse_fields", "mini")
    first = json.loads(file.read_text())
    assert tradewind(monkeypatch, "--measure") == 2
    assert "is there already" in capsys.readouterr().err
    assert json.loads(file.read_text()) == first
    change(foreign, TABLE, drift)  # twice as far, on a third arithmetic
    change(foreign, RECORD, lambda record: record["environment"].update(arithmetic="three"))
    assert tradewind(monkeypatch, "--measure") == 0
    second = json.loads(file.read_text())
    assert [one[2] for one in second["between"]] == ["two", "three"]
    pair = [json.loads(committed(foreign, TABLE)), json.loads((foreign / TABLE).read_text())]
    assert second["rounding"] == spreads.pooled(first["rounding"], spreads.measure(*pair))
    assert (
        second["rounding"]["msa"]["mse"]["freedom"]
        == 2 * first["rounding"]["msa"]["mse"]["freedom"]
    )


def test_what_was_measured_before_is_left_and_what_was_not_is_measured(foreign, monkeypatch):
    """After one experiment, the other ran on the same two arithmetics."""
    assert tradewind(monkeypatch, "--measure") == 0
    first, second = (foreign / spreads.place(name, "mini") for name in EXPERIMENTS[::-1])
    before = first.read_text()
    assert not second.exists()
    change(foreign, OTHER, drift)
    assert tradewind(monkeypatch, "--measure") == 0
    assert first.read_text() == before
    assert json.loads(second.read_text())["between"] == json.loads(before)["between"]


def committed(root: Path, path: str) -> str:
    """A file's text at HEAD."""
    return git(root, "show", f"HEAD:{path}")


@pytest.mark.parametrize(
    ("path", "edit"),
    [
        (RECORD, other_code),
        (RECORD, lambda record: record.update(seed=1)),
        (TABLE, lose),
        (TABLE, rename_unit),
    ],
)
def test_runs_of_other_code_or_cells_measure_nothing(foreign, monkeypatch, capsys, path, edit):
    change(foreign, path, edit)
    assert tradewind(monkeypatch, "--measure") == 2
    assert "differ in more than rounding" in capsys.readouterr().err
    assert not (foreign / "data/spreads").exists()
