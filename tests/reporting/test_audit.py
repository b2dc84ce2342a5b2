"""The audit finds what was planted, says where, and finds nothing else.

Each test gets its own copy of a small project that real git and real DVC have committed.
"""

import json
import shutil
import sys
from importlib import metadata

import audit_project
import pytest
from audit_project import (  # noqa: F401 (fixtures)
    DATA,
    EVALUATED,
    NUMBER,
    REPORTS,
    RUN,
    TABLE,
    about,
    edit,
    flip,
    forge,
    number_of,
    project,
    template,
)

from stages import records
from stages.audit import audit, impact, render, settings
from stages.errors import InputError

ALL = {
    f"{experiment}/mini/simulated/{cell}/{name}"
    for experiment, cells in audit_project.EXPERIMENTS.items()
    for cell in cells
    for name in ("rmse_component_kn", "nse")
}
OF_CELL = {metric for metric in ALL if "/msa-shared-5k-s0/" in metric}
OF_EXPERIMENT = {metric for metric in ALL if metric.startswith("wind_nowcast")}


# --- an honest number


@pytest.mark.parametrize("depth", ["record", "hash"])
@pytest.mark.parametrize(
    "name",
    [
        NUMBER,
        NUMBER.replace("rmse_component_kn", "nse"),
        NUMBER.replace("-s0/", "/"),
        NUMBER.replace("msa-shared-5k-s0", "knn"),
        NUMBER.replace("rmse_component_kn", "by_altitude/low/nse"),
    ],
)
def test_an_honest_number_passes_and_its_chain_reaches_the_raw_files(project, name, depth):
    found = audit(name, depth, project)
    assert (found.verdict, found.exit_code, found.problems, found.resting) == ("PASS", 0, [], [])
    assert [step.stage for step in found.steps if step.stage] == [
        "value",
        "tabulate",
        "evaluate",
        *["train"] * (2 if "msa-shared-5k/" in name else 1),
        "prepare",
        "validate",
        "decode",
        "acquire",
        "commit",
    ]
    assert {f"{DATA}/raw/simulated/frames_00.csv", f"{DATA}/raw/simulated/frames_01.csv"} <= set(
        found.files
    )
    text = render(found)
    assert "licence MIT, source simulated" in text and text.endswith("PASS")
    head = audit_project.subprocess.run(
        ["git", "-C", project, "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout
    assert head[:12] in text


def test_the_published_value_is_the_one_printed(project):
    assert repr(number_of(project)) in render(audit(NUMBER, root=project))


def test_what_lies_outside_the_cone_does_not_matter(project):
    flip(project / REPORTS / "evaluated/simulated/predictions-knn.parquet")
    flip(project / REPORTS / "evaluated/simulated/field-knn.parquet")
    flip(
        project / DATA / "prepared/other/rows.parquet"
    )  # another data set's, which the figures are drawn from
    flip(project / DATA / "raw/simulated/truth.parquet")
    flip(project / REPORTS / "runs/simulated/msa-shared-5k-s1/weights.safetensors")
    edit(project / "params.yaml", "\nrun: *mini", "\nrun: *other")
    (project / "notes.txt").write_text("an uncommitted file")
    assert audit(NUMBER, "hash", project).verdict == "PASS"


@pytest.mark.parametrize(
    "wrong, hint",
    [
        ("wind_nowcast/mini/simulated/knn/rmse_component_knt", "did you mean 'rmse_component_kn'"),
        ("wind_nowcast/mini/simulated/knm/nse", "simulated/knn"),
        ("wind_nowcasts/mini/simulated/knn/nse", "did you mean 'wind_nowcast/mini'"),
        ("nse", "EXPERIMENT/PROFILE"),
        ("a/b/../c/d", "EXPERIMENT/PROFILE"),
    ],
)
def test_an_unknown_number_is_the_askers_mistake(project, wrong, hint):
    with pytest.raises(InputError, match=hint) as caught:
        audit(wrong, root=project)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "name, below",
    [
        ("by_altitude/low", "a group of: nse"),
        ("by_altitude", "a group of: low"),
        ("metrics", "a group of: nse, rmse_component_kn"),
        ("metrics/nse/unit", "'1'"),
    ],
)
@pytest.mark.parametrize("depth", ["record", "eval"])
def test_a_group_of_numbers_is_the_askers_mistake_and_told_what_it_holds(
    project, name, below, depth
):
    with pytest.raises(InputError, match="holds no number") as caught:
        audit(NUMBER.replace("rmse_component_kn", name), depth, project)
    assert caught.value.exit_code == 2 and below in str(caught.value)


def test_an_evaluation_without_the_number_fails(project):
    edit(project / EVALUATED, '"rmse_component_kn"', '"rmse"')
    found = audit(NUMBER.replace("-s0/", "-s1/"), root=project)
    assert found.verdict == "FAIL"
    content = (project / EVALUATED).read_text()
    (project / EVALUATED).write_text(content.replace('"rmse_component_kn"', '"rmse"'))
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "does not hold this number" in about(found, EVALUATED)


def test_an_unknown_depth_is_the_askers_mistake(project):
    with pytest.raises(InputError, match="did you mean 'hash'"):
        audit(NUMBER, "hsh", project)


# --- numbers edited by hand


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.fault("F20")
def test_a_metric_edited_in_git_fails(project, committed):
    value = repr(number_of(project))
    edit(project / TABLE, f'"value": {value}', f'"value": 1{value}')
    if committed:
        audit_project.commit(project)
    found = audit(NUMBER, root=project)
    assert (found.verdict, found.exit_code) == ("FAIL", 1)
    assert value in about(found, TABLE) and "edited by hand" in about(found, TABLE)
    assert ("differs from the commit" in about(found, TABLE)) is not committed
    assert set(found.resting) == OF_EXPERIMENT


@pytest.mark.fault("F20")
def test_a_metric_edited_with_a_matching_evaluation_fails(project):
    value = repr(number_of(project))
    for file in (TABLE, EVALUATED):
        edit(project / file, f'"value": {value}', f'"value": 1{value}')
    audit_project.commit(project)
    found = audit(NUMBER, "hash", project)
    assert found.verdict == "FAIL" and about(found, TABLE) and about(found, EVALUATED)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(
    "name", ["table.md", "claims.json", "figures/by_lead.svg", "figures/map.png"]
)
def test_what_stands_beside_the_number_cannot_be_edited(project, name, committed):
    file = project / REPORTS / name
    file.write_bytes(
        file.read_bytes().replace(b"a", b"A").replace(b"true", b"1.00")
    )  # the size is as it was
    if committed:
        audit_project.commit(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "edited by hand" in about(found, f"{REPORTS}/{name}")
    assert ("differs from the commit" in about(found, f"{REPORTS}/{name}")) is not committed
    assert set(found.resting) == OF_EXPERIMENT
    assert any(step.status == "FAIL" and step.path == f"{REPORTS}/{name}" for step in found.steps)
    file.unlink()
    assert "missing" in about(audit(NUMBER, root=project), f"{REPORTS}/{name}")


@pytest.mark.parametrize(
    "path, resting",
    [
        ("reports/wind_nowcast/companions.csv", OF_EXPERIMENT),
        ("data/published/thesis_table_1_2.csv", ALL),
    ],
)
def test_an_edited_source_fails_though_nothing_produced_it(project, path, resting):
    flip(project / path)
    audit_project.commit(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == "FAIL" and "SHA-256" in about(found, path)
    assert set(found.resting) == resting
    assert any(step.status == "FAIL" and step.path.startswith("sources") for step in found.steps)
    (project / path).unlink()
    assert "`git checkout` it" in about(audit(NUMBER, root=project), path)


@pytest.mark.parametrize("cached", [False, True])
def test_figures_are_in_git_and_need_no_copy_in_the_cache(project, cached):
    figures = {
        (project / REPORTS / "figures" / name).read_bytes() for name in ("by_lead.svg", "map.png")
    }
    for file in (project / ".dvc/cache/files/md5").glob("??/*"):
        if file.read_bytes() in figures or (not cached and b"by_lead.svg" in file.read_bytes()):
            file.unlink()
    assert audit(NUMBER, "hash", project).verdict == "PASS"
    flip(project / REPORTS / "figures/map.png")
    assert audit(NUMBER, "hash", project).verdict == "FAIL"


# --- bytes flipped, time stamps kept


@pytest.mark.parametrize(
    "path, producer, resting",
    [
        (f"{DATA}/raw/simulated/frames_01.csv", "stages.acquisition.acquire", ALL),
        (f"{DATA}/raw/simulated/manifest.json", "stages.acquisition.acquire", ALL),
        (f"{DATA}/decoded/simulated/winds.parquet", "stages.preparation.decode", ALL),
        (f"{DATA}/validated/simulated.json", "stages.validation.validate", ALL),
        (f"{DATA}/prepared/simulated/rows.parquet", "stages.preparation.prepare", ALL),
        (f"{RUN}/weights.safetensors", "--arm shared --size 5k --seed 0", OF_CELL),
        (f"{RUN}/history.json", "--arm shared --size 5k --seed 0", OF_CELL),
        (EVALUATED, "stages.evaluation.evaluate", OF_EXPERIMENT),
        (
            f"{REPORTS}/evaluated/simulated/predictions-msa-shared-5k-s0.parquet",
            "stages.evaluation.evaluate",
            OF_CELL,
        ),
        (TABLE, "tabulate", None),
        (
            f"{REPORTS}/evaluated/simulated/field-msa-shared-5k-s0.parquet",
            "stages.evaluation.evaluate",
            OF_CELL,
        ),
        (f"{REPORTS}/figures/map.png", "tabulate", OF_EXPERIMENT),
        (f"{DATA}/records/simulated.decode.json", "stages.preparation.decode", None),
    ],
)
@pytest.mark.fault("F10")
def test_a_flipped_byte_is_named_with_its_producer_and_all_that_rests_on_it(
    project, path, producer, resting
):
    flip(project / path)
    found = audit(NUMBER, "hash", project)
    assert found.verdict == "FAIL"
    problems = [problem for problem in found.problems if problem.path == path and problem.broken]
    assert problems and all(producer in problem.producer for problem in problems)
    assert any(
        step.status == "FAIL" and (path in step.path or path in step.detail) for step in found.steps
    )
    if resting is not None:
        assert set(found.resting) == resting
        assert all(metric.rpartition("/")[0] in render(found) for metric in resting)


@pytest.mark.fault("F10")
def test_dvc_itself_does_not_see_a_flipped_cache_object_and_the_audit_does(project):
    lock = (project / "dvc.lock").read_text()
    record = json.loads((project / DATA / "records/simulated.prepare.json").read_text())
    assert "data/mini/prepared/simulated" in lock and record
    rows = (project / DATA / "prepared/simulated/rows.parquet").read_bytes()
    objects = [
        file
        for file in (project / ".dvc/cache/files/md5").glob("??/*")
        if file.read_bytes() == rows
    ]
    assert len(objects) == 1
    flip(objects[0])
    found = audit(NUMBER, "hash", project)
    assert found.verdict == "FAIL" and "cache is damaged" in about(
        found, f"{DATA}/prepared/simulated/rows.parquet"
    )
    assert set(found.resting) == ALL
    assert audit(NUMBER, "record", project).verdict == "PASS"


@pytest.mark.fault("F10", "F14")
def test_a_flipped_manifest_in_the_cache_fails(project):
    manifests = list((project / ".dvc/cache/files/md5").glob("??/*.dir"))
    for file in manifests:
        flip(file)
    found = audit(NUMBER, "hash", project)
    assert found.verdict == "FAIL" and "manifest in DVC's cache is damaged" in about(
        found, f"{DATA}/raw/simulated"
    )


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


# --- what is not here


@pytest.mark.parametrize(
    "path",
    [
        f"{DATA}/raw/simulated/frames_00.csv",
        f"{DATA}/decoded/simulated/winds.parquet",
        f"{RUN}/weights.safetensors",
        f"{DATA}/validated/simulated.json",
    ],
)
@pytest.mark.parametrize("depth", ["record", "hash"])
def test_a_missing_file_is_named_with_the_remedy(project, path, depth):
    (project / path).unlink()
    found = audit(NUMBER, depth, project)
    assert "missing" in about(found, path) and "dvc pull" in about(found, path)
    assert found.verdict == (
        "FAIL" if "validated" in path else "INCONCLUSIVE"
    )  # deleted from git's tree: dirty


def test_an_empty_cache_is_inconclusive(project):
    shutil.rmtree(project / ".dvc/cache")
    found = audit(NUMBER, "hash", project)
    assert (
        found.verdict == "INCONCLUSIVE"
        and "not in DVC's cache" in render(found)
        and "dvc pull" in render(found)
    )


def test_a_flip_is_found_without_a_cache(project):
    shutil.rmtree(project / ".dvc/cache")
    flip(project / DATA / "prepared/simulated/rows.parquet")
    assert audit(NUMBER, "hash", project).verdict == "FAIL"


def test_a_missing_record_is_inconclusive(project):
    (project / DATA / "records/simulated.prepare.json").unlink()
    audit_project.commit(project)
    found = audit(NUMBER, root=project)
    assert found.verdict == "INCONCLUSIVE" and "no record says how it was made" in about(
        found, f"{DATA}/prepared/simulated/rows.parquet"
    )


def test_without_git_the_number_has_no_commit(project):
    shutil.rmtree(project / ".git")
    found = audit(NUMBER, root=project)
    assert found.verdict == "INCONCLUSIVE" and "no commit" in render(found)


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


# --- impact, secrets


def test_impact_lists_every_metric_below_a_file(project):
    assert set(impact(f"{DATA}/raw/simulated/frames_00.csv", project)) == ALL
    assert set(impact(f"./{RUN}/weights.safetensors", project)) == OF_CELL
    with pytest.raises(InputError, match="did you mean 'data/mini/raw/simulated/frames_0"):
        impact(f"{DATA}/raw/simulated/frames_0.csv", project)
    with pytest.raises(InputError):
        impact(
            f"{DATA}/raw/simulated/truth.parquet", project
        )  # no number rests on what only the simulator reads


@pytest.mark.fault("F20")
def test_a_secret_in_a_source_is_never_printed(project):
    manifest = project / DATA / "raw/simulated/manifest.json"
    edit(
        manifest,
        '"source": "simulated"',
        '"source": "https://alice:hunter2@example.org/f?token=s3cret&x=1"',
    )
    text = render(audit(NUMBER, "hash", project))
    assert "FAIL" in text and "example.org/f" in text
    assert not any(word in text for word in ("alice", "hunter2", "s3cret"))


def test_a_fresh_clone_without_data_is_inconclusive_and_told_what_to_pull(project):
    shutil.rmtree(project / ".dvc/cache")
    for folder in (
        "data/mini/raw",
        "data/mini/decoded",
        "data/mini/prepared",
        f"{REPORTS}/runs",
        f"{REPORTS}/evaluated",
    ):
        for file in (project / folder / "simulated").rglob("*"):
            if file.is_file():
                file.unlink()
    found = audit(NUMBER, "hash", project)
    assert found.verdict == "INCONCLUSIVE" and "dvc pull" in about(
        found, f"{RUN}/weights.safetensors"
    )
