"""What a file means (stages/code/syntax.py): which edits change its digest, which do not, and that
every Python finds the same."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import code
from stages.code.project import Project

ROOT = Path(__file__).parents[1]
THIRD = [*Project(ROOT, ("stages", "flows")).modules.values()][::3]  # all of them take their time

WHOLE = '''"""What it is."""

from dataclasses import dataclass


@dataclass
class Cell:
    """A cell."""

    size: int = 3


def area(width, height=2):
    """Width times height."""
    limit = 10
    return min(width * height, limit)  # never more
'''


@pytest.mark.parametrize(
    "old, new",
    [
        ('"""What it is."""\n\n', ""),
        ('"""What it is."""', '"""Another word."""'),
        ('    """A cell."""\n\n', ""),
        ('"""Width times height."""', "'''Told otherwise, with a \\n in it.'''"),
        ("  # never more", ""),
        (
            "min(width * height, limit)",
            "(\n        min(\n            width*height, limit, )\n    )",
        ),
        ("area(width, height=2):", "area(width: float, height: int = 2) -> float:"),
        ("limit = 10", "limit: int = 10"),
        ("limit = 10", "low: int\n    limit = 10"),
        ("limit = 10", "limit = 0xA"),
        ("from dataclasses", "from typing import Any\nfrom dataclasses"),
        ("from dataclasses", "from typing import TYPE_CHECKING\nfrom dataclasses"),
        (
            "from dataclasses import dataclass\n",
            "from dataclasses import dataclass\nif TYPE_CHECKING:\n    from stages import x\n",
        ),
    ],
)
def test_words_layout_and_annotations_change_no_meaning(old, new):
    assert old in WHOLE
    assert code.meaning(WHOLE.replace(old, new)) == code.meaning(WHOLE)
    assert code.meaning(WHOLE.replace(old, new).encode()) == code.meaning(WHOLE)


@pytest.mark.parametrize(
    "old, new",
    [
        ("limit = 10", "limit = 11"),
        ("limit = 10", "limit = 10.0"),
        ("limit = 10", "limit += 10"),
        ("width * height", "width / height"),
        ("width * height", "height * width"),
        ("height=2", "height=3"),
        ("height=2", "*, height=2"),
        ("width, height=2", "width, height"),
        ("@dataclass\n", "@dataclass(frozen=True)\n"),
        ("@dataclass\n", ""),
        ("size: int = 3", "size: float = 3"),
        ("size: int = 3", "size = 3"),
        ("size: int = 3", "size: int = 3\n    if True:\n        rank: int"),
        ("class Cell:", "class Cell(Base):"),
        ("def area", "async def area"),
        ("def area", "def volume"),
        ("from dataclasses import dataclass", "from dataclasses import dataclass, field"),
        ("from dataclasses import", "from .dataclasses import"),
        ("from dataclasses", "from typing import Any as dataclass\nfrom dataclasses"),
        ("from dataclasses", "from typing import *\nfrom dataclasses"),
        ("from dataclasses", "from .typing import Any\nfrom dataclasses"),
        ("from dataclasses", "from __future__ import annotations\nfrom dataclasses"),
        ("    return min", "    'no docstring: not first'\n    return min"),
    ],
)
def test_whatever_computes_changes_the_meaning(old, new):
    assert old in WHOLE
    assert code.meaning(WHOLE.replace(old, new)) != code.meaning(WHOLE)


@pytest.mark.parametrize(
    "one, other",
    [
        ('def f():\n    """Words."""\n', "def f():\n    pass\n"),
        ('class E(Exception):\n    """Words."""\n', "class E(Exception):\n    pass\n"),
        ('"""Words."""\n', ""),
        ("if x:\n    y: int\n", "if x:\n    pass\n"),
        ("def f():\n    self.x: int = 3\n", "def f():\n    self.x = 3\n"),
        ("if typing.TYPE_CHECKING:\n    x = 1\nelse:\n    x = 2\n", "x = 2\n"),
        ("x = 'a' f'b{y}' 'c'\n", "x = f'ab{y}c'\n"),
        ("x = f'{y:}'\n", "x = f'{y}'\n"),
        ("x = u'a'\n", "x = 'a'\n"),
        (
            "def f(*a: int, k: str = 'x', **b: float): return 1\n",
            "def f(*a, k='x', **b): return 1\n",
        ),
        (
            "class A:\n    def f(self):\n        y: int = 1\n",
            "class A:\n    def f(self):\n        y = 1\n",
        ),
    ],
)
def test_two_ways_to_write_it_are_one(one, other):
    assert code.meaning(one) == code.meaning(other)


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "1.0", "True", "'1'", "b'1'", "1j", "...", "None", "-1", "- -1", "'...'", "'None'"],
        ["0", "0.0", "-0.0", "0j", "False", "''", "b''", "()", "[]", "{}", "f''"],
        ["1e999", "-1e999", "1e-400", "float('nan')", "float('inf')"],
        ["'\\n'", "'\\\\n'", "'\\r'", "'é'", "'e\\u0301'", "'\\ud800'", "b'\\xe9'", "'\\x00'"],
        [
            "f'{x}'",
            "f'{x!r}'",
            "f'{x!s}'",
            "f'{x:3}'",
            "f'{x:{y}}'",
            "f'{x=}'",
            "'{x}'",
            "f'{{x}}'",
        ],
        ["f(x, y)", "f(x, y=y)", "f(*x, y)", "f(x, *y)", "f(**x)", "f((x, y))", "f([x, y])"],
        ["x[1:2]", "x[1:]", "x[:1]", "x[::1]", "x[1]", "x[1,]", "x[(1, 2):]"],
        ["{**x, 'a': 1}", "{'a': 1, **x}", "{None: x, 'a': 1}", "{x, 'a', 1}"],
        ["lambda x: y", "lambda x=y: y", "lambda *x: y", "lambda *, x: y", "lambda *, x=y: y"],
        ["[x for x in y]", "[x async for x in y]", "[x for x in y if x]", "(x for x in y)"],
        ["[None]", "[]", "[(None,)]", "None"],
        ["x < y < z", "(x < y) < z", "x < (y < z)", "x and y and z", "(x and y) and z"],
    ],
)
def test_what_differs_has_different_digests(texts):
    wrapped = [f"async def g():\n    return {text}\n" for text in texts]
    assert len({code.meaning(text) for text in wrapped}) == len(texts)


CONSTANTS = st.one_of(
    st.integers(), st.floats(min_value=0), st.text(), st.binary(), st.booleans(), st.none()
)


@given(CONSTANTS, CONSTANTS)
def test_constants_are_told_apart_exactly(one, other):
    same = type(one) is type(other) and repr(one) == repr(other)
    texts = [f"x = {repr(value).replace('inf', '1e999')}" for value in (one, other)]
    assert (code.meaning(texts[0]) == code.meaning(texts[1])) == same


def test_a_number_of_ten_thousand_digits_has_a_meaning():
    assert code.meaning(f"x = 0x{'f' * 10_000}") != code.meaning(f"x = 0x{'f' * 9_999}e")


def test_the_project_means_the_same_written_anew():
    """`ast.unparse` keeps no layout and no comment."""
    assert len(THIRD) > 50
    for path in THIRD:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert code.meaning(ast.unparse(ast.parse(text))) == code.meaning(text), path


MEANINGS = """
import json, sys
from pathlib import Path
from stages.code import meaning
print(json.dumps({path: meaning(Path(path).read_bytes()) for path in sys.argv[1:]}))
"""
# What the grammar of 3.11 can say and parsers have told in several ways.
TRICKY = r"""
x = "a" f"b{y!r:>{w}.{p}}" "c" f"{{}}" f"" rf"\d{y}" f"{y=}" f"{y = !s:^5}"
z = f"{f'{y}' 'q'}{y:%H:%M}{'a' if y else 'b'}" + u"u" + b"b\xff".decode() + "\N{BULLET}é\ud800"
t = 1_000, 0x_ff, 1e400, 1e-5, 5e-324, 0.1, 1j, -0.0, ..., 10**20, 100000000000000000000000.0
match x:
    case {"a": [1, *r], **rest} if r: pass
    case P(a=1, b=None) | [True, -1.5, "s"] as k: pass
    case _: pass
try: pass
except* (ValueError, KeyError) as e: raise
with (open(x) as a, b): del a, b
async def f(a, /, b: int = 1, *c, d, e=2, **g) -> None:
    global q
    async with a as (b, [c, *d]): await b
    x[1:2, ..., *c] = y = (yield)
    return (n := 3) if not a else lambda *, k=1: {**a, "k": [i async for i in a if i if b]}
class C(B, metaclass=M, **k):
    x: int
    y: "str" = 1
    def __init__(self): self.z: int = 1; self.w: int
"""


def pythons() -> list[Path]:
    """Other Pythons of this machine, 3.12 and newer, each version once."""
    places = [*map(Path, os.environ["PATH"].split(os.pathsep))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places += sorted(pyenv.glob("versions/*/bin"))
    found = {}
    for version in ("3.12", "3.13", "3.14"):
        for file in (place / f"python{version}" for place in places):
            if file.exists() and version not in found:
                asked = subprocess.run([file, "-V"], capture_output=True, text=True, check=False)
                if asked.returncode == 0 and asked.stdout.startswith(f"Python {version}."):
                    found[version] = file
    return [file for version, file in found.items() if sys.version_info[:2] != version]


def test_other_pythons_find_the_same_digests(tmp_path):
    if not (others := pythons()):
        pytest.skip("no Python 3.12 or newer stands in PATH or beneath PYENV_ROOT")
    (tmp_path / "tricky.py").write_text(TRICKY, encoding="utf-8")
    paths = [str(tmp_path / "tricky.py"), *(str(ROOT / path) for path in THIRD)]
    ours = {path: code.meaning(Path(path).read_bytes()) for path in paths}
    for other in others:
        done = subprocess.run(
            [other, "-Wignore", "-c", MEANINGS, *paths],
            cwd=ROOT,
            env={"PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        theirs = json.loads(done.stdout)
        assert [path for path in paths if theirs[path] != ours[path]] == [], other
