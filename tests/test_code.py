"""Computed staleness (stages/code): what a closure holds and which edits change it, which closures
are written, and what a stage loads beside its closures."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stages import code
from stages.code import __main__ as command
from stages.code.project import Project
from stages.errors import DataError, InputError
from stages.files import read_json, sha256

ROOT = Path(__file__).parents[1]


def planted(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def python(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {key: value for key, value in os.environ.items() if key not in ("FAULT", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


# --- what a module reaches

TOY = {
    "stages/__init__.py": "from stages import kernels\n",
    "stages/kernels.py": "LANES = 8\n",
    "stages/errors.py": "import stages.behind\n",
    "stages/behind.py": "x = 1\n",
    "stages/params/__init__.py": "from stages.params import parts\n",
    "stages/params/parts.py": "",
    "stages/engine/__init__.py": '"""Trains."""\n',
    "stages/engine/loop.py": "from .steps import step\nSTEPS = 3\n",
    "stages/engine/steps.py": "import stages.engine.loop\ndef step(): return 1\n",
    "stages/toy/__init__.py": "",
    "stages/toy/train.py": (
        "from typing import TYPE_CHECKING\n"
        "from importlib import import_module\n"
        "from stages import errors, params\n"
        "from stages.engine import loop\n"
        "if TYPE_CHECKING:\n    from stages.toy import hints\n"
        "def built(name):\n"
        "    import stages.toy.late\n"
        "    import_module('stages.toy.literal')\n"
        "    return import_module(f'stages.toy.models.{name}')\n"
        "class Held:\n    from . import inner\n"
    ),
    "stages/toy/hints.py": "",
    "stages/toy/late.py": "",
    "stages/toy/literal.py": "",
    "stages/toy/inner.py": "",
    "stages/toy/models/__init__.py": "",
    "stages/toy/models/mean.py": "RATE = 1\n",
    "stages/toy/models/median.py": "from stages.toy.models.mean import RATE\n",
    "stages/toy/page.py": (
        "TEMPLATE, TABLE = 'page.html', 'tables/errata.csv'\nOTHER = f'{TABLE}.txt'\n"
    ),
    "stages/toy/page.html": '{% include "page.css" %} <p>not page_two.html</p>\n',
    "stages/toy/page.css": "p {}\n",
    "stages/toy/two.html": "",
    "stages/toy/page_two.html": "",
    "stages/toy/tables/errata.csv": "a\n",
    "stages/toy/other/errata.csv": "a\n",
    "stages/engine/page.html": "",
    "stages/bare/inside.py": "import stages.toy.late\n",
    "flows/__init__.py": "",
    "flows/repro.py": "import stages.toy.late\nimport flows.waves, os.path\n",
    "flows/waves.py": "",
}
COMMON = {"stages/__init__.py", "stages/kernels.py"}
ENGINE = {f"stages/engine/{name}.py" for name in ("__init__", "loop", "steps")}
MEAN = COMMON | {f"stages/toy/{name}.py" for name in ("__init__", "models/__init__", "models/mean")}
REACHED = {
    "stages.toy.train": COMMON
    | ENGINE
    | {f"stages/toy/{name}.py" for name in ("__init__", "train", "late", "literal", "inner")},
    "stages.toy.models.mean": MEAN,
    "stages.toy.models.median": MEAN | {"stages/toy/models/median.py"},
    "stages.engine.steps": COMMON | ENGINE,
    "stages.toy": COMMON | {"stages/toy/__init__.py"},
    "stages.bare.inside": COMMON
    | {"stages/bare/inside.py", "stages/toy/__init__.py", "stages/toy/late.py"},
    "stages.errors": COMMON,
    "stages.params.parts": COMMON,
    "stages.toy.page": COMMON
    | {f"stages/toy/{name}" for name in ("__init__.py", "page.py", "page.html", "page.css")}
    | {"stages/toy/page_two.html", "stages/toy/tables/errata.csv"},
    "flows.repro": COMMON
    | {"stages/toy/__init__.py", "stages/toy/late.py"}
    | {"flows/__init__.py", "flows/repro.py", "flows/waves.py"},
}


@pytest.fixture
def toy(tmp_path):
    return planted(tmp_path, TOY)


@pytest.mark.parametrize("module", REACHED)
def test_a_closure_holds_what_importing_the_module_may_run(toy, module):
    found = code.closure(module, toy)
    assert found.keys() == REACHED[module] and list(found) == sorted(found)
    for path, digest in found.items():
        whole = (toy / path).read_bytes()
        assert digest == (code.meaning(whole) if path.endswith(".py") else sha256(toy / path))
    assert code.raw(found, toy) == {path: sha256(toy / path) for path in found}


@pytest.mark.parametrize("edited", [path for path in TOY if not path.startswith("flows/")])
def test_an_edit_changes_the_closures_that_hold_the_file_and_no_other(toy, edited):
    before = {module: code.closure(module, toy) for module in REACHED}
    with (toy / edited).open("a") as stream:
        stream.write("# a word\n" if edited.endswith(".py") else "")
    assert {module: code.closure(module, toy) for module in REACHED} == before
    with (toy / edited).open("a") as stream:
        stream.write("ADDED = 1\n")
    after = {module: code.closure(module, toy) for module in REACHED}
    assert {module for module in REACHED if after[module] != before[module]} == {
        module for module, paths in REACHED.items() if edited in paths
    }


def test_a_module_that_is_not_there_is_told(toy):
    with pytest.raises(InputError, match=r"(?s)expected: .*toy.train.*found: stages.toy.trian"):
        code.closure("stages.toy.trian", toy)
    (toy / "stages/toy/late.py").write_text("\nfrom stages.toy.gone import x\n")
    with pytest.raises(DataError, match=r"(?s)where: stages/toy/late.py:2.*found: stages.toy.gone"):
        code.closure("stages.toy.train", toy)


def test_the_real_closures_leave_the_inert_out_and_hold_the_kernels_settings():
    project = Project(ROOT)
    for module in project.modules:
        found = project.closure(module)
        assert {"stages/__init__.py", "stages/arithmetic/__init__.py"} <= found.keys()
        assert not found.keys() & project.inert
    assert {project.modules[name] for name in code.INERT} <= project.inert


def test_files_that_are_no_python_are_told(tmp_path):
    texts = {"__init__": "", "a": "x = 1\nx = (\n", "b": "\0"}
    planted(tmp_path, {f"stages/{name}.py": text for name, text in texts.items()})
    with pytest.raises(DataError, match=r"where: stages/a.py:2"):
        code.closure("stages.a", tmp_path)
    with pytest.raises(DataError, match=r"where: stages/b.py"):
        code.closure("stages.b", tmp_path)


# --- what the stage writes

DECLARED = {
    "dvc.yaml": """
stages:
  code: {cmd: exec python -m stages.code, deps: [stages], outs: [data/code: {cache: false}]}
  train:  # data/code/toy.commented.json is no dep
    matrix: {model: [mean, median]}
    cmd: exec python -m stages.toy.train ${item.model}
    deps: [data/code/toy.train.json, "data/code/toy.models.${item.model}.json", data/codes]
    outs: ["runs/${item.model}"]
""",
    "data/sets/dvc.yaml": "stages:\n  prepare:\n    deps:\n    - ../../data/code/toy.json\n",
    "reports/first/dvc.yaml": "stages: {page: {wdir: ../.., deps: ['data/code/toy.page.json']}}\n",
}
WANTED = {"toy.train", "toy.models.mean", "toy.models.median", "toy", "toy.page"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The ground floor, and the toy family on it, whose closures three dvc.yaml demand."""
    toy = {path: TOY[path] for path in TOY if path.startswith(("stages/toy", "stages/engine"))}
    real = Project(ROOT)
    for path in real.reached(code.INERT) | real.inert:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    monkeypatch.chdir(planted(tmp_path, toy | DECLARED))
    return tmp_path


def lists() -> dict[str, bytes]:
    return {file.stem: file.read_bytes() for file in code.HOME.glob("*")}


def test_one_closure_is_written_for_each_module_that_a_dvc_yaml_demands(project):
    assert command.main([]) == 0
    assert lists().keys() == WANTED
    for name in WANTED:
        assert read_json(code.HOME / f"{name}.json") == code.closure(f"stages.{name}")
    before = lists()
    (project / "stages/toy/models/mode.py").write_text("")
    (project / "reports/first/dvc.yaml").unlink()
    assert command.main([]) == 0
    assert lists().keys() == WANTED - {"toy.page"} | {"toy.models.mode"}
    assert all(lists()[name] == before[name] for name in WANTED - {"toy.page"})


@pytest.mark.parametrize(
    "asked, found",
    [
        ("toy.trian", "data/code/toy.trian.json"),
        ("toy.models.${item.model}.more", "data/code/toy.models.${item.model}.more.json"),
        ("toy/train", "data/code/toy/train.json"),
        ("winds.*", "data/code/winds.*.json"),
    ],
)
def test_a_list_of_no_module_is_told_and_the_lists_stay(project, capsys, asked, found):
    assert command.main([]) == 0
    before = lists()
    stages = f"stages: {{a: {{deps: ['data/code/{asked}.json']}}}}\n"
    planted(project, {"reports/b/dvc.yaml": stages})
    assert command.main([]) == 2
    told = capsys.readouterr().err
    assert "where: reports/b/dvc.yaml" in told and f"found: {found}" in told
    assert lists() == before


def test_a_file_that_is_no_python_is_told_and_the_lists_stay(project, capsys):
    assert command.main([]) == 0
    before = lists()
    (project / "stages/engine/loop.py").write_text("x = (\n")
    assert command.main([]) == 1
    assert "where: stages/engine/loop.py:1" in capsys.readouterr().err and lists() == before


@pytest.mark.parametrize(
    "old, point, renamed",
    [
        (True, "before_rename:1", False),
        *(
            pytest.param(old, point, renamed, marks=pytest.mark.slow_fault)
            for old in (False, True)
            for point, renamed in (
                ("closure:1", False),
                ("closure:5", False),
                ("before_rename:1", False),
                ("after_rename:1", True),
            )
            if (old, point) != (True, "before_rename:1")
        ),
    ],
)
@pytest.mark.fault("F1", "F5")
def test_a_killed_stage_leaves_the_old_lists_or_the_new(project, old, point, renamed):
    if old:
        assert command.main([]) == 0
        (project / "stages/engine/loop.py").write_text("STEPS = 4\n")
    before = lists()
    assert python(project, "-m", "stages.code", FAULT=point).returncode == -signal.SIGKILL
    between = lists()
    done = python(project, "-m", "stages.code")
    assert done.returncode == 0, done.stderr
    assert between == (lists() if renamed else before) and lists() != before
    assert lists().keys() == WANTED
    assert {file.name for file in Path("data").iterdir()} == {"code", "sets"}


def test_to_ask_for_a_closure_loads_no_library():
    text = (
        "import sys; from stages.code import closure\n"
        "closure('stages.code')\n"
        "own = {*sys.stdlib_module_names, 'stages', 'tradewind', '__main__'}\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - own))"
    )
    done = python(ROOT, "-S", "-c", text)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


# --- what a stage loads beside its closures

LOADS = (
    "import sys\nfrom stages import code, records\nfrom stages.toy import train\n"
    "train.built(sys.argv[1])\nprint(*code.outside(sys.argv[2:]))\n"
)


@pytest.mark.parametrize(
    "declared, left, listed",
    [
        (["toy.train"], ["models", "models.mean", "models.median"], False),
        (["toy.train", "toy.models.mean"], ["models.median"], False),
        (["toy.train", "toy.models.mean"], ["models.median"], True),
        (["toy.train", "toy.models.median"], [], False),
        (["toy.train", "toy.models.median"], [], True),
    ],
)
def test_what_is_loaded_by_a_computed_name_and_not_declared_is_found(
    project, declared, left, listed
):
    if listed:
        assert command.main([]) == 0
    modules = [f"stages.{name}" for name in declared]
    done = python(project, "-c", LOADS, "median", *modules)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"stages.toy.{name}" for name in left]
