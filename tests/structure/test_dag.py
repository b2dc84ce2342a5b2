"""The declared DAG: short, flat commands; few enough stages for DVC; and the code that a stage
declares is the code it runs and records.

DVC resolves the declarations itself, in a copy of dvc.yaml and params.yaml, once for each profile.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from stages import records
from stages.code import HOME
from stages.code import kinds as listed
from stages.files import read_json, sha256

ROOT = Path(__file__).parents[2]
PROFILES = ("mini", "sample", "full")
KINDS = listed(ROOT)
RESOLVE = """
import json, os
from dvc.repo import Repo
root = os.getcwd()
there = lambda stage, item: os.path.relpath(os.path.join(stage.wdir, item.def_path), root)
print(json.dumps([{"name": s.name, "file": os.path.relpath(s.path, root), "cmd": s.cmd,
                   "deps": [there(s, d) for d in s.deps if type(d).__name__ != "ParamsDependency"],
                   "outs": {there(s, o): o.use_cache for o in s.outs}} for s in \
Repo(".").index.stages]))
"""


@pytest.fixture(scope="session")
def declared(tmp_path_factory):
    """Profile -> its stages as DVC resolves them: name, file, cmd, deps, outs (path -> cached)."""
    running = {}
    for profile in PROFILES:
        folder = tmp_path_factory.mktemp(profile)
        for file in (
            ROOT / "dvc.yaml",
            *ROOT.glob("data/*/dvc.yaml"),
            *ROOT.glob("reports/*/dvc.yaml"),
        ):
            (folder / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / file.relative_to(ROOT))
        text = (ROOT / "params.yaml").read_text(encoding="utf-8")
        (folder / "params.yaml").write_text(
            re.sub(r"(?m)^run: \*\w+", f"run: *{profile}", text), encoding="utf-8"
        )
        (folder / ".dvc").mkdir()
        (folder / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
        running[profile] = subprocess.Popen(
            [sys.executable, "-c", RESOLVE],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "DVC_NO_ANALYTICS": "1"},
        )
    found = {profile: json.loads(process.communicate()[0]) for profile, process in running.items()}
    assert all(process.returncode == 0 for process in running.values())
    return found


def address(stage: dict) -> str:
    """File and name: two experiments may each have a stage `evaluate`."""
    return f"{stage['file']}:{stage['name']}"


def every(declared) -> list[dict]:
    return [stage for stages in declared.values() for stage in stages]


def test_no_dvc_yaml_holds_more_than_60_stages_and_mini_not_more_than_150_cells(declared):
    for stages in declared.values():
        assert max(Counter(stage["file"] for stage in stages).values()) <= 60
    cells = [stage for stage in declared["mini"] if stage["file"].startswith("reports/")]
    assert 5 < len(cells) <= 150


def test_commands_replace_the_shell_and_hold_names_only(declared):
    """`exec` leaves no shell between DVC and the stage (its guard watches the parent); nothing
    in a command means anything to a shell."""
    for stage in every(declared):
        assert re.fullmatch(r"exec python -m stages(\.[a-z]+)+( (--)?[a-z0-9_]+)*", stage["cmd"]), (
            stage["name"]
        )


def test_every_data_stage_keeps_its_record_in_git(declared):
    for stage in every(declared):
        kept = [path for path, cached in stage["outs"].items() if "/records/" in path]
        assert len(kept) == (0 if re.match("report|summary|code", stage["name"]) else 1), stage[
            "name"
        ]
        assert not any(stage["outs"][path] for path in kept)
        assert not any(
            other.startswith(out + "/") for out in stage["outs"] for other in stage["outs"]
        )


def test_every_declared_code_file_exists_and_compiled_files_do_not_count(declared):
    missing = {
        path
        for stage in every(declared)
        for path in stage["deps"]
        if path.startswith("stages/") and not (ROOT / path).exists()
    }
    assert missing == set()
    ignored = subprocess.run(
        [sys.executable, "-m", "dvc", "check-ignore", "-q", "stages/models/__pycache__/x.pyc"],
        cwd=ROOT,
        check=False,
        env={**os.environ, "DVC_NO_ANALYTICS": "1"},
    )
    assert ignored.returncode == 0, (
        "a compiled file would make every stage stale: add __pycache__/ to .dvcignore"
    )


def test_a_plain_repro_reaches_every_stage_of_every_profile(declared):
    """`dvc repro` without a target covers the top file's stages and what they wait for: no
    experiment may be left out."""
    for stages in declared.values():
        maker = {out: address(stage) for stage in stages for out in stage["outs"]}
        waits = {
            address(s): {
                name
                for dep in s["deps"]
                for out, name in maker.items()
                if f"{out}/".startswith(f"{dep}/") or f"{dep}/".startswith(f"{out}/")
            }
            for s in stages
        }
        reached = {address(stage) for stage in stages if stage["file"] == "dvc.yaml"}
        while more := set().union(*(waits[name] for name in reached)) - reached:
            reached |= more
        assert reached == set(waits)


def test_what_the_page_rests_on_is_made_or_in_git(declared):
    tracked = set(
        subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
    )
    made = {out for stage in declared["mini"] for out in stage["outs"]}
    (report,) = (stage for stage in declared["mini"] if stage["name"] == "report")
    missing = [
        dep
        for dep in report["deps"]
        if dep not in made and not any(f"{path}/".startswith(f"{dep}/") for path in made | tracked)
    ]
    assert missing == []


def code_of(stage: dict) -> set[str]:
    """The code files a stage declares, those of its kind among them."""
    lists = [KINDS[Path(path).stem] for path in stage["deps"] if Path(path).parent == HOME]
    paths = [ROOT / path for path in chain(stage["deps"], *lists) if path.startswith("stages/")]
    return {path.relative_to(ROOT).as_posix() for path in records.files_in(paths)}


def imports(file: str) -> set[str]:
    """The project's files that a file imports when it runs, wherever in it the import stands;
    packages count by their __init__."""
    found, tree = set(), ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []  # names for a reader of types, which no run imports
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            stem = name.replace(".", "/")
            found |= {
                path
                for path in (f"{stem}.py", f"{stem}/__init__.py")
                if name.startswith("stages.") and (ROOT / path).exists()
            }
    return found


def test_the_lists_of_code_see_every_edit_and_each_has_a_stage(declared):
    """The stage that writes the lists rests on all that they name, and on no folder twice; no
    list stands there for nobody."""
    (listing,) = (stage for stage in declared["mini"] if stage["name"] == "code")
    for kind, paths in KINDS.items():
        seen = [
            [dep for dep in listing["deps"] if f"{path}/".startswith(f"{dep}/")] for path in paths
        ]
        assert all(len(deps) == 1 for deps in seen), kind
        assert len(paths) == len(set(paths)), kind
    used = {
        path for stage in every(declared) for path in stage["deps"] if Path(path).parent == HOME
    }
    assert used == {f"{HOME}/{kind}.json" for kind in KINDS}


def test_the_lists_in_git_are_those_of_the_code(declared):
    for kind, paths in KINDS.items():
        there = [ROOT / path for path in paths]
        files = {
            path.relative_to(ROOT).as_posix(): sha256(path) for path in records.files_in(there)
        }
        assert read_json(ROOT / HOME / f"{kind}.json") == files, f"{kind}: run `dvc repro`"


# The ground floor is imported everywhere and changes no number; a cell declares its own model's
# file, not its siblings'.
SHARED = re.compile(
    r"stages/(errors|files|records|params/\w+)\.py|stages/(\w+/)*__init__\.py|stages/fields/models/"
    r"\w+\.py"
)


def test_a_stage_declares_all_the_code_it_reaches(declared):
    """What a declared file imports is declared too, else an edit there would leave old results
    standing."""
    forgotten = {}
    for stage in declared["mini"]:
        if re.match("report|summary|code", stage["name"]):  # they make no number
            continue
        code = code_of(stage)
        reached = {path for file in code if file.endswith(".py") for path in imports(file)}
        missing = {path for path in reached - code if not SHARED.fullmatch(path)}
        if missing:
            forgotten[stage["name"]] = sorted(missing)
    assert forgotten == {}


def test_the_code_declared_is_the_code_recorded(declared):
    """dvc.yaml's code dependencies and the records' lists of code are one list (records.py), for
    every record that is here."""
    checked, differing = 0, {}
    for stage in every(declared):
        for path in (path for path in stage["outs"] if "/records/" in path):
            if (ROOT / path).exists():
                checked += 1
                recorded = set(read_json(ROOT / path)["code"]["files"])
                if recorded != code_of(stage):
                    differing[stage["name"]] = sorted(recorded ^ code_of(stage))
    if not checked:
        pytest.skip("no stage has run here yet: nothing is recorded")
    assert differing == {}
