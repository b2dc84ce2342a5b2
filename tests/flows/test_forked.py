"""A stage in a fork: it finds what a fresh interpreter would, and ends as that one would."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import retraining_project as toy
from living import alive

ROOT = Path(__file__).parents[2]

SEEN = """
import json, os, sys
seen = {
    "arguments": sys.argv, "folder": os.getcwd(), "first": sys.path[0], "name": __name__,
    "spec": sys.modules["__main__"].__spec__.name, "stage": os.environ.get("DVC_STAGE"),
    "ours": sorted(m for m in sys.modules if m.partition(".")[0] in ("stages", "flows", "dvc")),
    "loaded": "torch" in sys.modules,
    "others": {"scipy.stats", "great_expectations"} <= {*sys.modules},
    "threads": len(os.listdir("/proc/self/task")),
}
import torch
from torch import nn
seen |= {
    "origin": torch.__spec__.origin, "path": list(torch.__path__), "now": "torch" in sys.modules,
    "one": nn is sys.modules["torch.nn"], "sum": torch.arange(5.0).sum().item(),
}
json.dump(seen, sys.stdout)
"""
ENDS = """
import os, sys, time
from pathlib import Path
how = sys.argv[1]
if how == "killed":
    os.kill(os.getpid(), 9)
if how == "held":
    Path("held").write_text(str(os.getpid()))
    time.sleep(600)
if how == "unsaid":
    sys.stdout = open("/dev/full", "w")
    print("on a full disk")
    sys.exit()
if how == "raised":
    raise ValueError("what went wrong")
sys.exit({"two": 2, "well": None, "told": "told why"}[how])
"""
# Loads what a shelf holds once (seconds), and forks for each command that it reads.
DRIVER = """
import json, os, sys, threading
from flows.forked import Shelf, instead

class Failed(Exception):
    pass

def original(executable, command, **popen):
    print("original")

def driven(folder, command, extra, thread):
    for number, name in ((1, "told"), (2, "error")):
        os.dup2(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT, 0o600), number)
    threading.Thread(target=threading.Event().wait, daemon=True).start() if thread else None
    try:
        run(None, command, env=dict(os.environ) | {"DVC_STAGE": "it"} | extra, cwd=folder)
    except Failed as error:
        print("failed", error.args[1])

run = instead(original, Shelf(), Failed)
for line in sys.stdin:
    child = os.fork()
    if not child:
        driven(*json.loads(line))
        sys.stdout.flush()
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


@pytest.fixture(scope="module")
def loaded():
    """A process that has loaded what the server of the flow loads."""
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture
def project(tmp_path):
    (tmp_path / "stages").mkdir()
    for name, text in (("__init__", ""), ("seen", SEEN), ("ends", ENDS)):
        (tmp_path / "stages" / f"{name}.py").write_text(textwrap.dedent(text))
    return tmp_path


def started(loaded, project, command, extra=None, thread=False):
    """The number of the process that has DVC's part, its command begun."""
    loaded.stdin.write(json.dumps([str(project), command, extra or {}, thread]) + "\n")
    loaded.stdin.flush()
    return int(loaded.stdout.readline())


def ended(loaded, project, *asked):
    """What it wrote, the command ended: to its standard output and error."""
    started(loaded, project, *asked)
    assert loaded.stdout.readline() == "ended\n"
    return (project / "told").read_text(), (project / "error").read_text()


def test_a_stage_finds_what_a_fresh_interpreter_would(loaded, project):
    told, error = ended(loaded, project, "exec python -m stages.seen a --b=c")
    fresh = subprocess.run(
        [sys.executable, "-m", "stages.seen", "a", "--b=c"],
        cwd=project,
        env=dict(os.environ) | {"DVC_STAGE": "it"},
        capture_output=True,
        text=True,
        check=True,
    )
    seen, expected = json.loads(told), json.loads(fresh.stdout)
    assert not error and not seen["loaded"] and seen["now"]
    assert seen.pop("others") and not expected.pop("others")
    assert seen == expected


@pytest.mark.parametrize(
    ("how", "told", "error"),
    [
        ("well", "", ""),
        ("two", "failed 2\n", ""),
        ("told", "failed 1\n", "told why\n"),
        ("raised", "failed 1\n", "ValueError: what went wrong\n"),
        ("killed", "failed -9\n", ""),
        ("unsaid", "failed 120\n", "No space left on device\n"),
    ],
)
def test_a_stage_ends_as_it_would(loaded, project, how, told, error):
    out, err = ended(loaded, project, f"exec python -m stages.ends {how}")
    assert out == told and err.endswith(error) and bool(err) == bool(error)


@pytest.mark.parametrize(
    ("command", "extra", "thread"),
    [
        ("python -m stages.ends two", {}, False),
        ("exec python -m stages.ends two; true", {}, False),
        ("exec python -m other.ends two", {}, False),
        ("exec python -m stages.ends two", {"MKL_CBWR": "AVX2"}, False),
        ("exec python -m stages.ends two", {"TRADEWIND_ARITHMETIC": "other"}, False),
        ("exec python -m stages.ends two", {"PATH": "/nowhere"}, False),
        ("exec python -m stages.ends two", {}, True),
    ],
)
def test_what_a_fork_would_do_otherwise_is_left_to_dvc(loaded, project, command, extra, thread):
    assert ended(loaded, project, command, extra, thread)[0] == "original\n"


def test_a_stage_does_not_outlive_the_process_that_forked_it(loaded, project):
    child = started(loaded, project, "exec python -m stages.ends held")
    held = project / "held"
    toy.until(lambda: held.exists() and held.read_text(), 60, "the stage")
    os.kill(child, signal.SIGKILL)
    assert loaded.stdout.readline() == "ended\n"
    assert toy.until(lambda: not alive(int(held.read_text())), what="the end of the stage")
