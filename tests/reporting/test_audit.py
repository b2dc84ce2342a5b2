"""The audit finds what was planted, says where, and finds nothing else.

Each test gets its own copy of a small project that real git and real DVC have committed.
"""

import shutil

import audit_project
import pytest
from audit_project import (  # noqa: F401 (fixtures)
    DATA,
    EVALUATED,
    NUMBER,
    REPORTS,
    RUN,
    about,
    edit,
    flip,
    number_of,
    project,
    template,
)

from stages.audit.render import render
from stages.audit.verify import audit
from stages.errors import InputError

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


def test_without_git_the_number_has_no_commit(project):
    shutil.rmtree(project / ".git")
    found = audit(NUMBER, root=project)
    assert found.verdict == "INCONCLUSIVE" and "no commit" in render(found)


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
