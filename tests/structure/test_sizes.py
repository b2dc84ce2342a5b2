"""A file is at most 400 lines, a function 60, a line 100, a table of numbers in git 100 kB; every
module says what it is; where a check is silenced the reason stands beside it."""

import ast
import io
import re
import subprocess
import tokenize
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
MOST = 100_000  # bytes of a metrics.json
TOLD = "  # noqa: "  # what a tool is told after a line does not count, as in ruff
REASONED = re.compile(r"# noqa: [A-Z]+\d+(, [A-Z]+\d+)*\s+\(.+\)")


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


def amiss(told, files) -> dict[str, list[str]]:
    """File -> what `told` finds in it, where it finds something. One case for many files: a
    thousand cases cost more than they read."""
    return {name(file): found for file in files if (found := told(file))}


def too_long(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    sizes = {
        f"{node.name} (line {node.lineno})": node.end_lineno - node.lineno + 1
        for node in functions(file)
    }
    return (
        [f"{len(lines)} lines"] * (len(lines) > 400)
        + [f"{what}: {size} lines" for what, size in sizes.items() if size > 60]
        + [
            f"line {number}"
            for number, line in enumerate(lines, 1)
            if len(line.partition(TOLD)[0]) > LONGEST
        ]
    )


def untold(file: Path) -> list[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    public = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    return ["no docstring at the top"] * (not ast.get_docstring(tree)) + [
        f"{node.name} (line {node.lineno})" for node in public if not ast.get_docstring(node)
    ]


def owed(file: Path) -> list[str]:
    words = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "Not" + "ImplementedError"]
    text = file.read_text(encoding="utf-8")
    return [word for word in words if word in text]


def silent(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    if "noqa" not in text:
        return []
    return [
        f"line {token.start[0]}: {token.string}"
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
        and token.string.startswith("# noqa")
        and not REASONED.fullmatch(token.string)
    ]


def test_files_functions_and_lines_are_short():
    assert amiss(too_long, FILES) == {}


def test_modules_and_public_functions_say_what_they_are():
    assert amiss(untold, CODE) == {}


def test_a_check_is_silenced_for_a_reason():
    assert amiss(silent, FILES) == {}


def test_what_is_amiss_in_a_file_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("test_sizes.ROOT", tmp_path)
    file = tmp_path / "long.py"
    body = "    x = 1\n" * 60
    file.write_text(f"def f():\n{body}# {'x' * LONGEST}\n" + "y = 1\n" * 400 + "# TO" + "DO\n")
    assert amiss(too_long, [file]) == {"long.py": ["463 lines", "f (line 1): 61 lines", "line 62"]}
    assert amiss(untold, [file]) == {"long.py": ["no docstring at the top", "f (line 1)"]}
    assert amiss(owed, [file]) == {"long.py": ["TO" + "DO"]}
    file.write_text("a = 1  # noqa: E1\nb = 1  # noqa: E1, F2 (why)\nc = '# noqa'\n")
    assert amiss(silent, [file]) == {"long.py": ["line 1: # noqa: E1"]}


@pytest.mark.parametrize("file", [ROOT / "dvc.yaml", *sorted(ROOT.glob("*/*/dvc.yaml"))], ids=name)
def test_declarations_are_short(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= (
        100 if file.parent == ROOT else 50
    )


def test_nothing_is_left_to_be_done():
    assert amiss(owed, [*FILES, *TEXTS]) == {}


def test_the_numbers_of_an_experiment_that_git_keeps_are_few():
    sizes = {name(file): file.stat().st_size for file in ROOT.glob("reports/*/*/metrics.json")}
    assert len(sizes) > 20
    assert {path: size for path, size in sizes.items() if size > MOST} == {}


def test_breakdowns_are_not_in_git():
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "reports/*/*/breakdowns.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("no git repository")
    assert done.stdout == ""
