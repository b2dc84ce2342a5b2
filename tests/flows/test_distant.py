"""Stages on Dask workers: two real worker processes in clones of their own, one of them killed, and
the same end as a serial repro.

Workers know the git repository they were cloned from and the DVC remote; of home's folder they know
nothing.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import made_once
import pytest
from ruamel.yaml import YAML

from flows import distant, process
from flows.process import DVC, FlowError

pytest.importorskip("prefect_dask")
ROOT = Path(__file__).parents[2]
FILES = {
    "params.yaml": "profiles:\n  mini: &mini {profile: mini, offset: 1}\n"
    "  sample: &sample {profile: sample, offset: 2}\nrun: *mini\n",
    "dvc.yaml": """stages:
  first:
    matrix: {profile: ["${run.profile}"]}
    cmd: python work.py first data/${item.profile}/first
    params: ["profiles.${item.profile}.offset"]
    deps: [work.py]
    outs: ["data/${item.profile}/first", "data/${item.profile}/records/first.json": {cache: false}]
  alone:
    cmd: python work.py alone data/alone
    deps: [work.py]
    outs: [data/alone, data/records/alone.json: {cache: false}]
  bare:
    cmd: python work.py bare -
    deps: [work.py]
    outs: [data/records/bare.json: {cache: false}]
  end:
    cmd: python work.py end report reports/x/${run.profile} data/alone data/records/bare.json
    deps: ["reports/x/${run.profile}", data/alone, data/records/bare.json]
    outs: [report, data/records/end.json: {cache: false}, figures: {cache: false}]
""",
    "reports/x/dvc.yaml": """vars: [../../params.yaml]
stages:
  cell:
    wdir: ../..
    matrix: {profile: ["${run.profile}"], arm: [left, right]}
    cmd: python work.py ${item.arm} reports/x/${item.profile}/${item.arm} \
data/${item.profile}/first data/${item.profile}/records/first.json
    deps: [work.py, "data/${item.profile}/first", "data/${item.profile}/records/first.json"]
    outs: ["reports/x/${item.profile}/${item.arm}", \
"data/${item.profile}/records/${item.arm}.json": {cache: false}]
""",
    # Makes its outputs (a folder, a record, pictures) of what it reads; holds where a test asks for
    # it.
    "work.py": """import hashlib, json, os, pathlib, sys, time
name, out, *parents = sys.argv[1:]
print("working on", name, "in", os.getcwd(), flush=True)
print("computing:", os.environ.get("TRADEWIND_ARITHMETIC"), flush=True)
if pathlib.Path(".work/hold", name).exists():
    pathlib.Path(".work/held").touch()
    time.sleep(120)
files = sorted(file for parent in map(pathlib.Path, parents) for file in ([parent] if \
parent.is_file() else parent.rglob("*")) if file.is_file()
               and file.name != ".gitignore")
text = name + "".join(hashlib.sha256(file.read_bytes()).hexdigest() + file.as_posix() for file in \
files)
if out != "-":
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    pathlib.Path(out, "a.txt").write_text(text)
folder = pathlib.Path("data/mini/records" if name in ("first", "left", "right") else "data/records")
folder.mkdir(parents=True, exist_ok=True)
(folder / f"{name}.json").write_text(json.dumps({"of": hashlib.sha256(text.encode()).hexdigest()}))
if name == "end":
    pathlib.Path("figures").mkdir(exist_ok=True)
    pathlib.Path("figures/one.svg").write_text(text)
""",
    ".gitignore": ".work\n",
    # DVC adds lines to it as stages end, in any order: a folder that is read must not count it
    ".dvcignore": ".gitignore\n",
}
LOCKS = ("dvc.lock", "reports/x/dvc.lock")


def run(*words, cwd, **more):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def clones(tmp_path, monkeypatch, migrated):
    """A repository with a DVC remote, and the clones home, one, two (for workers) and plain (for
    the serial repro)."""
    for name in ("user", "remote", "origin"):
        (tmp_path / name).mkdir()
    for name, value in {
        "HOME": str(tmp_path / "user"),
        "PYTHONPATH": str(ROOT),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    for name, value in process.environment().items():
        if name in process.QUIET or name == "PATH":
            monkeypatch.setenv(name, value)
    origin = tmp_path / "origin"
    for name, text in FILES.items():
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(text)
    run("git", "init", "-q", ".", cwd=origin)
    made_once.dvc_init(origin)
    run(*DVC, "remote", "add", "-q", "--default", "shared", str(tmp_path / "remote"), cwd=origin)
    run("git", "add", ".", cwd=origin)
    run("git", "commit", "-qm", "stub", cwd=origin)
    for name in ("home", "one", "two", "plain"):
        run("git", "clone", "-q", str(origin), name, cwd=tmp_path)
    migrated(tmp_path / "home")
    return tmp_path


@contextlib.contextmanager
def cluster(*folders, threads=1):
    """A Dask scheduler and a worker process in each folder; yields its address and the workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    started = []

    def start(folder, *words):
        log = (folder.parent / f"{folder.name}.log").open("w")
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        )
        return started[-1]

    try:
        start(
            folders[0].parent / "user",
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            address.rpartition(":")[2],
            "--no-dashboard",
        )
        workers = {
            folder.name: start(
                folder,
                "distributed.cli.dask_worker",
                address,
                "--host",
                "127.0.0.1",
                "--nthreads",
                str(threads),
                "--no-dashboard",
                "--no-nanny",
                "--local-directory",
                str(folder.parent / "user"),
            )
            for folder in folders
        }
        from distributed import Client

        with Client(address, timeout="60s", set_as_default=False) as client:
            client.wait_for_workers(len(folders), timeout=60)
        yield address, workers
    finally:
        for child in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def state(folder):
    """The locks as data and every file that git or DVC keeps, as bytes."""
    locks = {name: YAML(typ="safe").load(folder / name) for name in LOCKS}
    made = [
        file
        for top in ("data", "reports", "report", "figures")
        for file in (folder / top).rglob("*")
    ]
    return locks | {
        str(file.relative_to(folder)): file.read_bytes()
        for file in made
        if file.is_file() and not file.name.startswith((".git", "dvc."))
    }


@pytest.mark.slow_fault
def test_two_machines_end_where_a_serial_repro_ends_though_one_is_killed(clones, monkeypatch):
    """The worker that got `left` is killed in that stage; the other does it and all that remains.

    The workers' own environment asks for another arithmetic than home's: home's counts."""
    monkeypatch.setenv("TRADEWIND_ARITHMETIC", "native")
    run(*DVC, "repro", "-q", cwd=clones / "plain")
    for name in ("one", "two"):
        (clones / name / ".work/hold").mkdir(parents=True)
        (clones / name / ".work/hold/left").touch()
    with cluster(clones / "one", clones / "two") as (address, workers):
        home = subprocess.Popen(
            [sys.executable, "-m", "flows.repro", "--runner", "dask", "--cluster", address],
            cwd=clones / "home",
            env={**os.environ, "TRADEWIND_ARITHMETIC": "common"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            while (
                not (held := [name for name in workers if (clones / name / ".work/held").exists()])
                and home.poll() is None
            ):
                time.sleep(0.05)
            for name in workers:
                (clones / name / ".work/hold/left").unlink()
            if held:
                os.killpg(workers[held[0]].pid, signal.SIGKILL)
            out, err = home.communicate(timeout=300)
        finally:
            home.kill()
    assert home.returncode == 0, out + err
    assert held and "6 stages, 2 at a time" in out and "ran 0 stages" in out, out + err
    assert state(clones / "home") == state(clones / "plain")
    assert "report" in run("git", "check-ignore", "report", "data/mini/first", cwd=clones / "home")
    logs = {
        name: sorted(file.stem for file in (clones / name / ".work/flow").glob("*.log"))
        for name in workers
    }
    assert all(logs.values()), f"both worked: {logs}"
    assert "working on" not in (clones / "home/.work/flow/proof.log").read_text()
    sent = [file for file in (clones / "home/.work/flow").glob("*.log") if file.stem != "proof"]
    assert sent and all("computing: common" in file.read_text() for file in sent)
    told = {
        file.stem: file.read_text().splitlines()[0]
        for file in (clones / "home/.work/flow").glob("*.log")
        if file.stem != "proof"
    }
    assert len(told) == 6 and all(
        line.endswith((str(clones / "one"), str(clones / "two"))) for line in told.values()
    )
    texts = [
        file
        for name in ("one", "two")
        for file in (clones / name / ".work").rglob("*")
        if file.is_file()
    ]
    assert not [file for file in texts if str(clones / "home").encode() in file.read_bytes()], (
        "a worker knows nothing of home's folder"
    )


@pytest.mark.parametrize("own", ["native", None])
def test_an_arithmetic_is_asked_for_during_an_order_and_not_after(monkeypatch, own):
    monkeypatch.delenv(process.ARITHMETIC, raising=False)
    if own:
        monkeypatch.setenv(process.ARITHMETIC, own)
    with pytest.raises(FlowError), process.telling(process.ARITHMETIC, "common"):
        assert process.environment()[process.ARITHMETIC] == "common"
        raise FlowError("the stage failed")
    assert os.environ.get(process.ARITHMETIC) == own


@pytest.mark.slow_fault
def test_what_keeps_workers_from_working_is_told_before_any_work(clones, monkeypatch):
    """Another commit, changed code, two workers in one copy, too many threads: each with its
    remedy; nothing listens: how to start it."""
    monkeypatch.chdir(clones / "home")
    commit = distant.home()
    (clones / "one/work.py").write_text("changed")
    run("git", "commit", "-q", "--allow-empty", "-m", "later", cwd=clones / "two")
    with (
        cluster(clones / "one", clones / "two", threads=2) as (address, _),
        pytest.raises(FlowError) as error,
    ):
        distant.muster(address, commit)
    assert error.value.exit_code == 2
    for word in (
        "has changed files: work.py",
        f"expected {commit[:12]}; there: `git fetch && git checkout {commit}`",
        "--nthreads 1",
    ):
        assert word in str(error.value)
    with pytest.raises(FlowError, match="dask worker tcp://HOST:8786 --nthreads 1"):
        distant.muster(address, commit)


def test_home_must_be_committed_and_have_a_remote(clones, monkeypatch):
    """What DVC makes and the profile's word may differ from the commit; code may not."""
    monkeypatch.chdir(clones / "plain")
    run(*DVC, "repro", "-q", cwd=clones / "plain")
    run("git", "add", ".", cwd=clones / "plain")
    run("git", "commit", "-qm", "results", cwd=clones / "plain")
    Path("figures/one.svg").write_text("another")
    Path("params.yaml").write_text(FILES["params.yaml"].replace("run: *mini", "run: *sample"))
    assert distant.home() == run("git", "rev-parse", "HEAD", cwd=clones / "plain").strip()
    Path("params.yaml").write_text(FILES["params.yaml"].replace("offset: 1", "offset: 3"))
    with pytest.raises(FlowError, match="commit first .changed: params.yaml") as error:
        distant.home()
    assert error.value.exit_code == 2
    Path("params.yaml").write_text(FILES["params.yaml"])
    run(*DVC, "remote", "remove", "shared", cwd=clones / "plain")
    with pytest.raises(FlowError, match="dvc remote add --default"):
        distant.home()


def test_a_result_that_does_not_fit_is_refused(clones, monkeypatch):
    """A worker that read another file than home has: the stage is named stale, whatever it sent."""
    run(*DVC, "repro", "-q", cwd=clones / "plain")
    run(*DVC, "push", "-q", cwd=clones / "plain")
    monkeypatch.chdir(clones / "plain")
    block = distant.entries(Path("dvc.lock"))["alone"]
    parcel = {
        "block": block,
        "kept": distant.kept(["data/records/alone.json"]),
        "ignored": ["data/alone"],
        "seconds": 1.0,
        "log": "on it\n",
    }
    monkeypatch.chdir(clones / "home")
    distant.receive("alone", parcel)
    assert (clones / "home/data/alone/a.txt").read_bytes() == (
        clones / "plain/data/alone/a.txt"
    ).read_bytes()
    Path("work.py").write_text(FILES["work.py"] + "\n")
    with pytest.raises(FlowError, match=r"does not fit here.*work\.py"):
        distant.receive("alone", parcel)
    with pytest.raises(FlowError, match="no output of the stage: params.yaml"):
        distant.receive("alone", parcel | {"kept": {"params.yaml": {".": b""}}})


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", ".git/hooks/x", ".dvc/config", ""])
@pytest.mark.fault("F14")
def test_no_path_leads_out_of_the_project(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FlowError, match="inside the project"):
        distant.bring({path: {".": b"x"}})
    with pytest.raises(FlowError, match="inside the project"):
        distant.bring({"fine": {path: b"x"}})


def test_an_entry_takes_its_place_among_the_others(tmp_path):
    lock = tmp_path / "dvc.lock"
    distant.insert(lock, "b@1", "    cmd: one\n    outs:\n    - path: x\n")
    distant.insert(lock, "a", "    cmd: two\n")
    distant.insert(lock, "b@1", "    cmd: three\n")
    assert (
        lock.read_text() == "schema: '2.0'\nstages:\n  b@1:\n    cmd: three\n  a:\n    cmd: two\n"
    )
    assert distant.entries(lock) == {"b@1": "    cmd: three\n", "a": "    cmd: two\n"}


def test_kept_folders_come_over_whole_and_nothing_else_stays_in_them(tmp_path, monkeypatch):
    for name in ("there", "here"):
        (tmp_path / name / "figures/sub").mkdir(parents=True)
        shutil.copy(__file__, tmp_path / name / "figures/sub/b.txt")
    (tmp_path / "there/figures/a.svg").write_bytes(b"\x00new")
    (tmp_path / "here/figures/old.svg").touch()
    run("git", "init", "-q", ".", cwd=tmp_path / "there")
    monkeypatch.chdir(tmp_path / "there")
    outs = distant.kept(["figures"])
    monkeypatch.chdir(tmp_path / "here")
    distant.bring(outs)

    def found(folder):
        return {
            file.relative_to(folder): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file()
        }

    assert found(tmp_path / "here/figures") == found(tmp_path / "there/figures")
