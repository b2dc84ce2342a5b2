"""Every command answers `--help`: what it does and its arguments, status 0, without the libraries
that its work needs.

The commands are found in the tree: a file of stages/ or flows/ that ends in `if __name__ ==
"__main__"` is one. Each is started with --help, its imports listed by the interpreter itself, and,
some of them in `make test` and all in `make test-faults`, with an option that does not exist.
"""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEASH = "flows.process"  # started by flows, with a process number first; nobody types it
COMMANDS = sorted(
    {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for top in ("stages", "flows")
        for file in (ROOT / top).rglob("*.py")
        if re.search(r'(?m)^if __name__ == "__main__":$', file.read_text(encoding="utf-8"))
    }
    - {LEASH}
)
HEAVY = {"torch", "great_expectations", "matplotlib", "prefect", "dask", "distributed", "optuna"}
# These train with torch and hand its modules on; whoever asks them for help waits for it.
WITH_TORCH = {
    "stages.winds.joint.train",
    "stages.winds.train",
    "stages.fields.train",
    "stages.fields.grids.train",
    "stages.fields.processes.train",
    "stages.dynamics.train",
    "stages.dynamics.series.train",
    "stages.dynamics.sweep",
    "stages.sequences.train",
    "stages.tokens.sweep",
    "stages.tokens.train",
    "stages.winds.sweep",
}
# One of each kind of entry; a mistake of the others is told by `make test-faults`.
MISTAKEN = {
    "stages.cli",
    "stages.winds.acquire",
    "stages.winds.nowcast.scorer",
    "stages.fields.train",
    "stages.page.report",
    "flows.repro",
}
every = pytest.mark.parametrize("command", COMMANDS)


@cache
def answer(command: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *words[:-1], "-m", command, words[-1]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "120"},
    )


def helped(command: str) -> subprocess.CompletedProcess:
    """What it says to --help; its imports are on standard error."""
    return answer(command, "-X", "importtime", "--help")


def test_the_commands_are_found_in_the_tree():
    assert {
        "stages.winds.acquire",
        "stages.winds.evaluate",
        "stages.fields.validate",
        "stages.cli",
        "flows.repro",
        "flows.profiles",
    } | MISTAKEN <= set(COMMANDS)


@every
def test_help_tells_how_to_call_the_command_and_what_it_does(command):
    done = helped(command)
    said = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert (done.returncode, said) == (0, [])
    shown = (
        "tradewind"
        if command == "stages.cli"
        else "score.py"
        if command == "stages.winds.nowcast.scorer"
        else command
    )
    assert shown in done.stdout, "the way to call it"
    words = re.sub(r"(?ms)^usage:.*?\n\n", "", done.stdout, count=1)
    assert re.search(r"[A-Z`][^\n]{25,}", words), "a sentence that says what it does"


@every
def test_help_does_not_wait_for_the_libraries_of_the_work(command):
    imported = set(re.findall(r"(?m)^import time:.*\|\s*(\w+)$", helped(command).stderr))
    assert "os" in imported, "nothing is known of its imports"
    assert imported & HEAVY - ({"torch", "optuna"} if command in WITH_TORCH else set()) == set()


@pytest.mark.parametrize(
    "command",
    [
        command if command in MISTAKEN else pytest.param(command, marks=pytest.mark.slow_fault)
        for command in COMMANDS
    ],
)
def test_a_call_that_cannot_be_understood_ends_with_2_and_the_usage(command):
    done = answer(command, "--no-such-option")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"usage:|python score\.py", done.stderr) and "Traceback" not in done.stderr
