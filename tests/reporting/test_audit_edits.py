"""What was edited or flipped after it was made is named by the audit, with its producer and all
that rests on it."""

import json
import shutil

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
    number_of,
    project,
    template,
)

from stages.audit.impact import impact
from stages.audit.render import render
from stages.audit.verify import audit
from stages.errors import InputError

ALL = {
    f"{experiment}/mini/simulated/{cell}/{name}"
    for experiment, cells in audit_project.EXPERIMENTS.items()
    for cell in cells
    for name in ("rmse_component_kn", "nse")
}
OF_CELL = {metric for metric in ALL if "/msa-shared-5k-s0/" in metric}
OF_EXPERIMENT = {metric for metric in ALL if metric.startswith("wind_nowcast")}


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


def test_a_flip_is_found_without_a_cache(project):
    shutil.rmtree(project / ".dvc/cache")
    flip(project / DATA / "prepared/simulated/rows.parquet")
    assert audit(NUMBER, "hash", project).verdict == "FAIL"


# --- impact, secrets


def test_impact_lists_every_metric_below_a_file(project):
    assert set(impact(f"{DATA}/raw/simulated/frames_00.csv", project)) == ALL
    assert set(impact(f"./{RUN}/weights.safetensors", project)) == OF_CELL
    assert set(impact(str(project.resolve() / RUN / "weights.safetensors"), project)) == OF_CELL
    with pytest.raises(InputError, match="did you mean 'data/mini/raw/simulated/frames_0"):
        impact(f"{DATA}/raw/simulated/frames_0.csv", project)
    with pytest.raises(InputError):
        impact(
            f"{DATA}/raw/simulated/truth.parquet", project
        )  # no number rests on what only the simulator reads


def test_impact_knows_what_rests_on_code_and_parameters(project):
    assert set(impact("params.yaml", project)) == ALL
    modules = [file.stem for file in (project / "data/code").glob("*.json")]
    told = [impact(f"stages/{name.replace('.', '/')}.py", project) for name in modules]
    assert all(any(line.startswith(f"{name}: ") for line in lines)
               for name, lines in zip(modules, told, strict=True))  # fmt: skip
    assert any(f": {len(ALL)} numbers" in line for lines in told for line in lines)
    (project / "notes.txt").touch()
    with pytest.raises(InputError, match="no published number rests on that file"):
        impact("notes.txt", project)
