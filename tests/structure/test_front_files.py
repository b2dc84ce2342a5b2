"""The files that tools outside of the project read: they parse, and agree with the project."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMED = re.compile(r"(?<![\w/.*{-])((?:\w+/)+\w+\.py)\b")


def read(name):
    return YAML(typ="safe").load((ROOT / name).read_text())


def test_the_citation_is_complete_and_of_this_version():
    told = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= told.keys() and told["authors"]
    assert (told["version"], told["license"]) == (PROJECT["version"], PROJECT["license"])
    assert told["abstract"] == PROJECT["description"]


def test_hooks_run_what_make_check_runs():
    checks = re.search(r"(?m)^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text())[1]
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["entry"].replace(".venv/bin", "$(BIN)") in checks


def test_the_workflow_runs_what_anybody_can_run():
    (job,) = read(".github/workflows/ci.yml")["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [".ci/run"] and (ROOT / ".ci/run").stat().st_mode & 0o100


def test_the_container_sets_a_clone_up():
    told = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    text = (ROOT / ".devcontainer" / told["build"]["dockerfile"]).read_text()
    assert told["postCreateCommand"] == "make setup"
    assert PROJECT["requires-python"].removeprefix(">=") in re.search("FROM (.*)", text)[1]


def test_every_module_that_texts_name_is_there():
    """A path in a text ends some tracked one: `layers/grid.py` is enough. The recipes name files
    that a reader writes, the changelog those of its day, words in capitals stand for any."""
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = told.stdout.splitlines()
    known = ["/" + path for path in tracked if path.endswith(".py")]
    wrong = [
        f"{path}: {name}"
        for path in tracked
        if path.endswith(".md") or path.startswith(("stages/", "flows/"))
        if path not in ("CHANGELOG.md", "CONTRIBUTING.md") and path.endswith((".md", ".py"))
        for name in re.findall(NAMED, (ROOT / path).read_text(encoding="utf-8"))
        if not re.search(r"\b[A-Z]+\b", name) and not any(one.endswith("/" + name) for one in known)
    ]
    assert wrong == []


def test_the_text_on_retraining_shows_who_competes():
    text = (ROOT / "flows/README.md").read_text(encoding="utf-8")
    shown = re.search(r"(?m)^    challengers:.*\n(?:    .*\n)+", text)[0]
    told, declared = YAML(typ="safe").load(shown), read("params.yaml")["retraining"]
    assert set(told) == {"challengers", "first_against"}
    assert told == {name: declared[name] for name in told}
