"""A file is at most 400 lines, a function 60, a line 100; every module says what it is."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(file for top in ("stages", "flows", "tests") for file in (ROOT / top).rglob("*.py"))
CODE = [
    file for file in FILES if file.relative_to(ROOT).parts[0] != "tests" and file.stat().st_size
]
TEXTS = [
    file
    for pattern in ("*.yaml", "*.toml", "Makefile", ".ci/*", "*/*/dvc.yaml")
    for file in ROOT.glob(pattern)
]
LONGEST = 100
TOLD = "  # noqa: "  # what a tool is told after a line does not count, as in ruff


def name(file):
    return file.relative_to(ROOT).as_posix()


def functions(file: Path):
    return [
        node
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_there_is_something_to_check():
    assert len(CODE) > 30 and len(FILES) > len(CODE)


@pytest.mark.parametrize("file", FILES, ids=name)
def test_files_functions_and_lines_are_short(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 400
    long = {
        f"{node.name} (line {node.lineno})": node.end_lineno - node.lineno + 1
        for node in functions(file)
    }
    assert {what: size for what, size in long.items() if size > 60} == {}
    assert [
        number for number, line in enumerate(lines, 1) if len(line.partition(TOLD)[0]) > LONGEST
    ] == []


@pytest.mark.parametrize("file", CODE, ids=name)
def test_modules_and_public_functions_say_what_they_are(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "no docstring at the top"
    public = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [
        f"{node.name} (line {node.lineno})" for node in public if not ast.get_docstring(node)
    ] == []


@pytest.mark.parametrize("file", [ROOT / "dvc.yaml", *sorted(ROOT.glob("*/*/dvc.yaml"))], ids=name)
def test_declarations_are_short(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= (
        100 if file.parent == ROOT else 50
    )


@pytest.mark.parametrize("file", [*FILES, *TEXTS], ids=name)
def test_nothing_is_left_to_be_done(file):
    words = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "Not" + "ImplementedError"]
    text = file.read_text(encoding="utf-8")
    assert [word for word in words if word in text] == []
