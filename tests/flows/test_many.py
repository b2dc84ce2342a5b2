"""Many parallel runs: they end where a serial `dvc repro` ends though a stage or its dvc is killed,
and never quarrel over a lock.

Prefect is left out (a server for each run would take most of the time): `schedule` and `reproduce`
are what the flow runs, in threads.
"""

import json
import random
import shutil
import subprocess
import threading
from pathlib import Path

import made_once
import pytest
from ruamel.yaml import YAML

from flows import process, repro

# Twelve stages: two sources, eight cells in a file of their own, two that gather.
TOP = """stages:
  source:
    matrix: {name: [p, q]}
    cmd: exec python work.py ${item.name} data/${item.name} params.yaml
    deps: [work.py]
    params: [seed]
    outs: ["data/${item.name}", "data/${item.name}.json": {cache: false}]
  table:
    matrix: {name: [p, q]}
    cmd: exec python work.py table-${item.name} data/table-${item.name} %s
    deps: [work.py, %s]
    outs: ["data/table-${item.name}"]
    metrics: ["data/table-${item.name}.json": {cache: false}]
"""
CELLS = """vars: [../../params.yaml]
stages:
  cell:
    wdir: ../..
    matrix: {name: [p, q], seed: [0, 1, 2, 3]}
    cmd: exec python work.py cell-${item.name}-${item.seed} data/cell-${item.name}-${item.seed} \
data/${item.name} data/${item.name}.json
    deps: [work.py, "data/${item.name}", "data/${item.name}.json"]
    outs: ["data/cell-${item.name}-${item.seed}", "data/cell-${item.name}-${item.seed}.json": \
{cache: false}]
"""
# Where a test left its name, a stage writes half of its output and kills itself, or dvc, its
# parent, as well.
WORK = """import hashlib, json, os, pathlib, signal, sys
name, out, *parents = sys.argv[1:]
pathlib.Path(out).parent.mkdir(exist_ok=True)
text = hashlib.sha256(b"".join(pathlib.Path(parent).read_bytes() for parent in parents) + \
name.encode()).hexdigest()
whom = pathlib.Path(".work", name)
if whom.exists():
    word = whom.read_text()
    whom.unlink()
    pathlib.Path(out).write_text(text[:9])
    if word == "dvc":
        os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path(out).write_text(text)
pathlib.Path(out + ".json").write_text(json.dumps({"value": int(text[:8], 16)}))
"""
QUARRELS = ("Unable to acquire lock", "is busy")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The twelve stages in an empty DVC project, and this process inside it."""
    (tmp_path / "user").mkdir()
    (tmp_path / "work/reports/x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    cells = [f"data/cell-${{item.name}}-{seed}" for seed in range(4)]
    texts = {
        "dvc.yaml": TOP % (" ".join(cells), ", ".join(f'"{cell}"' for cell in cells)),
        "reports/x/dvc.yaml": CELLS,
        "work.py": WORK,
        "params.yaml": "seed: 1\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    made_once.dvc_init(Path.cwd(), scm=False)
    return tmp_path / "work"


def parallel(graph, jobs):
    """Run the graph as the flow does; the stages that failed with their messages."""
    problems = {}

    def start(stage, done):
        def work():
            try:
                repro.reproduce("-s", stage, log=repro.log_of(stage))
            except repro.FlowError as error:
                problems[stage] = str(error)
            done(stage not in problems)

        threading.Thread(target=work).start()

    assert sorted(repro.schedule(graph, start, jobs=jobs)) == sorted(problems)
    return problems


def state(folder):
    """The locks as data, and every output and metric as bytes."""
    locks = {
        name: YAML(typ="safe").load(folder / name) for name in ("dvc.lock", "reports/x/dvc.lock")
    }
    return locks | {
        file.name: file.read_bytes()
        for file in (folder / "data").iterdir()
        if not file.name.startswith(".")
    }


@pytest.mark.fault("F2", "F7")
@pytest.mark.parametrize("runs", ["1", pytest.param("12345", marks=pytest.mark.slow_fault)])
def test_parallel_runs_with_a_kill_end_where_a_serial_repro_ends(project, monkeypatch, runs):
    """Each time a random stage dies by SIGKILL, alone or after its dvc: the run fails by that
    name, and the next one finishes."""
    graph = repro.parse(repro.dvc("dag", "--dot"))
    assert len(graph) == 12
    for name in ("plain", *runs):
        shutil.copytree(project, project.parent / name)
    subprocess.run(
        [*repro.DVC, "repro", "-q"],
        check=True,
        cwd=project.parent / "plain",
        env=process.environment(),
    )
    expected = state(project.parent / "plain")
    draw = random.Random(6)
    for name in runs:
        monkeypatch.chdir(project.parent / name)
        victim, whom = draw.choice(sorted(graph)), draw.choice(["stage", "dvc"])
        cell = victim.rpartition("@")[2]
        own = (
            f"cell-{cell}" if "cell@" in victim else f"table-{cell}" if "table@" in victim else cell
        )
        Path(".work").mkdir()
        Path(".work", own).write_text(whom)
        problems = parallel(graph, 2)
        assert list(problems) == [victim], problems
        assert ("ended with -9" in problems[victim]) == (whom == "dvc")
        begun = repro.plan(graph, json.loads(repro.dvc("status", "--json")))
        assert victim in begun and parallel(begun, 2) == {}
        repro.reproduce(log=Path(".work/proof.log"))
        assert "Running stage" not in Path(".work/proof.log").read_text()
        assert state(Path.cwd()) == expected


TINY = """stages:
  one:
    matrix: {name: [a, b]}
    cmd: cp params.yaml ${item.name}
    params: [seed]
    outs: ["${item.name}"]
  end: {cmd: cat a b > end, deps: [a, b], outs: [end]}
"""


@pytest.mark.parametrize("runs", [3, pytest.param(50, marks=pytest.mark.slow_fault)])
def test_parallel_runs_know_no_lock_error(project, runs):
    """Two stages at once and one that gathers them, fifty times: every run ends well, with every
    entry in dvc.lock."""
    shutil.rmtree("reports")
    Path("dvc.yaml").write_text(TINY)
    graph = repro.parse(repro.dvc("dag", "--dot"))
    assert sorted(graph) == ["end", "one@a", "one@b"] and graph["end"] == {"one@a", "one@b"}
    for seed in range(runs):
        Path("params.yaml").write_text(f"seed: {seed}\n")
        assert parallel(graph, 2) == {}
        logs = "".join(repro.log_of(stage).read_text() for stage in graph)
        assert not [word for word in QUARRELS if word in logs], logs
        entries = YAML(typ="safe").load(Path("dvc.lock"))["stages"]
        assert entries.keys() == graph.keys()
        assert all(
            entry["params"]["params.yaml"]["seed"] == seed
            for name, entry in entries.items()
            if name != "end"
        )
        assert Path("end").read_text() == f"seed: {seed}\n" * 2
