"""Remedies name `dvc pull` where there is something to pull from, and nowhere else."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages.errors import advice

ROOT = Path(__file__).parents[1]
# Its words are a record of what an entry's reader types, or what must not be done before.
TOLD = {"stages/winds/retraining/judge.py", "stages/errors.py"}


def texts():
    """Every text of the product that names `dvc pull`, its holes filled with x."""
    for file in sorted((ROOT / "stages").rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if "dvc pull" not in file.read_text() or name in TOLD:
            continue
        tree = ast.parse(file.read_text())
        inner = {
            id(part)
            for one in ast.walk(tree)
            if isinstance(one, ast.JoinedStr)
            for part in one.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield (
                    name,
                    "".join(
                        part.value if isinstance(part, ast.Constant) else "x"
                        for part in node.values
                    ),
                )
            elif isinstance(getattr(node, "value", None), str) and id(node) not in inner:
                yield name, node.value


CASES = [(name, text) for name, text in texts() if "dvc pull" in text]


@pytest.mark.parametrize("name, text", CASES, ids=[name for name, _ in CASES])
def test_no_remedy_names_it_without_a_remote_and_every_one_does_with(tmp_path, name, text):
    shown = advice(text, tmp_path)
    assert "dvc pull" not in shown and shown.count("`") % 2 == 0 and "()" not in shown
    assert not shown.strip().endswith(("or", ",")) and any(
        word in shown for word in ("dvc repro", "dvc checkout", "make repro")
    )
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text("[core]\n    analytics = false\n")
    assert advice(text, tmp_path) == shown
    (tmp_path / ".dvc/config.local").write_text("['remote \"store\"']\n    url = /mnt/dvc\n")
    assert advice(text, tmp_path) == text


def test_there_are_such_remedies():
    assert len(CASES) > 8


def test_the_command_tells_it_so(tmp_path):
    """A missing file, asked for by the command: with a remote `dvc pull` is offered."""

    def said():
        line = [sys.executable, "-m", "stages.cli", "benchmark", "made"]
        done = subprocess.run(
            line,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0 and "a file is missing" in done.stderr
        return done.stderr

    shutil.copy(ROOT / "params.yaml", tmp_path)  # the mark of a clone
    assert "remedy: run `dvc repro`\n" in said()
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text(
        "[core]\n    remote = s\n['remote \"s\"']\n    url = /s\n"
    )
    assert "remedy: run `dvc repro` (or `dvc pull`)\n" in said()
