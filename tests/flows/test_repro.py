"""The parallel flow: what it reads from DVC, in which order it starts stages, and that it ends
where `dvc repro` ends."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import made_once
import pytest
from ruamel.yaml import YAML

from flows import repro
from flows.process import FlowError

ROOT = Path(__file__).parents[2]


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
WORK = """import os, pathlib, sys, time
print("working on", sys.argv[1])
parents = [pathlib.Path(name).read_text() for name in sys.argv[2:]]
begin = time.time()
time.sleep(float(os.environ.get("CELLS_S", 0)) if 'reports' in sys.argv[1] else 0.0)
open("times", "a").write(f"{sys.argv[1]} {begin} {time.time()}\\n")
if pathlib.Path("break").exists():
    sys.exit("broken on purpose")
pathlib.Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(sys.argv[1]).write_text(f"{sys.argv[1]} of {parents}")
"""


@pytest.fixture
def project(tmp_path, monkeypatch, migrated):
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
    made_once.dvc_init(Path.cwd(), scm=False)
    migrated()
    return tmp_path / "work"


def flow(*arguments):
    """The flow, whose cells take long enough to be seen at the same time: DVC's lock is asked for
    every half second."""
    return subprocess.run(
        [sys.executable, "-m", "flows.repro", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"CELLS_S": "2.0"},
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


def test_what_is_absent_and_in_the_cache_is_put_back_and_not_made_again(project):
    subprocess.run([*repro.DVC, "repro", "-q"], check=True, env=repro.environment())
    made, times = outputs(project), Path("times").read_text()
    for name in ("report.txt", "reports/x/mini-0.txt", "data/mini.txt"):
        Path(name).unlink()
    assert repro.everything_up_to_date(1, 0, {}) == "everything is up to date"
    with pytest.raises(FlowError, match="no stage is named"):
        repro.everything_up_to_date(1, 0, {}, ("no/such/dvc.yaml:stage",))
    assert outputs(project) == made and Path("reports/x/mini-0.txt").exists()
    assert Path("times").read_text() == times  # no stage ran


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


@pytest.mark.slow_fault
def test_a_stage_is_judged_by_its_own_end_not_by_what_the_server_knows_yet(project):
    """The server learns of a task's end some time later; whoever asks it at once hears that the
    task is running."""
    done = subprocess.run(
        [sys.executable, "-c", LATE],
        capture_output=True,
        text=True,
        check=False,
        env=repro.environment(),
    )
    assert done.stdout == "['bad']\n", done.stderr
    assert "error: bad: broken on purpose" in done.stderr and "error: good" not in done.stderr


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


@pytest.mark.slow_fault
def test_ctrl_c_reaches_the_whole_group_and_the_flow_ends_in_order(project):
    """A terminal interrupts each process of the group at once. The server must outlive it: a flow
    that cannot tell its end asks for a minute and ends in a traceback."""
    run = subprocess.Popen(
        [sys.executable, "-m", "flows.repro", "--jobs", "2", "--profile", "sample"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"CELLS_S": "600"},
    )
    try:
        log = project / repro.log_of("reports/x/dvc.yaml:train@sample-0")
        while not (log.exists() and "working on" in log.read_text()):
            assert run.poll() is None
            time.sleep(0.1)
        os.killpg(run.pid, signal.SIGINT)
        said = run.communicate(timeout=50)[1]
    finally:
        run.kill()
    assert run.returncode == 130 and said.splitlines()[-1] == "stopped"
    assert (project / "params.yaml").read_text() == PARAMS


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
