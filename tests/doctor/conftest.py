"""Fixtures that several files of this folder share."""

import os
import shutil
import subprocess

import pytest
from ailing import ROOT

from stages.doctor.finding import Place


@pytest.fixture(scope="session")
def healthy(tmp_path_factory):
    """A small healthy project: the real parameters and constraints, DVC's files, a git
    repository with one commit."""
    folder = tmp_path_factory.mktemp("healthy")
    for name in ("params.yaml", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    for name in ("data/sources", "stages/params"):
        shutil.copytree(ROOT / name, folder / name)
    for name, text in {
        ".dvc/config": "[core]\n    analytics = false\n",
        "dvc.yaml": "stages: {}\n",
        ".gitignore": ".work/\n",
        "dvc.lock": "schema: '2.0'\nstages: {}\n",
        "reports/e/dvc.lock": "schema: '2.0'\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def place(healthy, tmp_path):
    """A copy of that project, in an environment of its own."""
    home = shutil.copytree(healthy, tmp_path / "project")
    return Place(home, {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})
