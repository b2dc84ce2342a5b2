"""The tools' verdict on the tree: formatted and linted by ruff; typed by mypy, strictly where all
families build on it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("words", [("format", "--check"), ("check",)], ids=["format", "lint"])
def test_ruff_finds_nothing(words, tmp_path):
    code, text = said("ruff", *words, "--cache-dir", str(tmp_path), "stages", "flows", "tests")
    assert code == 0, text


def test_types_hold():
    code, text = said("mypy", "--cache-dir", ".work/mypy", "--no-error-summary")
    assert code == 0, text


def test_a_fault_planted_is_found(tmp_path):
    file = tmp_path / "planted.py"
    file.write_text("import os\nshort = lambda x: x\n")
    code, text = said(
        "ruff", "check", "--no-cache", "--config", str(ROOT / "pyproject.toml"), str(file)
    )
    assert code == 1 and "F401" in text and "E731" in text
