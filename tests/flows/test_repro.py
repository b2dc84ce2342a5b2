"""The parallel flow: what it reads from DVC, in which order it starts stages, and that it ends
where `dvc repro` ends."""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from flows import repro

ROOT = Path(__file__).parents[2]
DOT = """strict digraph {
"acquire@mini-a";
"report";
"reports/x/dvc.yaml:train@mini-0";
"reports/y/dvc.yaml:alone";
"data/big.dvc";
"acquire@mini-a" -> "reports/x/dvc.yaml:train@mini-0";
"reports/x/dvc.yaml:train@mini-0" -> "report";
}
"""
TRAIN = "reports/x/dvc.yaml:train@mini-0"


def test_the_graph_is_read_from_dot():
    assert repro.parse(DOT) == {
        "acquire@mini-a": set(),
        TRAIN: {"acquire@mini-a"},
        "report": {TRAIN},
        "reports/y/dvc.yaml:alone": set(),
        "data/big.dvc": set(),
    }
    assert repro.parse("strict digraph {\n}\n") == {}


def test_the_plan_is_the_stale_and_all_below_as_far_as_a_plain_repro_goes():
    graph = repro.parse(DOT)
    assert repro.plan(graph, [TRAIN]) == {TRAIN: set(), "report": {TRAIN}}
    assert repro.plan(graph, ["acquire@mini-a"]).keys() == {"acquire@mini-a", TRAIN, "report"}
    assert repro.plan(graph, ["reports/y/dvc.yaml:alone", "data/big.dvc"]) == {}, (
        "no stage of the top file waits for them"
    )
    assert repro.plan(graph, []) == {}


def test_ways_are_the_longest_paths():
    graph = {"a": set(), "b": {"a"}, "c": {"a"}, "d": {"b", "c"}, "e": set()}
    assert repro.ways(graph, {"a": 2, "b": 10, "c": 3, "d": 1}) == {
        "a": 13,
        "b": 11,
        "c": 4,
        "d": 1,
        "e": 1,
    }


class Pool:
    """Runs pretended stages in threads and keeps what happened, for `schedule`."""

    def __init__(self, bad=(), seconds=0.002):
        self.bad, self.seconds, self.lock = set(bad), seconds, threading.Lock()
        self.order, self.done, self.now, self.together = [], set(), set(), []

    def start(self, stage, done):
        def work():
            time.sleep(self.seconds)
            with self.lock:
                self.now.discard(stage)
                self.done.add(stage)
            done(stage not in self.bad)

        with self.lock:
            self.order.append((stage, set(self.done)))
            self.now.add(stage)
            self.together.append(set(self.now))
        threading.Thread(target=work).start()


def random_graph(seed, size=25):
    random_ = random.Random(seed)
    return {f"s{n}": {f"s{m}" for m in range(n) if random_.random() < 0.15} for n in range(size)}


@pytest.mark.parametrize("seed", range(10))
def test_schedule_keeps_its_promises_on_random_graphs(seed):
    """Every stage once, after all of its parents; never more than `jobs` at once, nor more of a
    limited kind."""
    graph, pool = random_graph(seed), Pool()
    assert repro.schedule(graph, pool.start, jobs=3, limits={"s*[02468]": 1}) == []
    assert sorted(stage for stage, _ in pool.order) == sorted(graph)
    assert all(graph[stage] <= done for stage, done in pool.order)
    assert max(map(len, pool.together)) <= 3
    assert max(sum(int(stage[1:]) % 2 == 0 for stage in now) for now in pool.together) == 1


def test_two_independent_stages_do_run_together():
    pool = Pool(seconds=0.05)
    repro.schedule({"a": set(), "b": set(), "c": {"a", "b"}}, pool.start, jobs=2)
    assert {"a", "b"} in pool.together


def test_no_waves_a_stage_starts_when_its_own_parents_are_done():
    """Waves would hold `after quick` back until `slow` ends."""
    pool, ends = Pool(), {"slow": 0.3}
    true = pool.start
    order = []

    def start(stage, done):
        pool.seconds = ends.get(stage, 0.01)
        true(stage, lambda ok: (order.append(stage), done(ok)))

    repro.schedule(
        {"slow": set(), "quick": set(), "after quick": {"quick"}}, start, jobs=2, first={"slow": 1}
    )
    assert order == ["quick", "after quick", "slow"]


def test_the_longest_way_goes_first():
    pool = Pool()
    repro.schedule(
        {"a": set(), "b": set(), "c": set()}, pool.start, jobs=1, first={"c": 9.0, "b": 5.0}
    )
    assert [stage for stage, _ in pool.order] == ["c", "b", "a"]


def test_after_a_failure_nothing_new_starts_and_running_ones_end():
    """`running` ends only after `bad` has failed, whatever the machine is doing, so a place is
    free when `last` must not start."""
    started, failed, ended = [], threading.Event(), []

    def start(stage, done):
        started.append(stage)

        def work():
            if stage == "bad":
                done(False)
                failed.set()
            else:
                failed.wait(10)
                ended.append(stage)
                done(True)

        threading.Thread(target=work).start()

    graph = {"bad": set(), "running": set(), "below": {"bad"}, "other": {"running"}, "last": set()}
    assert repro.schedule(graph, start, jobs=2, first={"bad": 2, "running": 1}) == ["bad"]
    assert started == ["bad", "running"] and ended == ["running"]


STAGES = """stages:
  acquire:
    matrix:
      profile: ["${run.profile}"]
    cmd: python work.py data/${item.profile}.txt
    deps: [work.py]
    outs: ["data/${item.profile}.txt"]
  report:
    cmd: python work.py report.txt reports/x/${run.profile}-0.txt reports/x/${run.profile}-1.txt
    deps: ["reports/x/${run.profile}-0.txt", "reports/x/${run.profile}-1.txt"]
    outs: [report.txt]
"""
CELLS = """vars: [../../params.yaml]
stages:
  train:
    matrix:
      profile: ["${run.profile}"]
      seed: [0, 1]
    wdir: ../..
    cmd: python work.py reports/x/${item.profile}-${item.seed}.txt data/${item.profile}.txt
    deps: ["data/${item.profile}.txt"]
    outs: ["reports/x/${item.profile}-${item.seed}.txt"]
"""
PARAMS = (
    "profiles:\n  mini: &mini {profile: mini}\n  sample: &sample {profile: sample}\nrun: *mini\n"
)
WORK = """import pathlib, sys, time
print("working on", sys.argv[1])
parents = [pathlib.Path(name).read_text() for name in sys.argv[2:]]
begin = time.time()
time.sleep(2.0 if 'reports' in sys.argv[1] else 0.0)  # DVC's lock is asked for every half second
open("times", "a").write(f"{sys.argv[1]} {begin} {time.time()}\\n")
if pathlib.Path("break").exists():
    sys.exit("broken on purpose")
pathlib.Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(sys.argv[1]).write_text(f"{sys.argv[1]} of {parents}")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small DVC project with a nested dvc.yaml, a matrix over the profile and a home of its
    own."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    for name, text in {
        "dvc.yaml": STAGES,
        "reports/x/dvc.yaml": CELLS,
        "params.yaml": PARAMS,
        "work.py": WORK,
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    subprocess.run([*repro.DVC, "init", "-q", "--no-scm"], check=True)
    return tmp_path / "work"


def flow(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "flows.repro", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180"},
    )


def outputs(folder):
    """Locks as data (DVC appends a stage's entry when it ends, so two at once may stand in
    either order) and files as bytes."""
    locks = {
        name: YAML(typ="safe").load((folder / name).read_text())
        for name in ("dvc.lock", "reports/x/dvc.lock")
    }
    return locks | {name: (folder / name).read_text() for name in ("report.txt", "data/mini.txt")}


def test_the_flow_ends_where_a_plain_repro_ends(project):
    """The same locks and bytes; the cells at the same time; the second run and what is left
    behind."""
    shutil.copytree(project, project.parent / "plain")
    subprocess.run(
        [*repro.DVC, "repro", "-q"],
        check=True,
        cwd=project.parent / "plain",
        env=repro.environment(),
    )
    before = sorted((project.parent / "home").rglob("*"))
    first = flow("--jobs", "2")
    assert first.returncode == 0, first.stderr
    assert "4 stages, 2 at a time" in first.stdout and "ran 0 stages" in first.stdout
    assert "\r" not in first.stderr and "stages:" not in first.stderr, (
        "no progress line where there is no terminal"
    )
    assert outputs(project) == outputs(project.parent / "plain")
    times = {
        line.split()[0]: [float(word) for word in line.split()[1:]]
        for line in Path("times").read_text().splitlines()
    }
    one, two = times["reports/x/mini-0.txt"], times["reports/x/mini-1.txt"]
    assert max(one[0], two[0]) < min(one[1], two[1]), "the two cells ran at the same time"
    assert "working on data/mini.txt" in Path(".work/flow/acquire@mini.log").read_text()
    assert set(json.loads(repro.SECONDS.read_text())) == {
        "acquire@mini",
        "report",
        *(f"reports/x/dvc.yaml:train@mini-{n}" for n in (0, 1)),
    }
    assert sorted((project.parent / "home").rglob("*")) == before, (
        "nothing is written to the user's home"
    )

    def stamps():
        return {path: path.stat().st_mtime_ns for path in Path(".work/prefect").rglob("*")}

    left = stamps()
    again = flow("--jobs", "2")
    assert again.stdout == "mini: everything is up to date\n" and again.returncode == 0
    assert left and stamps() == left, "Prefect is not even started"


LISTED = """stages:
  code:
    cmd: mkdir -p data/code && md5sum a.py > data/code/a.json && md5sum b.py > data/code/b.json
    deps: [a.py, b.py]
    outs: [data/code: {cache: false}]
  a: {cmd: cp a.py a, deps: [data/code/a.json], outs: [a]}
  b: {cmd: cp b.py b, deps: [data/code/b.json], outs: [b]}
"""


def test_an_edit_of_code_starts_the_cells_whose_list_changed_and_no_other(project, monkeypatch):
    for name, text in {"dvc.yaml": LISTED, "a.py": "1", "b.py": "1"}.items():
        Path(name).write_text(text)
    subprocess.run([*repro.DVC, "repro", "-q"], check=True, env=repro.environment())
    planned = []
    monkeypatch.setattr(repro, "run", lambda graph, **_: planned.append(sorted(graph)) or [])
    Path("a.py").write_text("2")
    repro.everything_up_to_date(2, 0, {})
    assert planned == [["a"]] and Path("a").read_text() == "2"
    with Path("dvc.yaml").open("a") as stream:
        stream.write("# nothing that a stage reads\n")
    assert repro.everything_up_to_date(2, 0, {}) == "everything is up to date" and len(planned) == 1


def test_a_failing_stage_fails_the_run(project, capfd, monkeypatch):
    """Without Prefect (its tasks are one line around `reproduce`): message, log and exit code;
    the profile is restored."""
    Path("break").touch()

    def serial(graph, *, jobs, **_):
        def start(stage, done):
            try:
                repro.reproduce("-s", stage, log=repro.log_of(stage))
                done(True)
            except repro.FlowError as error:
                print(error, file=sys.stderr)
                done(False)

        return repro.schedule(graph, start, jobs=jobs)

    monkeypatch.setattr(repro, "run", serial)
    assert repro.main(["--jobs", "2", "--profile", "sample"]) == 1
    errors = capfd.readouterr().err
    assert (
        "broken on purpose" in errors
        and ".work/flow/acquire@sample.log" in errors
        and "1 of 4 stages failed: acquire@sample" in errors
    )
    assert Path("params.yaml").read_text() == PARAMS and not Path("report.txt").exists()


LATE = """
from prefect import futures, states
from flows import repro
futures.PrefectTaskRunFuture.state = property(lambda future: states.Running())

def reproduce(*words, log):
    if words[-1] == "bad":
        raise repro.FlowError("broken on purpose")

repro.reproduce = reproduce
print(repro.run({"good": set(), "next": {"good"}, "bad": {"next"}, "below": {"bad"}}, jobs=2))
"""


def test_a_stage_is_judged_by_its_own_end_not_by_what_the_server_knows_yet(project):
    """The server learns of a task's end some time later; whoever asks it at once hears that the
    task is running."""
    Path(".work").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", LATE],
        capture_output=True,
        text=True,
        check=False,
        env=repro.environment(),
    )
    assert done.stdout == "['bad']\n", done.stderr
    assert "error: bad: broken on purpose" in done.stderr and "good" not in done.stderr


def test_stopping_ends_the_running_stages_and_begins_no_other(project, monkeypatch):
    monkeypatch.setattr(repro, "_stopping", threading.Event())
    Path("work.py").write_text("import time; open('begun', 'w').close(); time.sleep(60)")
    ended = []

    def stage():
        try:
            repro.reproduce("-s", "acquire@mini", log=repro.log_of("acquire@mini"))
        except repro.FlowError as error:
            ended.append(str(error))

    thread = threading.Thread(target=stage)
    thread.start()
    while not Path("begun").exists():
        time.sleep(0.02)
    begin = time.monotonic()
    repro.end_children()
    thread.join()
    assert time.monotonic() - begin < 2 and "ended with -9" in ended[0]
    with pytest.raises(repro.FlowError, match="being stopped"):
        repro.reproduce(log=repro.log_of("another"))


def test_a_dag_that_dvc_cannot_read_is_told(project, capsys):
    Path("dvc.yaml").write_text("stages: [\n")
    assert repro.main(["--jobs", "1"]) == 1
    assert "dvc status" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--jobs", "0"],
        ["--limit", "x"],
        ["--limit", "x=0"],
        ["--retries", "-1"],
        ["--job", "x"],
        ["--runner", "dask"],
        ["--cluster", "tcp://127.0.0.1:8786"],
        ["--runner", "x"],
    ],
)
def test_wrong_words_are_the_users_mistake(words, capsys):
    with pytest.raises(SystemExit) as error:
        repro.main(words)
    assert error.value.code == 2


def test_flows_import_nothing_of_stages():
    for path in (ROOT / "flows").glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not [name for name in names if name.partition(".")[0] == "stages"], path
