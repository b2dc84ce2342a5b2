"""The declared DAG: short, flat commands; few enough stages for DVC; and the code that a stage
declares is the code it runs and records.

DVC resolves the declarations itself, in a copy of dvc.yaml and params.yaml, once for each profile.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages.audit.case import IN_GIT
from stages.code import HOME, PACKAGE, Project, list_of
from stages.code.__main__ import demanded
from stages.files import read_json

ROOT = Path(__file__).parents[2]
PROFILES = ("mini", "sample", "full")
NUMBERLESS = "report|summary|code|page"  # stages that make no number and keep no record
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
        for file in (ROOT / "params.yaml", *ROOT.glob("reports/*/cells.yaml")):
            text = file.read_text(encoding="utf-8")
            (folder / file.relative_to(ROOT)).write_text(
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


def test_mini_holds_not_more_than_265_cells(declared):
    cells = [stage for stage in declared["mini"] if stage["file"].startswith("reports/")]
    assert 5 < len(cells) <= 265


def test_commands_replace_the_shell_and_hold_names_only(declared):
    """`exec` leaves no shell between DVC and the stage (its guard watches the parent); nothing
    in a command means anything to a shell."""
    for stage in every(declared):
        assert re.fullmatch(
            r"exec python -m stages(\.[a-z]+)+( (--)?[a-z0-9_-]+)*", stage["cmd"]
        ), stage["name"]


def test_every_data_stage_keeps_its_record_in_git(declared):
    for stage in every(declared):
        kept = [path for path, cached in stage["outs"].items() if "/records/" in path]
        assert len(kept) == (0 if re.match(NUMBERLESS, stage["name"]) else 1), stage["name"]
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


def test_the_example_waits_for_every_cell_that_may_be_it(declared):
    """It keeps the best of all experiments that train and evaluate its data set
    (nowcast/choice.py): one that it did not wait for would be chosen, or counted, by chance."""
    checked = 0
    for stages in declared.values():
        for example in (one for one in stages if one["cmd"].split()[3] == "stages.winds.example"):
            profile, dataset = example["cmd"].split()[4:]
            run = rf"(reports/\w+/{profile})/runs/{dataset}/"
            found = (re.match(run, out) for stage in stages for out in stage["outs"])
            homes = {one[1] for one in found if one}
            wanted = {
                f"{home}/{part}/{dataset}" for home in homes for part in ("runs", "evaluated")
            }
            assert wanted <= {*example["deps"]}, sorted(wanted - {*example["deps"]})
            checked += len(wanted)
    if not checked:
        pytest.skip("no experiment here trains what the example is of")


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


def closures(stage: dict) -> set[str]:
    """The modules whose closures a stage declares."""
    lists = (Path(path) for path in stage["deps"] if Path(path).parent == HOME)
    return {f"{PACKAGE}.{path.name.removesuffix('.json')}" for path in lists}


@pytest.fixture(scope="module")
def project():
    """The modules of the project, each read once."""
    return Project(ROOT)


def test_every_closure_that_a_stage_declares_is_written_and_none_for_nobody(declared, project):
    """The stage that writes them sees every edit: it rests on the whole package."""
    (listing,) = (stage for stage in declared["mini"] if stage["name"] == "code")
    assert listing["deps"] == [PACKAGE] and listing["outs"] == {HOME.as_posix(): False}
    used = {module for stage in every(declared) for module in closures(stage)}
    asked = set(demanded(project))
    assert used <= asked and asked <= project.modules.keys()
    assert {file.name for file in (ROOT / HOME).glob("*.json")} == {
        list_of(module).name for module in asked
    }


def test_the_lists_in_git_are_those_of_the_code(project):
    for module in demanded(project):
        told = read_json(ROOT / list_of(module))
        assert told == project.closure(module), f"{module}: run `dvc repro`"


def test_a_stage_declares_the_closure_of_the_module_that_it_runs(declared):
    """Else an edit there would leave old results standing."""
    for stage in every(declared):
        if stage["name"] != "code":
            module = stage["cmd"].split()[3]
            assert module in closures(stage), f"{address(stage)}: {module}"


def test_the_code_declared_is_the_code_recorded(declared):
    """dvc.yaml's closures and those of the records are one list, for every record that is here and
    names its modules (those made by earlier code name none); an evaluation, the example and a film
    rest on the models of the cells that they read, too, whose closures their training declares."""
    checked, differing = 0, {}
    for stage in every(declared):
        for path in (path for path in stage["outs"] if "/records/" in path):
            if (ROOT / path).exists():
                modules = read_json(ROOT / path)["code"].get("modules")
                if modules is None:
                    continue
                checked += 1
                recorded = set(modules)
                if any(word in stage["cmd"] for word in (".evaluate", ".example", ".filmed")):
                    recorded = {name for name in recorded if ".models." not in name}
                if recorded != closures(stage):
                    differing[stage["name"]] = sorted(recorded ^ closures(stage))
    if not checked:
        pytest.skip("no stage has run here yet: nothing is recorded")
    assert differing == {}


def test_the_audit_knows_whose_folders_git_keeps(declared):
    stages = {
        stage["name"].partition("@")[0]
        for one in declared.values()
        for stage in one
        for out, cached in stage["outs"].items()
        if not cached and not Path(out).suffix
    }
    assert stages - {"code"} == {*IN_GIT}
