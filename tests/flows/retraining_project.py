"""A tiny project for the tests of the retraining flow: git, DVC, a profile `live`, and stages that
only pretend.

Its own package `stages` stands before the real one on the path. `python -m stages.winds.retraining
intake` takes every file of the drop folder into the raw folder (a name with `bad` goes to
quarantine), `judge` writes a ledger entry for a new state. Each step writes its name to the file
`trace`; at a step named by a file `hold-STEP` it writes its process id to `at-STEP` and waits until
that file is gone.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import made_once

ROOT = Path(__file__).parents[2]
PARAMS = """profiles:
  mini: &mini {profile: mini}
  live: &live {profile: live}
run: *mini
retraining: {cron: "* * * * *", drop: data/live/drop, profile: live, dataset: captures, commit: \
true, challengers: [wind_nowcast/knn], first_against: wind_nowcast/persistence}
"""
SPINE = """stages:
  prepare:
    matrix: {profile: ["${run.profile}"]}
    cmd: exec python -m stages.stub prepare data/${item.profile}/prepared/captures.txt \
data/${item.profile}/raw/captures
    deps: ["data/${item.profile}/raw/captures"]
    outs: ["data/${item.profile}/prepared/captures.txt"]
  report:
    cmd: exec python -m stages.stub report reports/index.html reports/ledger.jsonl
    deps: [reports/ledger.jsonl]
    outs: [reports/index.html: {cache: false}]
"""
CELLS = """vars: [../../params.yaml]
stages:
  STAGE:
    wdir: ../..
    matrix: {profile: ["${run.profile}"]}
    cmd: exec python -m stages.stub STAGE reports/NAME/${item.profile}/metrics.json \
data/${item.profile}/prepared/captures.txt
    deps: ["data/${item.profile}/prepared/captures.txt"]
    metrics: ["reports/NAME/${item.profile}/metrics.json": {cache: false}]
"""
STUB = '''"""Pretended stages."""
import ctypes, os, pathlib, sys, time

ctypes.CDLL(None).prctl(1, 9)  # as the real stages: die with DVC

def point(name):
    with open("trace", "a") as stream:
        stream.write(name + "\\n")
    while os.path.exists("hold-" + name):
        pathlib.Path("at-" + name + ".tmp").write_text(str(os.getpid()))
        os.replace("at-" + name + ".tmp", "at-" + name)
        time.sleep(0.02)

if __name__ == "__main__":
    name, out, source = sys.argv[1:]
    point(name)
    files = sorted(pathlib.Path(source).glob("*")) if os.path.isdir(source) else \
[pathlib.Path(source)]
    text = "".join(file.read_text() for file in files)
    if os.path.exists("crash"):
        os.kill(os.getpid(), 9)
    if name == "prepare" and "poison" in text:
        sys.exit("error: a critical expectation failed\\n  where: captures\\n  found: poison")
    if name == "prepare" and len(files) < int(os.environ.get("FILES_LEAST", "1")):
        sys.exit("error: too little data\\n  remedy: drop more captures")
    pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(out).write_text(f"{name} of {text}")
'''
RETRAINING = '''"""Pretended intake and judgement."""
import hashlib, json, os, pathlib, shutil, sys
from stages.stub import point

RAW, WORK, LEDGER = pathlib.Path("data/live/raw/captures"), pathlib.Path(".work/retraining"), \
pathlib.Path("reports/ledger.jsonl")

def state():
    files = sorted(RAW.glob("*")) if RAW.exists() else []
    digest = hashlib.sha256("".join(f.name + f.read_text() for f in files).encode()).hexdigest() \
if files else None
    return {"captures": len(files), "span_s": 3600.0 * len(files), "raw": digest}

def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".tmp").write_text(text)
    os.replace(path.with_suffix(".tmp"), path)

def intake(drop="data/live/drop"):
    point("intake")
    taken = {"accepted": [], "seen": [], "quarantined": [], "left": []}
    for file in sorted(pathlib.Path(drop).glob("[!.]*")):
        if "bad" in file.name:
            taken["quarantined"].append({"name": file.name, "sha256": "0", "reasons": ["it is \
bad"]})
            file.unlink()
            continue
        RAW.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, RAW / (file.name + ".new"))
        os.replace(RAW / (file.name + ".new"), RAW / file.name)
        taken["accepted"].append({"name": file.name})
        file.unlink()
    point("taken")
    write(WORK / "intake.json", json.dumps(taken | state()))

def judge():
    point("judge")
    lines = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    raw = state()["raw"]
    if all(json.loads(line)["raw"] != raw for line in lines):
        if pathlib.Path("judge-fails").exists():
            sys.exit("error: the challenger's record is forged")
        champion = pathlib.Path("data/live/champions/weights")
        champion.parent.mkdir(parents=True, exist_ok=True)
        champion.write_text(raw)
        lines.append(json.dumps({"number": len(lines) + 1, "kind": "promoted", "raw": raw}))
        write(LEDGER, "".join(line + "\\n" for line in lines))
    point("entered")

{"intake": intake, "judge": judge}[sys.argv[1]](*sys.argv[3:])
'''
HOOK = (
    "#!/bin/sh\necho commit >> trace\nwhile [ -e hold-commit ]; do echo $$ > at-commit; sleep "
    "0.05; done\n"
)


def git(*words: str) -> str:
    """A git command's output in the current folder."""
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def make(monkeypatch, tmp_path: Path) -> Path:
    """The project, committed, in `tmp_path/work`, which becomes the current folder; no identity,
    home or Prefect of anybody."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    (work / "data/live/drop").mkdir(parents=True)
    monkeypatch.chdir(work)
    for name in [name for name in os.environ if name.startswith(("PREFECT", "GIT_", "TRADEWIND"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    texts = {
        "params.yaml": PARAMS,
        "dvc.yaml": SPINE,
        "stages/__init__.py": "",
        "stages/stub.py": STUB,
        "stages/winds/retraining/__init__.py": "",
        "stages/winds/retraining/__main__.py": RETRAINING,
        "reports/ledger.jsonl": "",
        "data/live/drop/.gitignore": "*\n!.gitignore\n",
        ".gitignore": ".work/\n__pycache__/\ntrace\nat-*\nhold-*\n",
        "README.md": "A project.\n",
        "notes.txt": "Notes.\n",
    }
    for name, stage in (("wind_nowcast", "tabulate"), ("other", "other")):
        texts[f"reports/{name}/dvc.yaml"] = CELLS.replace("STAGE", stage).replace("NAME", name)
    for name, text in texts.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    git("init", "-q", "-b", "main")
    made_once.dvc_init(work)
    Path(".git/hooks/post-commit").write_text(HOOK)
    Path(".git/hooks/post-commit").chmod(0o755)
    git("add", "-A")
    git(
        "-c",
        "user.name=Somebody",
        "-c",
        "user.email=somebody@localhost",
        "commit",
        "-q",
        "--no-verify",
        "-m",
        "Begin",
    )
    Path("trace").unlink()
    return work


def drop(name: str, text: str) -> None:
    """A finished file in the drop folder."""
    Path("data/live/drop", name).write_text(text)


def trace() -> list[str]:
    """The steps since the last call."""
    place = Path("trace")
    found = place.read_text().split() if place.exists() else []
    place.unlink(missing_ok=True)
    return found


def entries() -> list[dict]:
    """The ledger's lines."""
    return [json.loads(line) for line in Path("reports/ledger.jsonl").read_text().splitlines()]


def until(met, seconds: float = 120.0, what="") -> object:
    """The first true answer of `met()`."""
    deadline = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < deadline, (
            f"waited {seconds} s for {what() if callable(what) else what or met}"
        )
        time.sleep(0.05)
    return found


def start(*words: str, **more: str) -> subprocess.Popen:
    """`python -m WORDS` in a session of its own, output to a pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        env=os.environ | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(*words: str, **more: str) -> tuple[int, str]:
    """`python -m flows.retrain WORDS`: its exit code and output."""
    with start("flows.retrain", *words, **more) as child:
        text, _ = child.communicate(timeout=240)
    return child.returncode, text
