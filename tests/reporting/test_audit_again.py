"""The number made again from its checkpoint, and the checkpoint from its data: `--verify eval` and
`--verify train`.

Both run as processes of their own, by the declared commands of the small project's stages.
"""

import json
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from audit_project import (  # noqa: F401 (fixtures)
    EVALUATED,
    NUMBER,
    REPORTS,
    RUN,
    TABLE,
    about,
    agree,
    commit,
    edit,
    evaluation,
    flip,
    forge,
    number_of,
    project,
    template,
)
from safetensors.numpy import load_file, save_file

from stages import params, records
from stages.audit import hashes, laid, rerun, verify
from stages.audit.commands import Command
from stages.audit.render import render
from stages.audit.verify import audit


def test_eval_gives_the_number_to_the_last_bit(project, evaluation):
    found = audit(NUMBER, "eval", project)
    assert found.verdict == "PASS" and "to the last bit" in render(found)


def test_eval_of_an_arm_evaluates_all_its_seeds(project, evaluation):
    assert audit(NUMBER.replace("-s0/", "/"), "eval", project).verdict == "PASS"


def test_eval_allows_what_our_own_repeats_differ_by_and_no_more(project, evaluation):
    # the repeat with another thread moves by this much, the number by half of it
    evaluation(noise=1e-3)
    found = audit(NUMBER, "eval", project)
    assert found.verdict == "PASS" and "tolerance 0.01" in render(found)
    evaluation(noise=1e-3, by=0.1)
    assert audit(NUMBER, "eval", project).verdict == "FAIL"


FORGERIES = [
    ("low", -9.0, 0.0),
    ("high", 9.0, 1e-4),
    ("unit", "m/s", 0.0),
    ("n", 10**6, 1e-4),
    ("low", None, 0.0),
    ("std", 1e-4, 0.0),
]


@pytest.mark.parametrize("key, forged, noise", FORGERIES)
def test_what_is_said_of_a_number_forged_everywhere_falls_to_eval(
    project, evaluation, key, forged, noise
):
    for file, cell in ((EVALUATED, "msa-shared-5k-s0"), (TABLE, "simulated/msa-shared-5k-s0")):
        table = json.loads((project / file).read_text())
        entry = table["cells"][cell]["metrics"]["rmse_component_kn"]
        entry[key] = forged
        table["cells"][cell]["metrics"]["rmse_component_kn"] = {
            name: content for name, content in entry.items() if content is not None
        }
        (project / file).write_text(json.dumps(table))
    agree(project)
    assert audit(NUMBER, "hash", project).verdict == "PASS"
    evaluation(noise=noise)
    found = audit(NUMBER, "eval", project)
    assert (
        found.verdict == "FAIL"
        and f"{key} " in about(found, TABLE)
        and f"published is {forged!r}" in about(found, TABLE)
    )


def test_eval_allows_the_spread_and_interval_of_an_arm_what_its_mean_may_move(
    project, evaluation, monkeypatch
):
    arm, evaluated = NUMBER.replace("-s0/", "/"), rerun.recomputed
    value = json.loads((project / TABLE).read_text())["arms"]["simulated/msa-shared-5k"]["metrics"][
        "rmse_component_kn"
    ]
    for key in ("std", "low", "high"):
        for by, verdict in ((5e-7 * value["mean"], "PASS"), (2e-6 * value["mean"], "FAIL")):
            entry = {key: value[key] + by}
            monkeypatch.setattr(
                rerun, "recomputed", lambda *a, entry=entry, **k: evaluated(*a, **k) | entry
            )
            found = audit(arm, "eval", project)
            assert (
                found.verdict == verdict
                and f"{key} {entry[key]!r}, published is {value[key]!r}" in render(found)
            )


def test_eval_under_other_libraries_blames_nobody(project, evaluation, monkeypatch):
    true = metadata.version
    monkeypatch.setattr(
        records.metadata, "version", lambda name: "0.0.1" if name == "torch" else true(name)
    )
    evaluation(value=2.0)
    found = audit(NUMBER, "eval", project)
    assert found.verdict == "INCONCLUSIVE" and "gives 2.0" in about(found, TABLE)


def test_nothing_is_run_on_a_broken_chain(project, evaluation):
    flip(project / RUN / "weights.safetensors")
    found = audit(NUMBER, "train", project)
    assert found.verdict == "FAIL" and "train was not run" in render(found)


def test_train_gives_the_weights_to_the_last_bit_and_leaves_the_project_alone(project, evaluation):
    before = {
        file: file.stat().st_mtime_ns
        for file in project.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    found = audit(NUMBER, "train", project)
    assert found.verdict == "PASS" and "gives the recorded weights to the last bit" in render(found)
    assert before == {file: file.stat().st_mtime_ns for file in before}


def test_training_again_finds_the_experiments_of_the_real_project(tmp_path, monkeypatch):
    home = Path(__file__).parents[2]
    laid.Laid(home, tmp_path)
    names = {file.parent.name for file in home.glob("reports/*/dvc.yaml")}
    monkeypatch.chdir(tmp_path)
    assert "wind_nowcast" in names and set(params.experiments()) == names
    assert params.load().profiles["mini"] == params.load(home / "params.yaml").profiles["mini"]
    assert not Path("reports/wind_nowcast/mini").is_symlink()  # what training writes stays here


def test_a_process_loads_sources_and_nothing_that_was_compiled_beside_them(project):
    (project / "stages/training/__pycache__").mkdir(exist_ok=True)
    for name in ("__pycache__/train.cpython-311.pyc", "kernel.nbi", "kernel.nbc"):
        (project / "stages/training" / name).write_bytes(b"not what the sources say")
    with tempfile.TemporaryDirectory() as folder:
        laid.Laid(project, Path(folder))
        suffixes = {file.suffix for file in Path(folder, "stages").rglob("*") if file.is_file()}
        assert ".py" in suffixes and suffixes.isdisjoint((".pyc", ".nbi", ".nbc"))


def test_another_command_in_the_lock_than_the_declared_one_fails_and_is_not_run(
    project, evaluation
):
    lock = project / "reports/wind_nowcast/dvc.lock"
    content = hashes.read_data(lock)
    entry = content["stages"]["train-msa-shared-5k-s0"]
    entry["cmd"] = entry["cmd"].replace("--seed 0", "--seed 1")
    lock.write_text(json.dumps(content))
    commit(project)
    found = audit(NUMBER, "train", project)
    assert found.verdict == "FAIL" and "train was not run" in render(found)
    assert "dvc.yaml declares `exec" in render(found)


def test_weights_of_another_seed_forged_everywhere_fall_to_train(project, evaluation):
    shutil.copy(
        project / RUN.replace("-s0", "-s1") / "weights.safetensors",
        project / RUN / "weights.safetensors",
    )
    value = float(load_file(project / RUN / "weights.safetensors")["w"].mean())
    number = {"value": value, "low": value - 1, "high": value + 1}
    for file, key in ((EVALUATED, "msa-shared-5k-s0"), (TABLE, "simulated/msa-shared-5k-s0")):
        table = json.loads((project / file).read_text())
        table["cells"][key]["metrics"]["rmse_component_kn"] |= number
        (project / file).write_text(json.dumps(table))
    agree(project)
    assert audit(NUMBER, "eval", project).verdict == "PASS"
    found = audit(NUMBER, "train", project)
    assert found.verdict == "FAIL" and "gives other weights" in about(
        found, f"{RUN}/weights.safetensors"
    )


def test_a_number_forged_everywhere_falls_to_eval(project, evaluation):
    value = repr(number_of(project))
    for file in (TABLE, EVALUATED):
        edit(project / file, f'"value": {value}', '"value": 1.5')
    forge(project)
    assert audit(NUMBER, "hash", project).verdict == "PASS"  # bytes alone cannot tell
    found = audit(NUMBER, "eval", project)
    assert found.verdict == "FAIL" and "published is 1.5" in about(found, TABLE)


@pytest.fixture
def trained(project, monkeypatch):
    """Training gives the recorded weights moved by `by`, written where the audit looks for them."""
    moved = SimpleNamespace(by=np.zeros(8, np.float32))
    recorded = load_file(project / RUN / "weights.safetensors")["w"].astype(np.float64)

    def again(case, laid, home):
        (laid.folder / home).mkdir(parents=True)
        weights = {"w": (recorded + moved.by).astype(np.float32)}
        save_file(weights, laid.folder / home / "weights.safetensors")

    monkeypatch.setattr(rerun, "trained", again)
    return moved


def seeds_apart(project) -> np.ndarray:
    """What parts the weights of the arm's two seeds."""
    return np.subtract(
        *(
            load_file(project / RUN.replace("-s0", f"-s{seed}") / "weights.safetensors")[
                "w"
            ].astype(np.float64)
            for seed in (1, 0)
        )
    )


@pytest.mark.parametrize("share, verdict", [(0.099, "PASS"), (0.101, "FAIL")])
def test_train_allows_weights_a_tenth_of_the_distance_between_seeds_and_no_more(
    project, evaluation, trained, share, verdict
):
    direction = seeds_apart(project) - seeds_apart(project).mean()  # the number, their mean, stays
    trained.by = (
        share * np.linalg.norm(seeds_apart(project)) * direction / np.linalg.norm(direction)
    )
    found = audit(NUMBER, "train", project)
    assert found.verdict == verdict and "gives other weights" in render(found)
    assert [problem.path for problem in found.problems] == (
        [] if verdict == "PASS" else [f"{RUN}/weights.safetensors"]
    )


@pytest.mark.parametrize("share, verdict", [(0.099, "PASS"), (0.101, "FAIL")])
def test_train_allows_the_number_a_tenth_of_the_difference_between_seeds_and_no_more(
    project, evaluation, trained, share, verdict
):
    trained.by = np.full(8, share * abs(seeds_apart(project).mean()))
    found = audit(NUMBER, "train", project)
    assert found.verdict == verdict and "tolerance" in render(found)
    assert [problem.path for problem in found.problems] == ([] if verdict == "PASS" else [TABLE])


def test_training_of_a_single_seed_again_has_to_give_the_same_bits(project, evaluation, trained):
    shutil.rmtree(
        project / REPORTS / "runs/simulated/msa-shared-5k-s1"
    )  # nothing to measure a distance by
    trained.by = np.full(8, 1e-4)
    found = audit(NUMBER, "train", project)
    assert found.verdict == "FAIL" and "to the nearest other seed 0" in about(
        found, f"{RUN}/weights.safetensors"
    )


@pytest.mark.parametrize("by, verdict", [(0.99e-2, "PASS"), (1.01e-2, "FAIL")])
def test_eval_allows_ten_times_what_a_repeat_moves_the_number_by_and_no_more(
    project, evaluation, by, verdict
):
    # half a thread's noise lies in the first evaluation
    evaluation(noise=1e-3, by=by - 0.5e-3)
    assert audit(NUMBER, "eval", project).verdict == verdict


def test_a_terminal_is_told_what_runs_and_a_pure_number_has_no_unit(tmp_path, monkeypatch, capsys):
    root = tmp_path / "root"
    root.mkdir()
    made, command = laid.Laid(root, tmp_path), Command("stages.winds.evaluate", ("mini",))
    made.server = SimpleNamespace(run=lambda *_, **__: (0, ""))
    made.run(command)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    made.run(command)
    assert capsys.readouterr() == ("", f"running {command} ...\n")
    assert verify.metric_text({"value": 0.5, "unit": "1", "n": 3}) == "0.5, n = 3"
    assert verify.metric_text({"value": 0.5, "unit": "kn"}) == "0.5 kn"
