"""The import contracts of pyproject.toml hold, and each of them can break."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Every contract broken once: file -> a forbidden import.
PLANTS = {
    "stages/errors.py": "import stages.files",
    "stages/winds/claims.py": "import stages.sequences.claims",
    "stages/winds/sky/wind.py": "import stages.batches",
    "stages/layers/mlp.py": "import pathlib",
    "flows/__init__.py": "import stages.errors",
    "stages/training/cells.py": "import prefect, matplotlib",
    "stages/fields/train.py": "import great_expectations",
}
pytest.importorskip("importlinter")


def lint(folder: Path) -> subprocess.CompletedProcess:
    code = (
        "import sys\nsys.path.insert(0, '.')\nfrom importlinter.cli import lint_imports\n"
        "sys.exit(lint_imports(no_cache=True))"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The code and its contracts, where violations can be planted."""
    folder = tmp_path_factory.mktemp("code")
    for name in ("stages", "flows"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_contracts_hold():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


def test_every_contract_can_break(copy):
    for name, line in PLANTS.items():
        with (copy / name).open("a") as stream:
            stream.write(f"\n{line}\n")
    done = lint(copy)
    section = (ROOT / "pyproject.toml").read_text().partition("[tool.importlinter]")[2]
    contracts = re.findall(r'(?m)^name = "(.*)"$', section.partition("[tool.ruff]")[0])
    assert len(contracts) == 8 and done.returncode == 1
    assert {
        name for name in contracts if f"{name} BROKEN" in re.sub(r"\s+", " ", done.stdout)
    } == set(contracts), done.stdout


def test_flows_name_three_modules_of_the_stages_and_no_other():
    """DVC's command line says what a flow runs. Three processes are no stages of its graph: the
    check of all parameters before it, the steps of a retraining around it, and a start that a
    benchmark times."""
    named = {
        (file.name, module)
        for file in (ROOT / "flows").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for module in re.findall(r"\bstages(?:\.[a-z_]+)+", node.value)
    }
    assert named == {
        ("repro.py", "stages.params"),
        ("retrain.py", "stages.winds.retraining"),
        ("bench.py", "stages.winds.acquire"),
    }
