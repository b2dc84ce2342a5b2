"""No stage takes a way to torch whose last digits are the processor maker's and that is not mended.

`x ** 0.5` of a tensor cannot be told from that of a number by reading; stages/arithmetic/kernels.py
says to write `.sqrt()`. What can be read is read here.
"""

import ast
import re
from pathlib import Path

import pytest
from test_security import aliases, dotted

from stages.arithmetic import kernels

ROOT = Path(__file__).parents[2]
FILES = sorted(file for file in (ROOT / "stages").rglob("*.py") if "arithmetic" not in file.parts)
EXACT = "donot_use_mm_for_euclid_dist"  # of torch.cdist: no product of matrices
INFINITE = {"torch.inf", "math.inf", "float('inf')"}
HALVES = {"0.5", "-0.5", "1.5"}  # powers that end in MKL's roots, forward or backward


def name(file):
    return file.relative_to(ROOT).as_posix()


def amiss(call: ast.Call, function: str, precise: bool) -> bool:
    """Whether a call of torch's `function` is one of those; `precise`: the module says float64."""
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    last = function.rpartition(".")[2]
    if last == "cdist":
        return given.get("compute_mode") != repr(EXACT) and given.get("p") not in INFINITE
    if last in kernels.SINGLE:
        return "out" in given
    if last == "pow":
        return bool(HALVES & {*map(ast.unparse, call.args), *given.values()})
    return last == "lstsq" or (last.startswith("cholesky") and not precise)


def strays(source: str) -> list[str]:
    """The calls of a module that go such a way, by torch's name or a tensor's method."""
    tree = ast.parse(source)
    known, precise = aliases(tree), "float64" in (ast.get_docstring(tree) or "")
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = dotted(node.func, known)
        if not function and isinstance(node.func, ast.Attribute):
            function = f"tensor.{node.func.attr}"  # of what a call or an index gave
        top = function.partition(".")[0]
        if top in ("numpy", "np", "scipy", "math", "pl", "polars") or "." not in function:
            continue
        if amiss(node, function, precise):
            found.append(f"{function} (line {node.lineno})")
    return found


def test_no_stage_takes_an_unmended_way():
    found = {name(file): strays(file.read_text(encoding="utf-8")) for file in FILES}
    assert {file: calls for file, calls in found.items() if calls} == {}


def test_there_is_something_to_read():
    text = "".join(file.read_text(encoding="utf-8") for file in FILES)
    assert len(FILES) > 100 and {"torch.cdist", "torch.linalg.cholesky"} <= set(
        re.findall(r"torch\.cdist|torch\.linalg\.cholesky", text)
    )


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.cdist(a, b)",
        "from torch import cdist\ncdist(a, b, p=1.0)",
        "import torch as t\nt.cdist(a, b, compute_mode='use_mm_for_euclid_dist')",
        "import torch\ntorch.linalg.lstsq(a, b)",
        "import torch\ntorch.linalg.cholesky(a)",
        "x.pow(0.5)",
        "f(x)[0].pow(-0.5)",
        "import torch\ntorch.pow(x, exponent=1.5)",
        "import torch\ntorch.sqrt(x, out=y)",
        "torch.linalg.cholesky_ex(a)",
    ],
)
def test_the_reading_finds_what_it_looks_for(source):
    assert len(strays(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        f"import torch\ntorch.cdist(a, b, compute_mode='{EXACT}')",
        "import torch\ntorch.cdist(a, b, p=torch.inf)",
        "import numpy as np\nnp.linalg.lstsq(a, b)",
        "from scipy.spatial.distance import cdist\ncdist(a, b)",
        "np.linalg.cholesky(a)",
        '"""Of float64."""\nimport torch\ntorch.linalg.cholesky(a)',
        "x.pow(2)",
        "x.sqrt()",
        "np.sqrt(x, out=y)",
        "x ** 0.5",
    ],
)
def test_the_reading_leaves_the_harmless_alone(source):
    assert strays(source) == []
