"""Stages on other machines: Prefect tasks on Dask workers, each with a working copy of its own
(flows/README.md says how to set them up).

A worker's current directory is a git clone at home's commit with the same DVC remote. Home sends an
order: the stage, and of its parents the lock entries and the outputs kept in git. There the
parents' other outputs come by `dvc pull`, the stage runs by `dvc repro -s`, its outputs go by `dvc
push`; its own entry and what it keeps in git come back as the task's result. Home writes them,
pulls, and asks `dvc status` whether all is as if the stage had run here. No folder is shared. DVC's
run-cache cannot carry this: `dvc push --run-cache` leaves behind what git keeps, and nearly every
stage keeps a record there. The entry is written last but for the pull, so a death anywhere leaves
the stage stale, never half-done. Times are in seconds.
"""

import contextlib
import functools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from flows.dag import Graph
from flows.parcels import bring, entries, git, ignore, ignored, insert, inside, kept, outputs, place
from flows.process import ARITHMETIC, WORK, FlowError, environment, telling
from flows.profiles import PARAMS, WORD, switched, write
from flows.repro import dvc, log_of, reproduce
from flows.server import reachable
from flows.shown import called

START = (
    "on each machine, in its own clone: `dask worker tcp://HOST:8786 --nthreads 1`; before that, "
    "once: `dask scheduler` (flows/README.md)"
)
body: Callable[[], Any]  # what the flow does; kept here because Dask gets a copy of the flow itself


def unclean() -> list[str]:
    """Tracked files that differ from HEAD and are neither made by DVC nor only params.yaml's
    word."""
    made: list[str] = []
    locks = git(
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        "dvc.lock",
        "**/dvc.lock",
    ).split("\0")
    for lock in {Path(name) for name in locks if name}:
        if (file := lock.with_name("dvc.yaml")).exists():
            made += [
                path
                for name, block in entries(lock).items()
                for path in outputs(f"{file.as_posix()}:{name}", block)
            ]
    tops = set(made)
    found = []
    for path in filter(None, git("diff", "--name-only", "-z", "HEAD").split("\0")):
        ours = PurePosixPath(path)
        if ours.name in {"dvc.lock", ".gitignore"} or tops & {
            str(above) for above in (ours, *ours.parents)
        }:
            continue
        if path == str(PARAMS) and WORD.sub(
            "run: *", PARAMS.read_text(encoding="utf-8")
        ) == WORD.sub("run: *", git("show", f"HEAD:{path}")):
            continue
        found.append(path)
    return found


def inspect() -> dict[str, Any]:
    """What home must know of the copy in which this process works; `problem` when it cannot be
    told."""
    found: dict[str, Any] = {
        "host": socket.gethostname(),
        "folder": str(Path.cwd()),
        "commit": None,
        "changed": [],
        "problem": None,
    }
    try:
        found |= {"commit": git("rev-parse", "HEAD").strip(), "changed": unclean()}
    except (FlowError, OSError, KeyError) as error:
        found["problem"] = str(error)
    return found


def amiss(there: dict[str, Any], commit: str) -> str:
    """What keeps a copy from working on this commit, with the remedy; "" when nothing does."""
    where = f"the copy {there['folder']} on {there['host']}"
    if there["problem"]:
        return f"{where}: {there['problem']}"
    if there["commit"] != commit:
        return (
            f"{where} is at commit {there['commit'][:12]}, expected {commit[:12]}; there: `git "
            f"fetch && git checkout {commit}`"
        )
    if there["changed"]:
        return (
            f"{where} has changed files: {', '.join(there['changed'][:5])}; there: `git stash` or "
            "`git checkout -- FILE`"
        )
    return ""


def fulfil(order: dict[str, Any]) -> dict[str, Any]:
    """On a worker: run one stage in this copy; its entry, what it keeps in git, its log and
    seconds. FlowError when it fails."""
    stage, file, name = order["stage"], *place(order["stage"])
    with switched(order["profile"]):
        if problem := amiss(inspect(), order["commit"]):
            raise FlowError(problem, 2)
        bring(order["kept"])
        for path, text in order["ignores"].items():
            write(Path(inside(path)), text)
        for parent, block in order["entries"].items():
            lock, own = place(parent)
            insert(lock.with_name("dvc.lock"), own, block)
        if order["pull"]:
            dvc("pull", "--force", *order["pull"])
        begin = time.monotonic()
        # home's arithmetic, whatever this machine's environment asks for
        with telling(ARITHMETIC, order["arithmetic"]):
            reproduce("-s", stage, log=log_of(stage))
        took = round(time.monotonic() - begin, 1)
        block = entries(file.with_name("dvc.lock"))[name]
        outs = outputs(stage, block)
        if ours := sorted(ignored(outs)):
            dvc("push", stage)
        return {
            "block": block,
            "kept": kept(outs),
            "ignored": ours,
            "seconds": took,
            "log": f"on {socket.gethostname()} in {Path.cwd()}\n"
            f"{log_of(stage).read_text(encoding='utf-8', errors='replace')}",
        }


def receive(stage: str, parcel: dict[str, Any]) -> None:
    """At home: what a worker sent takes its place. FlowError unless the stage is then up to date
    here."""
    file, name = place(stage)
    if strays := {*parcel["kept"], *parcel["ignored"]} - set(outputs(stage, parcel["block"])):
        raise FlowError(
            f"the worker sent what is no output of the stage: {', '.join(sorted(strays))}"
        )
    write(log_of(stage), parcel["log"])
    ignore(parcel["ignored"])
    bring(parcel["kept"])
    insert(file.with_name("dvc.lock"), name, parcel["block"])
    if parcel["ignored"]:
        dvc("pull", "--force", stage)
    if (left := dvc("status", "--json", stage).strip()) not in ("", "{}"):
        raise FlowError(
            f"the worker's result does not fit here: {left[:2000]}; a file that the stage reads is "
            "another one there (not in git, or left over from former runs in a folder that it "
            "reads)"
        )


class Machines:
    """The stages as Prefect tasks on a Dask cluster's workers; for `flows.repro.run`. `whole` is
    the graph of all stages."""

    ahead = 0  # the cluster's own queue keeps its workers busy

    def __init__(
        self,
        address: str,
        commit: str,
        profile: str,
        whole: Graph,
        jobs: int,
        retries: int,
        seconds: dict[str, float],
    ):
        from prefect_dask import DaskTaskRunner

        self.commit, self.profile, self.whole, self.seconds = commit, profile, whole, seconds
        self.home = threading.Lock()
        self.task = fulfilling().with_options(retries=retries)
        self.runner = DaskTaskRunner(address=address)

    def flow(self, work: Callable[[], Any]) -> Callable[..., Any]:
        """A Prefect flow that does the work."""
        global body
        body = work
        return flowing().with_options(task_runner=self.runner)

    def order(self, stage: str) -> dict[str, Any]:
        """What a worker must know: its parents are up to date at home."""
        blocks = {}
        for parent in sorted(self.whole[stage]):
            file, name = place(parent)
            if not parent.endswith(".dvc"):
                blocks[parent] = entries(file.with_name("dvc.lock"))[name]
        outs = {parent: outputs(parent, block) for parent, block in blocks.items()}
        cached = ignored(path for paths in outs.values() for path in paths)
        pull = sorted(
            parent
            for parent in self.whole[stage]
            if parent not in outs or cached & set(outs[parent])
        )
        # A folder that a stage reads includes the .gitignore which DVC writes there; its lines'
        # order is home's.
        lists = {Path(path).parent / ".gitignore" for paths in outs.values() for path in paths}
        return {
            "stage": stage,
            "commit": self.commit,
            "profile": self.profile,
            "arithmetic": os.environ.get(ARITHMETIC, ""),
            "entries": blocks,
            "pull": pull,
            "kept": kept(path for paths in outs.values() for path in paths),
            "ignores": {
                path.as_posix(): path.read_text(encoding="utf-8")
                for path in sorted(lists)
                if path.exists()
            },
        }

    def submit(self, stage: str) -> Any:
        """Send the order; the future."""
        with self.home:
            return self.task.with_options(**called(stage)).submit(stage, self.order(stage))

    def problem(self, stage: str, future: Any) -> str:
        """Take the result home; why the stage failed, "" when it did not."""
        try:
            parcel = future.result()
            with self.home:
                receive(stage, parcel)
        except Exception as error:
            # whatever Dask, Prefect or the worker's own machine raised ends here with the stage's
            # name
            return f"{'' if isinstance(error, FlowError) else type(error).__name__ + ': '}{error}"
        self.seconds[stage] = parcel["seconds"]
        return ""


@functools.cache
def fulfilling() -> Any:
    """`fulfil` as a Prefect task. Its function is copied to the workers, so it finds everything
    by import, there."""
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    def single(stage: str, order: dict[str, Any]) -> dict[str, Any]:
        from flows.distant import fulfil

        return fulfil(order)

    return task(
        single, name="stage", task_run_name="{stage}", cache_policy=NO_CACHE, persist_result=False
    )


@functools.cache
def flowing() -> Any:
    """The flow. Dask gets a copy of it with every task, which must not drag along what only home
    has."""
    from prefect import flow

    def everything() -> Any:
        from flows import distant

        return distant.body()

    return flow(everything, name="reproduce", persist_result=False)


def muster(address: str, commit: str) -> list[dict[str, Any]]:
    """The cluster's workers, each fit to work. FlowError 2 with every reason and remedy when one
    is not."""
    from distributed import Client

    try:
        with Client(address, timeout="15s", set_as_default=False) as client:
            threads = client.nthreads()
            found = client.run(inspect)
    except (OSError, TimeoutError, ValueError) as error:
        raise FlowError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); {START}", 2
        ) from None
    except ImportError as error:
        raise FlowError(
            f"a worker at {address} cannot import this project ({error}); there: `pip install -e "
            "'.[dask]'`",
            2,
        ) from None
    if not found:
        raise FlowError(f"the Dask scheduler at {address} has no worker; {START}", 2)
    problems = [problem for there in found.values() if (problem := amiss(there, commit))]
    problems += [
        f"the worker {worker} has {count} threads; start it with `--nthreads 1`"
        for worker, count in threads.items()
        if count != 1
    ]
    copies = [(there["host"], there["folder"]) for there in found.values()]
    problems += [
        f"{copies.count(copy)} workers share the copy {copy[1]} on {copy[0]}; give each a clone"
        for copy in sorted(set(copies))
        if copies.count(copy) > 1
    ]
    if problems:
        raise FlowError("\n".join(problems), 2)
    return [there | {"address": worker} for worker, there in found.items()]


@contextlib.contextmanager
def server(workers: list[dict[str, Any]]) -> Iterator[None]:
    """A Prefect server that the workers reach: the one of PREFECT_API_URL, else a temporary one
    when all workers are on this machine."""
    os.environ.update(environment())
    from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

    if not PREFECT_API_URL.value() and any(
        there["host"] != socket.gethostname() for there in workers
    ):
        raise FlowError(
            "the workers are on other machines and PREFECT_API_URL is not set; `prefect server "
            "start --host ADDRESS`, then PREFECT_API_URL=http://ADDRESS:4200/api (flows/README.md)",
            2,
        )
    # the workers get these settings: a path of home means nothing there
    with reachable(), temporary_settings({PREFECT_HOME: WORK / "prefect"}):
        yield


def home() -> str:
    """The commit on which workers shall work. FlowError 2 when this copy's code is not committed
    or DVC has no remote."""
    commit = git("rev-parse", "HEAD").strip()
    if not dvc("config", "core.remote").strip():
        raise FlowError(
            "results come home by DVC's default remote and there is none; `dvc remote add "
            "--default NAME URL`, then commit",
            2,
        )
    if changed := unclean():
        raise FlowError(
            f"workers see only what is committed; commit first (changed: {', '.join(changed[:5])})",
            2,
        )
    return commit


@contextlib.contextmanager
def machines(
    address: str, profile: str, graph: Graph, whole: Graph
) -> Iterator[tuple[Callable[..., Any], int]]:
    """Who works for `flows.repro.run`, and how many they are. What the graph's stages wait for
    is pushed first."""
    commit = home()
    workers = muster(address, commit)
    ready = sorted({parent for stage in graph for parent in whole[stage]} - set(graph))
    with server(workers):
        if ready:
            dvc("push", *ready)
        yield functools.partial(Machines, address, commit, profile, whole), len(workers)
