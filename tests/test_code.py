"""The lists of code (stages/code.py): they change with the code of their kind and with nothing else; a wrong stages/code.yaml is told."""

import shutil
from pathlib import Path

import pytest

from stages import code
from stages.files import read_json, sha256

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The code that the lists name, and they, written once."""
    shutil.copytree(
        ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.chdir(tmp_path)
    assert code.main([]) == 0
    return tmp_path


def lists(project: Path) -> dict[str, bytes]:
    return {file.stem: file.read_bytes() for file in (project / code.HOME).iterdir()}


def changed(project: Path, before: dict[str, bytes]) -> set[str]:
    assert code.main([]) == 0
    now = lists(project)
    return {kind for kind in before.keys() | now.keys() if before.get(kind) != now.get(kind)}


def test_a_list_names_every_file_of_its_kind_with_its_sha256(project):
    told = read_json(code.HOME / "sweeps.json")
    wanted = {
        path.relative_to(project).as_posix()
        for folder in ("sweeps", "training")
        for path in (project / "stages" / folder).rglob("*")
        if path.is_file()
    }
    assert wanted < told.keys() and all(sha256(path) == digest for path, digest in told.items())
    assert "stages/page/page.py" not in told


@pytest.mark.parametrize(
    "path, kinds",
    [
        ("stages/sweeps/space.py", {"sweeps"}),
        ("stages/sequences/models/sigma_gpt.py", {"orders_training", "orders_evaluation"}),
        ("stages/layers/mlp.py", {"training", "sweeps", "evaluation"}),
        (
            "stages/fields/models/msa.py",
            {"evaluation"},
        ),  # a training cell depends on its own model's file
        ("stages/page/page.py", set()),
    ],
)
def test_an_edit_changes_the_lists_of_its_kinds_and_no_other(project, path, kinds):
    before = lists(project)
    assert changed(project, before) == set()
    with (project / path).open("a") as stream:
        stream.write("# edited\n")
    assert changed(project, before) == kinds


def test_a_new_file_in_a_folder_is_seen_and_a_compiled_one_is_not(project):
    before = lists(project)
    (project / "stages/sweeps/__pycache__").mkdir()
    (project / "stages/sweeps/__pycache__/new.pyc").write_bytes(b"x")
    assert changed(project, before) == set()
    (project / "stages/sweeps/new.py").write_text("")
    assert changed(project, before) == {"sweeps"}


def test_a_kind_that_is_gone_leaves_no_list(project):
    assert len(lists(project)) > 1
    code.KINDS.write_text("sweeps: [stages/sweeps]\n")
    assert code.main([]) == 0
    assert lists(project).keys() == {"sweeps"}


@pytest.mark.parametrize(
    "text, message",
    [
        ("sweeps: [stages/sweep]\n", "found: stages/sweep"),
        ("sweeps: stages/sweeps\n", "not a mapping of kinds"),
        ("sweeps: [[stages/sweeps]]\n", "not a mapping of kinds"),
        ("- stages/sweeps\n", "not a mapping of kinds"),
        ("sweeps: [stages/sweeps\n", "not plain YAML"),
    ],
)
def test_a_wrong_file_is_told_and_the_lists_stay(project, capsys, text, message):
    before = lists(project)
    code.KINDS.write_text(text)
    assert code.main([]) != 0
    assert message in capsys.readouterr().err and lists(project) == before
