"""Nothing that is read can become code: no pickle, no eval, no shell, no YAML that builds objects, no secrets."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(file for top in ("stages", "flows") for file in (ROOT / top).rglob("*.py"))
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
         "pickle.load", "pickle.loads", "numpy.load", "np.load", "joblib.load", "tempfile.mktemp", "subprocess.getoutput", "marshal.loads"}
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
TRUE_KEYWORDS = {"shell", "allow_pickle"}
SAFE = {"numpy.load", "np.load"}  # only with allow_pickle absent or False
name = lambda file: file.relative_to(ROOT).as_posix()  # noqa: E731


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a call's function, empty where it is no plain name."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) and dotted(node.value) else ""


def dangers(source: str) -> list[str]:
    """Every dangerous import, call and keyword of a module."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [f"import {alias.name}" for alias in node.names if alias.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            imported = {f"{node.module}.{alias.name}" for alias in node.names}
            found += [f"from {node.module}"] if (node.module or "").partition(".")[0] in MODULES else []
            found += sorted(imported & CALLS)
        elif isinstance(node, ast.Call):
            found += [dotted(node.func)] if dotted(node.func) in CALLS - SAFE else []
            found += [f"{word.arg}=..." for word in node.keywords if word.arg in TRUE_KEYWORDS and not constant(word.value, False)]
            found += ["YAML(typ='unsafe')" for word in node.keywords if word.arg == "typ" and not constant(word.value, "safe")]
            found += ["weights_only=False" for word in node.keywords if word.arg == "weights_only" and not constant(word.value, True)]
    return found


def constant(node: ast.AST, value) -> bool:
    """Whether a node is that very literal."""
    return isinstance(node, ast.Constant) and node.value == value


@pytest.mark.parametrize("file", FILES, ids=name)
def test_nothing_read_becomes_code(file):
    assert dangers(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("source", [
    "import pickle", "from pickle import loads", "import torch\ntorch.load('x')", "from torch import load", "import yaml\nyaml.load(x)", "eval('1')", "exec('1')",
    "import subprocess\nsubprocess.run('x', shell=True)", "np.load(f, allow_pickle=True)", "f(shell=flag)", "import os\nos.system('x')", "YAML(typ='unsafe')",
    "x.load(f, weights_only=False)", "def f():\n    import dill"])
def test_the_scan_finds_what_it_looks_for(source):
    assert dangers(source)


@pytest.mark.parametrize("source", ["np.load(f, allow_pickle=False)", "model.eval()", "import subprocess\nsubprocess.run(['x'], shell=False)", "YAML(typ='safe')"])
def test_the_scan_leaves_the_harmless_alone(source):
    assert dangers(source) == []


def test_no_secret_stands_in_the_project():
    """Private keys, access tokens and URLs with a password, in any text file of the project."""
    secret = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,}")
    patterns = ("*.yaml", "*.toml", "*.md", "*.txt", "Makefile", ".ci/*", ".dvc/config", "reports/*/*.yaml", "data/**/*.md", "tests/**/*.py")
    texts = [file for pattern in patterns for file in ROOT.glob(pattern)]
    assert [name(file) for file in [*FILES, *texts] if file.is_file() and secret.search(file.read_text(encoding="utf-8", errors="replace"))] == []
