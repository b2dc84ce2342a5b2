"""What a flow refuses before it moves or makes anything: parameters that do not fit, a list of
DVC's that a kill left empty, numbers out of range, files that are not there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flows import bench, merge, repro, retrain, schedule
from flows.process import FlowError, leashed

ROOT = Path(__file__).parents[2]


def test_wrong_parameters_are_refused_before_a_run_is_set_aside(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "stages/params", tmp_path / "stages/params")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    for file in ROOT.glob("reports/*/cells.yaml"):
        (tmp_path / file.relative_to(ROOT)).parent.mkdir(parents=True)
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    protocol = tmp_path / "stages/params/protocol.yaml"
    protocol.write_text(protocol.read_text().replace("learning_rate: ", "learning_rate: -"))
    old = tmp_path / "reports/wind_nowcast/mini/runs/simulated/old-a-b-s0"
    old.mkdir(parents=True)
    real = subprocess.run

    def from_the_clone(words, **how):  # the copy holds the parameters of a project, not its code
        return real(words, **how | {"env": {**how["env"], "PYTHONPATH": str(ROOT)}})

    monkeypatch.setattr(repro.subprocess, "run", from_the_clone)
    for name in ("__init__.py", "__main__.py"):
        (tmp_path / "stages/params" / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # the clone's `stages`, not the folder's
    assert repro.main([]) == 2
    told = capsys.readouterr().err
    assert told.count("error:") == 1 and "training.learning_rate" in told
    assert "where: stages/params/protocol.yaml" in told
    assert old.is_dir() and not os.path.exists(".work/leftovers")


def test_a_list_of_paths_that_a_kill_left_empty_has_its_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (["git", "init", "-q"], [*repro.DVC, "init", "-q"]):
        subprocess.run(words, check=True, env=repro.environment())
    Path("dvc.yaml").write_text("stages: {a: {cmd: echo 1 > a, outs: [a]}}\n")
    Path(".dvc/tmp/rwlock").parent.mkdir(exist_ok=True)
    Path(".dvc/tmp/rwlock").touch()
    with pytest.raises(FlowError, match="rm .dvc/tmp/rwlock"):
        repro.dvc("status", "--json")


@pytest.mark.parametrize(
    ("command", "words", "says"),
    [
        (schedule, ("--port", "70000"), "argument --port: expected 0 to 65535, found '70000'"),
        (schedule, ("--jobs", "0"), "argument --jobs: expected 1 to 256, found '0'"),
        (repro, ("--jobs", "many"), "argument --jobs: expected 1 to 256, found 'many'"),
        (repro, ("--retries", "-1"), "argument --retries: expected 0 to 9, found '-1'"),
        (retrain, ("--jobs", "257"), "argument --jobs: expected 1 to 256, found '257'"),
        (bench, ("--locks", "1" * 99), "argument --locks: expected 1 to 10000, found '1"),
    ],
)
def test_a_number_out_of_range_is_told_in_a_line(capsys, command, words, says):
    with pytest.raises(SystemExit, match="2"):
        command.main([*words])
    assert says in capsys.readouterr().err.splitlines()[-1]


def test_a_merge_driver_without_its_files_is_the_users_mistake(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert merge.main(["--driver", "a", "b", "c", "dvc.lock"]) == 2
    assert capsys.readouterr() == ("", "error: a: no such file\n")


@pytest.mark.parametrize(("name", "code"), [("absent", 127), ("README.md", 126)])
def test_a_command_that_cannot_be_run_ends_with_a_shells_exit_code(name, code):
    words = [str(ROOT / name) if name == "README.md" else name]
    done = subprocess.run(leashed(words), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"error: {words[0]}: ")


@pytest.mark.parametrize("command", [repro, schedule, retrain])
def test_a_work_folder_that_cannot_be_written_is_told(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    Path(".work").touch()  # no folder can be made there, by any user
    assert command.main([]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: .work/locks/") and "cannot be written" in told
    assert "remedy: " in told
