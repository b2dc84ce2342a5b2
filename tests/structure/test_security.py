"""Nothing that is read can become code: no pickle, no eval, no shell, no YAML that builds
objects, no secrets."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(file for top in ("stages", "flows") for file in (ROOT / top).rglob("*.py"))
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "torch.load",
    "torch.jit.load",
    "torch.hub.load",
    "yaml.load",
    "yaml.load_all",
    "yaml.unsafe_load",
    "yaml.full_load",
    "yaml.unsafe_load_all",
    "yaml.full_load_all",
    "pickle.load",
    "pickle.loads",
    "pickle.Unpickler",
    "numpy.load",
    "np.load",
    "pandas.read_pickle",
    "joblib.load",
    "tempfile.mktemp",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "marshal.loads",
    "marshal.load",
    "shelve.open",
    "importlib.reload",
    "builtins.eval",
    "builtins.exec",
    "code.interact",
    "shutil.unpack_archive",
}
METHODS = {
    "extractall",
    "read_pickle",
    "to_pickle",
}  # whatever they are called on: an archive that names its own places, a pickle
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "jsonpickle",
}
RUNNERS = {f"subprocess.{word}" for word in ("run", "call", "check_call", "check_output", "Popen")}
TRUE_KEYWORDS = {"shell", "allow_pickle"}
SAFE = {"numpy.load", "np.load"}  # only with allow_pickle absent or False
DEEP = {
    call.rpartition(".")[2] for call in CALLS - SAFE if "." in call
} | METHODS  # names that getattr may not fetch from a module


def name(file):
    return file.relative_to(ROOT).as_posix()


def aliases(tree: ast.AST) -> dict[str, str]:
    """What a name of the module stands for: `import torch as t`, `from torch import load as l`,
    `l = torch.load`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            found |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}"
                for alias in node.names
                if node.module
            }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and (told := dotted(node.value, found)) in CALLS
        ):
            found[node.targets[0].id] = told
    return found


def dotted(node: ast.AST, known: dict[str, str] | None = None) -> str:
    """`a.b.c` of a call's function with its first name resolved, empty where it is no plain
    name."""
    if isinstance(node, ast.Name):
        return (known or {}).get(node.id, node.id)
    return (
        f"{dotted(node.value, known)}.{node.attr}"
        if isinstance(node, ast.Attribute) and dotted(node.value, known)
        else ""
    )


def dangers(source: str) -> list[str]:
    """Every dangerous import, call and keyword of a module, under whatever name."""
    tree, found = ast.parse(source), []
    known = aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [
                f"import {alias.name}"
                for alias in node.names
                if alias.name.partition(".")[0] in MODULES
            ]
        elif isinstance(node, ast.ImportFrom):
            imported = {f"{node.module}.{alias.name}" for alias in node.names}
            found += (
                [f"from {node.module}"] if (node.module or "").partition(".")[0] in MODULES else []
            )
            found += sorted(imported & CALLS - SAFE)
        elif isinstance(node, ast.Assign):
            found += [f"= {told}"] if (told := dotted(node.value, known)) in CALLS - SAFE else []
        elif isinstance(node, ast.Call):
            found += called(node, dotted(node.func, known))
    return found


def called(node: ast.Call, told: str) -> list[str]:
    """What is dangerous of one call of the function `told`."""
    found = [told] if told in CALLS - SAFE else []
    found += (
        [f".{node.func.attr}"]
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
        else []
    )
    found += [
        f"{word.arg}=..."
        for word in node.keywords
        if word.arg in TRUE_KEYWORDS and not constant(word.value, False)
    ]
    found += [
        "YAML(typ='unsafe')"
        for word in node.keywords
        if word.arg == "typ" and not constant(word.value, "safe")
    ]
    found += [
        "weights_only=False"
        for word in node.keywords
        if word.arg == "weights_only" and not constant(word.value, True)
    ]
    text = (
        node.args[0]
        if node.args
        else next((word.value for word in node.keywords if word.arg == "args"), None)
    )
    if told in RUNNERS and (
        isinstance(text, ast.JoinedStr)
        or (isinstance(text, ast.Constant) and isinstance(text.value, str))
    ):
        found.append(f"{told} of a text")
    if told in (
        "getattr",
        "operator.attrgetter",
        "attrgetter",
        "importlib.import_module",
        "import_module",
    ):
        words = [
            word.value
            for word in node.args
            if isinstance(word, ast.Constant) and isinstance(word.value, str)
        ]
        found += [
            f"{told} {word}"
            for word in words
            if word.partition(".")[0] in MODULES or word in DEEP | {"eval", "exec", "__import__"}
        ]
    return found


def constant(node: ast.AST, value) -> bool:
    """Whether a node is that very literal."""
    return isinstance(node, ast.Constant) and node.value == value


@pytest.mark.fault("F13")
def test_nothing_read_becomes_code():
    found = {name(file): dangers(file.read_text(encoding="utf-8")) for file in FILES}
    assert {file: calls for file, calls in found.items() if calls} == {}


@pytest.mark.fault("F13")
@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "from torch import load",
        "import yaml\nyaml.load(x)",
        "eval('1')",
        "exec('1')",
        "import subprocess\nsubprocess.run('x', shell=True)",
        "np.load(f, allow_pickle=True)",
        "f(shell=flag)",
        "import os\nos.system('x')",
        "YAML(typ='unsafe')",
        "x.load(f, weights_only=False)",
        "def f():\n    import dill",
        # under other names
        "import torch as t\nt.load('x')",
        "from torch import load as read\nread('x')",
        "import torch\nread = torch.load\nread('x')",
        "import torch\ngetattr(torch, 'load')('x')",
        "import yaml as y\ny.full_load(x)",
        "import builtins\nbuiltins.eval('1')",
        "__import__('pickle')",
        "import importlib\nimportlib.import_module('pickle')",
        "from importlib import import_module as get\nget('marshal')",
        "import operator\noperator.attrgetter('load')(torch)",
        "getattr(__builtins__, 'eval')('1')",
        # commands by text, archives, other pickles
        "import subprocess\nsubprocess.run('ls -l')",
        "from subprocess import run\nrun(f'rm {x}')",
        "import subprocess as s\ns.Popen(args='x')",
        "import marshal",
        "marshal.loads(x)",
        "import tarfile\ntarfile.open('x').extractall('y')",
        "import zipfile\nwith zipfile.ZipFile(x) as z:\n    z.extractall()",
        "import shutil\nshutil.unpack_archive('x')",
        "import pandas\npandas.read_pickle('x')",
        "import os as o\no.popen('x')",
        "import numpy\nnumpy.load(f, allow_pickle=maybe)",
    ],
)
def test_the_scan_finds_what_it_looks_for(source):
    assert dangers(source)


@pytest.mark.parametrize(
    "source",
    [
        "np.load(f, allow_pickle=False)",
        "model.eval()",
        "import subprocess\nsubprocess.run(['x'], shell=False)",
        "YAML(typ='safe')",
        "import re\nre.compile('x')",
        "from subprocess import run\nrun([*words])",
        "import subprocess\nsubprocess.run(command)",
        "getattr(model, 'loss')",
        "from safetensors.torch import load\nload(data)",
        "import json\nread = json.load\nread(f)",
        "archive.extract(name)",
        "from importlib import import_module\nimport_module('stages.cli')",
    ],
)
def test_the_scan_leaves_the_harmless_alone(source):
    assert dangers(source) == []


@pytest.mark.fault("F13")
def test_a_danger_planted_in_a_file_of_ours_is_found():
    """The control on real files: the same scan, each file with one line more."""
    for file in FILES[::7]:
        assert "torch.load" in dangers(
            file.read_text(encoding="utf-8") + "\n\nimport torch as planted\nplanted.load('x')\n"
        )


def test_no_secret_stands_in_the_project():
    """Private keys, access tokens and URLs with a password, in any text file of the project."""
    secret = re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|"
        r"hf_[A-Za-z0-9]{30,}"
    )
    patterns = (
        "*.yaml",
        "*.toml",
        "*.md",
        "*.txt",
        "Makefile",
        ".ci/*",
        ".dvc/config",
        "reports/*/*.yaml",
        "data/**/*.md",
        "tests/**/*.py",
    )
    texts = [file for pattern in patterns for file in ROOT.glob(pattern)]
    assert [
        name(file)
        for file in [*FILES, *texts]
        if file.is_file() and secret.search(file.read_text(encoding="utf-8", errors="replace"))
    ] == []
