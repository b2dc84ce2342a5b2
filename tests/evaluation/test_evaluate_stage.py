"""The stage that evaluates wind cells: its record, its refusals, one cell alone, a kill."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages import files
from stages.errors import InputError
from stages.scores import shell
from stages.training import store
from stages.winds import evaluate

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
import declared_cells
import small_project
from evaluated_winds import PREPARED, RUNS


def test_no_cells_is_a_plain_error(project, tmp_path, capsys):
    with pytest.raises(InputError, match="no trained cell"):
        shell.trained(tmp_path)
    (project / RUNS).unlink()
    assert evaluate.main(["wind_nowcast", "mini", "toy"]) == 2
    assert "no trained cell" in capsys.readouterr().err
    assert not (project / "reports/wind_nowcast/mini/evaluated").exists()


UNDECLARED = "it is not declared in reports/wind_nowcast/cells.yaml"


@pytest.fixture
def project(airspace, tmp_path, monkeypatch):
    """A project's root whose mini profile has the toy data set, with links to the prepared data
    and the cells."""
    home = Path.cwd()
    small_project.code(tmp_path)
    for name in (
        "params.yaml",
        "stages/params/budgets/mini/winds.yaml",
        "stages/params/datasets/winds.yaml",
    ):
        text = (
            (home / name)
            .read_text(encoding="utf-8")
            .replace("simulated", "toy")
            .replace("bootstrap: 1000", "bootstrap: 100")
        )
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in (PREPARED, RUNS):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).symlink_to(airspace / name)
    (tmp_path / "reports/wind_nowcast/dvc.yaml").touch()
    declared_cells.write(tmp_path, "wind_nowcast", airspace / RUNS, "msa-shared-5k-s2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRADEWIND_DEVICE", raising=False)
    return tmp_path


def test_the_stage_writes_its_outputs_and_a_record_of_them(project):
    """In a process of its own, where code that it does not declare is an error."""
    run = subprocess.run(
        [sys.executable, "-m", "stages.winds.evaluate", "wind_nowcast", "mini", "toy"],
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    final = project / "reports/wind_nowcast/mini/evaluated/toy"
    record = files.read_json(project / "reports/wind_nowcast/mini/records/toy.evaluate.json")
    assert record["outputs"] == {
        p.relative_to(project).as_posix(): {"sha256": files.sha256(p), "bytes": p.stat().st_size}
        for p in final.iterdir()
    }
    assert (
        f"{RUNS}/knn/weights.safetensors" in record["inputs"]
        and f"{PREPARED}/rows.parquet" in record["inputs"]
    )
    assert (
        "stages/winds/metrics.py" in record["code"]["files"]
        and "stages/winds/claims.py" not in record["code"]["files"]
    )
    assert not list(final.parent.glob(".*")) and record["environment"]["threads"] == 1
    models = {"gka", "knn", "kernel", "kriging", "msa", "day_average", "hour_average"}
    expected = {"stages.winds.evaluate", *(f"stages.fields.models.{model}" for model in models)}
    assert set(record["code"]["modules"]) == expected


def test_one_cell_is_measured_anew_and_nothing_else_is_touched(project, capsys):
    words, out = ["wind_nowcast", "mini", "toy"], project / "out/knn.json"
    assert evaluate.main([*words, "--cell", "knn", "--out", str(out)]) == 0
    assert evaluate.main([*words, "--cell", "knn"]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert not (project / "reports/wind_nowcast/mini/evaluated").exists()
    assert not (project / "reports/wind_nowcast/mini/records").exists()
    assert evaluate.main([*words, "--cell", "knm"]) == 2
    assert "did you mean 'knn'" in capsys.readouterr().err
    assert evaluate.main([*words, "--out", str(out)]) == 2
    assert "--out is of --cell only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "meta", "says"),
    [
        ("gone-shared-5k-s0", {}, UNDECLARED),
        ("kernel", {}, "its checkpoint is that of knn"),
        ("knn-wide-none-s0", {"arm": "wide"}, UNDECLARED),
        ("knn-plain-5k-s0", {"size": "5k"}, UNDECLARED),
        ("msa-shared-20k-s0", {"model": "msa", "arm": "shared", "size": "20k"}, UNDECLARED),
        (
            "msa-shared-5k-s7",
            {"model": "msa", "arm": "shared", "size": "5k", "seed": 7},
            UNDECLARED,
        ),
        ("msa-shared-5k-s2", {"model": "msa"}, "its checkpoint is that of msa-shared-5k-s0"),
    ],
)
def test_a_cell_of_other_settings_is_refused_by_name(project, airspace, capsys, name, meta, says):
    (project / RUNS).unlink()
    shutil.copytree(airspace / RUNS, project / RUNS, dirs_exist_ok=True)
    shutil.rmtree(project / RUNS / name, ignore_errors=True)
    (project / RUNS / name).mkdir()
    source = "msa-shared-5k-s0" if meta.get("model") == "msa" else "knn"
    model, told = store.load(str(airspace / RUNS / source / "weights.safetensors"))
    (project / RUNS / name / "weights.safetensors").write_bytes(store.dump(model, told | meta))
    assert evaluate.main(["wind_nowcast", "mini", "toy"]) == 1
    printed = capsys.readouterr().err
    assert (
        f"{RUNS}/{name}: {says}" in printed and "delete" in printed and printed.count(RUNS) == 2
    )  # the folder of runs, and this cell
    assert not (project / "reports/wind_nowcast/mini/evaluated").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("wind_nowcats", "mini", "toy"), "wind_nowcast"),
        (("wind_nowcast", "mnii", "toy"), "mini"),
        (("wind_nowcast", "mini", "toys"), "toy"),
    ],
)
def test_a_wrong_name_ends_with_2_before_any_work(project, capsys, words, says):
    assert evaluate.main(list(words)) == 2
    assert (
        says in capsys.readouterr().err
        and not (project / "reports/wind_nowcast/mini/evaluated").exists()
    )


@pytest.mark.parametrize(
    ("point", "left"),
    [
        pytest.param("before_rename:2", "old", marks=pytest.mark.slow_fault),
        ("after_rename:2", "new"),
    ],
)
@pytest.mark.fault("F1", "F5")
def test_a_kill_leaves_the_old_evaluation_or_the_new(project, airspace, point, left):
    (project / RUNS).unlink()  # two cells are enough to be killed between
    for name in ("kernel", "knn"):
        shutil.copytree(airspace / RUNS / name, project / RUNS / name)
    declared_cells.write(project, "wind_nowcast", project / RUNS)
    final = project / "reports/wind_nowcast/mini/evaluated/toy"
    final.mkdir(parents=True)
    (final / "old").write_text("old")
    run = subprocess.run(
        [sys.executable, "-m", "stages.winds.evaluate", "wind_nowcast", "mini", "toy"],
        capture_output=True,
        check=False,
        env={**os.environ, "FAULT": point},
    )  # the first passage is that of metrics.json
    assert run.returncode == -9, run.stderr.decode()
    names = {p.name for p in final.iterdir()}
    assert (
        names == {"old"}
        if left == "old"
        else {"metrics.json", "slices.parquet", "predictions-knn.parquet"} < names
    )
