"""Every command answers `--help`: what it does and its arguments, status 0, without the libraries
that its work needs.

The commands are found in the tree: a file of stages/ or flows/ that ends in `if __name__ ==
"__main__"` is one. Each is run with --help in a process that was forked for it from one that has
loaded what nearly all load. One of each kind in `make test`, and all in `make test-faults`, are
started afresh, too: with --help, its imports listed by the interpreter itself, and with an option
that does not exist.
"""

import json
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
# One of each kind of entry; the others are started afresh by `make test-faults`.
KINDS = {
    "stages.cli",
    "stages.winds.acquire",
    "stages.winds.nowcast.scorer",
    "stages.fields.train",
    "stages.page.report",
    "flows.repro",
}
every = pytest.mark.parametrize("command", COMMANDS)
kinds = pytest.mark.parametrize(
    "command",
    [
        command if command in KINDS else pytest.param(command, marks=pytest.mark.slow_fault)
        for command in COMMANDS
    ],
)
# Those with torch come last: then this process has loaded it, and what it has loaded is allowed.
FORKED = """
import importlib, json, os, runpy, sys, tempfile, traceback
heavy, allowed, *commands = json.loads(sys.stdin.read())
for name in ("stages.params", "stages.runner", "numpy"):
    importlib.import_module(name)
assert not set(heavy) & set(sys.modules)
told = {}
for command in commands:
    for name in allowed if command.startswith("+") else ():
        importlib.import_module(name)
    command = command.lstrip("+")
    out, err, loaded = (tempfile.TemporaryFile("w+") for _ in range(3))
    child = os.fork()
    if not child:
        code = 1
        try:
            os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
            sys.argv = [command, "--help"]
            sys.modules.pop(command, None)  # one of them is a part of what is loaded
            runpy.run_module(command, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            json.dump(sorted(set(heavy) & set(sys.modules)), loaded)
            loaded.flush()
            os._exit(code if isinstance(code, int) else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told[command] = [code, *(file.seek(0) or file.read() for file in (out, err, loaded))]
print(json.dumps(told))
"""


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


@cache
def forked() -> dict[str, tuple[int, str, str, str]]:
    """Command -> what it says to --help: exit code, standard output and error, and, as JSON, the
    heavy libraries that it has loaded."""
    allowed = ("torch", "optuna")
    last = sorted(COMMANDS, key=lambda command: command in WITH_TORCH)
    marked = [f"+{command}" if command in WITH_TORCH else command for command in last]
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        input=json.dumps([sorted(HEAVY), allowed, *marked]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def explained(command: str, code: int, said: str, complaints: list[str]) -> None:
    """It says how to call the command and what it does, and nothing else."""
    assert (code, complaints) == (0, [])
    shown = (
        "tradewind"
        if command == "stages.cli"
        else "score.py"
        if command == "stages.winds.nowcast.scorer"
        else command
    )
    assert shown in said, "the way to call it"
    words = re.sub(r"(?ms)^usage:.*?\n\n", "", said, count=1)
    assert re.search(r"[A-Z`][^\n]{25,}", words), "a sentence that says what it does"


def light(command: str, loaded: set[str]) -> None:
    """Of what its work needs nothing was loaded."""
    assert loaded & HEAVY - ({"torch", "optuna"} if command in WITH_TORCH else set()) == set()


def test_the_commands_are_found_in_the_tree():
    assert {
        "stages.winds.acquire",
        "stages.winds.evaluate",
        "stages.fields.validate",
        "stages.cli",
        "flows.repro",
        "flows.profiles",
    } | KINDS <= set(COMMANDS)


@every
def test_help_tells_how_to_call_the_command_and_what_it_does(command):
    code, said, complaints, _ = forked()[command]
    explained(command, code, said, complaints.splitlines())


@every
def test_help_does_not_wait_for_the_libraries_of_the_work(command):
    light(command, set(json.loads(forked()[command][3])))


@kinds
def test_so_does_a_command_that_is_started_afresh(command):
    done = answer(command, "-X", "importtime", "--help")
    said = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    explained(command, done.returncode, done.stdout, said)
    imported = set(re.findall(r"(?m)^import time:.*\|\s*(\w+)$", done.stderr))
    assert "os" in imported, "nothing is known of its imports"
    light(command, imported)


@kinds
def test_a_call_that_cannot_be_understood_ends_with_2_and_the_usage(command):
    done = answer(command, "--no-such-option")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"usage:|python score\.py", done.stderr) and "Traceback" not in done.stderr
