"""What records and locks tell is held against code, parameters and versions of the commit."""

import json
import shutil
import sys
from importlib import metadata

import audit_project
import pytest
from audit_project import DATA, NUMBER, REPORTS, RUN, TABLE, about, edit, forge, project, template  # noqa: F401 (fixtures)

from stages import records
from stages.audit import settings
from stages.audit.render import render
from stages.audit.verify import audit

# --- checkpoints and seeds


def test_a_checkpoint_of_another_seed_fails(project):
    shutil.copy(
        project / RUN.replace("-s0", "-s1") / "weights.safetensors",
        project / RUN / "weights.safetensors",
    )
    found = audit(NUMBER, "hash", project)
    assert found.verdict == "FAIL" and "bytes are not those recorded" in about(
        found, f"{RUN}/weights.safetensors"
    )


def test_a_checkpoint_swapped_with_its_record_fails_without_reading_it(project):
    record = project / REPORTS / "records/simulated.msa-shared-5k-s0.train.json"
    shutil.copy(str(record).replace("-s0", "-s1"), record)
    shutil.copy(
        project / RUN.replace("-s0", "-s1") / "weights.safetensors",
        project / RUN / "weights.safetensors",
    )
    audit_project.commit(project)
    text = about(audit(NUMBER, "record", project), record.relative_to(project).as_posix())
    assert "outputs of another place" in text and "named for seed 0, its record says seed 1" in text


def test_a_relabelled_seed_fails(project):
    record = f"{REPORTS}/records/simulated.msa-shared-5k-s0.train.json"
    edit(project / record, '"seed": 0', '"seed": 1')
    forge(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "named for seed 0, its record says seed 1" in about(
        found, record
    )


# --- environment, parameters, code, sources


@pytest.mark.fault("F20")
def test_another_library_version_is_inconclusive_and_listed(project, monkeypatch):
    true = metadata.version
    monkeypatch.setattr(
        records.metadata, "version", lambda name: "0.0.1" if name == "numpy" else true(name)
    )
    found = audit(NUMBER, "hash", project)
    assert (found.verdict, found.exit_code) == ("INCONCLUSIVE", 3)
    assert f"numpy {true('numpy')} -> 0.0.1" in render(found)


def test_other_constraints_are_inconclusive(project):
    edit(project / "constraints.txt", "==", "==0+")
    found = audit(NUMBER, root=project)
    assert found.verdict == "INCONCLUSIVE" and "constraints.txt has changed" in render(found)


@pytest.mark.parametrize(
    "old, new, key, stage",
    [
        ("roll_max_deg: 5.0", "roll_max_deg: 6.0", "decode", "decode"),
        (
            "steps: 1500, validate_every: 250",
            "steps: 1501, validate_every: 250",
            "profiles.mini.training",
            "train",
        ),
        ("embargo_s: 1800", "embargo_s: 900", "profiles.mini.prepare.simulated", "prepare"),
        ("seed: 20260", "seed: 1", "datasets.simulated", "acquire"),
    ],
)
def test_edited_parameters_are_stale(project, old, new, key, stage):
    edit(project / "params.yaml", old, new)
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL"
    assert f"stale: {stage}" in about(found, "params.yaml") and f"with {key} = " in about(
        found, "params.yaml"
    )
    assert {
        problem.producer.split()[0] for problem in found.problems if problem.path == "params.yaml"
    } == {stage}


def test_a_locks_parameters_are_found_wherever_they_stand():
    told = {
        "params.yaml": {"decode": 1},
        "stages/params/models/msa.yaml": {"arms.shared": 2},
        "stages/params/budgets/mini/winds.yaml": {"training": 3},
        "stages/params/protocol.yaml": {"training": 4},
        "elsewhere.yaml": {"x": 5},
    }
    assert settings.whole_keys(told) == {
        "decode": ("params.yaml", 1),
        "models.msa.arms.shared": ("stages/params/models/msa.yaml", 2),
        "profiles.mini.training": ("stages/params/budgets/mini/winds.yaml", 3),
        "training": ("stages/params/protocol.yaml", 4),
    }


def test_an_edited_parameter_in_a_record_fails(project):
    record = f"{REPORTS}/records/simulated.msa-shared-5k-s0.train.json"
    edit(project / record, '"steps": 1500', '"steps": 9000')
    forge(project)
    assert "steps = 9000, the parameters say 1500" in about(audit(NUMBER, root=project), record)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("name, word", [("__init__.py", "changed"), ("extra.py", "new")])
def test_edited_code_fails_by_name(project, committed, name, word):
    file = project / "stages/training" / name
    file.write_text('NAME = "another"\n')
    train = project / "stages/training/train.py"
    if name == "extra.py":
        train.write_text("from stages.training import extra  # noqa\n" + train.read_text())
    if committed:
        audit_project.commit(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL"
    assert f"stages/training/{name} ({word})" in about(
        found, f"{REPORTS}/records/simulated.msa-shared-5k-s0.train.json"
    )


def test_deleted_code_fails_by_name(project):
    (project / "stages/preparation/prepare.py").unlink()
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "stages/preparation/prepare.py (gone)" in render(found)


@pytest.mark.parametrize("committed", [False, True])
def test_another_word_in_a_docstring_is_no_other_code(project, committed):
    file = project / "stages/training/train.py"
    file.write_text('"""Said otherwise."""\n\n' + file.read_text() + "# and a comment\n")
    if committed:
        audit_project.run(project, sys.executable, "-m", "stages.code")
        audit_project.relock(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == ("PASS" if committed else "FAIL")
    told = about(found, f"{REPORTS}/records/simulated.msa-shared-5k-s0.train.json")
    assert told == ""  # its record's bytes stand in git's history, and mean the same


def test_a_list_of_code_that_is_not_the_sources_fails(project):
    path = "data/code/training.train.json"
    content = json.loads((project / path).read_text())
    content["stages/training/train.py"] = "0" * 64
    (project / path).write_text(json.dumps(content))
    audit_project.commit(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "not the list of its module's code" in about(found, path)


@pytest.mark.fault("F20")
def test_uncommitted_results_fail(project):
    audit_project.run(project, "git", "rm", "-q", "--cached", TABLE)
    audit_project.run(
        project,
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit",
        "-q",
        "-m",
        "forget the table",
    )
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "not committed" in about(found, TABLE)


def test_a_lock_entry_edited_by_hand_fails(project):
    lock = (project / "dvc.lock").read_text()
    at = lock.index("md5: ", lock.index("- path: data/mini/decoded/simulated")) + 5
    (project / "dvc.lock").write_text(lock[:at] + "0" * 32 + lock[at + 32 :])
    found = audit(NUMBER, root=project)
    assert (
        found.verdict == "FAIL"
        and "stale" in about(found, f"{DATA}/decoded/simulated")
        and "differs from the commit" in about(found, "dvc.lock")
    )


def test_a_broken_lock_fails(project):
    (project / "dvc.lock").write_text("stages: [1, 2\n")
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "dvc.lock" in render(found)


def test_a_pin_that_the_raw_file_does_not_meet_fails(project):
    edit(
        project / "params.yaml",
        "    kind: simulate\n",
        "    kind: simulate\n    files: {frames_00.csv: {sha256: " + "a" * 64 + "}}\n",
    )
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "datasets.simulated pins aaaaaaaaaaaa" in about(
        found, f"{DATA}/raw/simulated/frames_00.csv"
    )


def test_a_missing_record_is_inconclusive(project):
    (project / DATA / "records/simulated.prepare.json").unlink()
    audit_project.commit(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == "INCONCLUSIVE" and "no record says how it was made" in about(
        found, f"{DATA}/prepared/simulated/rows.parquet"
    )


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"stage": 1}',
        "\x00",
        (
            '{"stage": "decode", "cell": "x", "inputs": {"../../etc/passwd": {"sha256": "", '
            '"bytes": 1}}}'
        ),
    ],
)
def test_a_file_that_is_no_record_fails_and_does_not_crash(project, text):
    (project / DATA / "records/simulated.decode.json").write_text(text)
    found = audit(NUMBER, "hash", project)
    assert found.verdict == "FAIL" and "cannot be read" in about(
        found, f"{DATA}/records/simulated.decode.json"
    )
