"""Every fault of the list, F1 to F20, has a test that is marked with its number, and `make test`
runs those it must.

The marks are read from the source, so that a test that is not collected here (another machine, a
missing library) counts as written.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBERS = [f"F{number}" for number in range(1, 21)]
ALWAYS = [
    "F2",
    "F4",
    "F8",
    "F9",
    "F10",
    "F20",
]  # also in `make test`, so not only by tests marked slow_fault
SLOW = "slow_fault"


def marks(node: ast.AST) -> list[tuple[str, list]]:
    """(name, arguments) of each `pytest.mark.name(...)` among a function's decorators."""
    found = []
    for decorator in getattr(node, "decorator_list", []):
        call = decorator if isinstance(decorator, ast.Call) else None
        words = ast.unparse(call.func if call else decorator).split(".")
        if words[:2] == ["pytest", "mark"]:
            found.append(
                (
                    words[2],
                    [
                        argument.value if isinstance(argument, ast.Constant) else None
                        for argument in (call.args if call else [])
                    ],
                )
            )
    return found


def marked(source: str) -> list[tuple[str, list[str], bool]]:
    """(test, its fault numbers, whether `make test` may leave it out) of a test file."""
    told = []
    for node in ast.walk(ast.parse(source)):
        own = marks(node)
        numbers = [number for name, arguments in own if name == "fault" for number in arguments]
        if numbers:
            told.append((node.name, numbers, SLOW in [name for name, _ in own]))
    return told


FOUND = {
    file: marked(file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "tests").rglob("test_*.py"))
}
TESTS = [test for tests in FOUND.values() for test in tests]


def test_the_reading_finds_marks_and_their_absence():
    source = (
        '@pytest.mark.slow_fault\n@pytest.mark.fault("F1", "F5")\ndef test_a():\n    pass\n\n'
        '@pytest.mark.parametrize("x", [1])\ndef test_b(x):\n    pass\n'
    )
    assert marked(source) == [("test_a", ["F1", "F5"], True)]
    assert marked('def test_a():\n    """fault F3"""\n') == []


@pytest.mark.parametrize("number", NUMBERS)
def test_a_fault_of_the_list_has_a_test(number):
    assert [name for name, numbers, _ in TESTS if number in numbers]


def test_the_list_of_faults_tells_where_each_is_tested():
    text = ast.get_docstring(ast.parse((ROOT / "tests/faults/conftest.py").read_text()))
    parts = re.split(r"(?m)^(F\d+) ", text)
    told = {
        number: set(re.findall(r"test_\w+", where))
        for number, where in zip(parts[1::2], parts[2::2], strict=True)
    }
    found = {
        number: {file.stem for file, tests in FOUND.items() for _, had, _ in tests if number in had}
        for number in NUMBERS
    }
    assert told == found


@pytest.mark.parametrize("number", ALWAYS)
def test_what_make_test_must_run_is_not_only_slow(number):
    assert [name for name, numbers, slow in TESTS if number in numbers and not slow]


def test_no_mark_names_a_fault_that_is_not_on_the_list():
    assert {number for _, numbers, _ in TESTS for number in numbers} <= set(NUMBERS)
    assert all(name.startswith("test_") for name, _, _ in TESTS)
