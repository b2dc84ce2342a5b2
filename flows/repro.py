"""`python -m flows.repro --jobs 2 [--profile P]`: everything `dvc repro` would make, in parallel.

DVC is the only DAG: its own commands say which stages there are, which are stale and what they wait
for. A stage starts as soon as its parents are done, as `dvc --wait-for-lock repro -s STAGE` in a
Prefect task; among the ready ones, that with the longest way to the end (by the last run's seconds)
goes first. A plain serial `dvc --wait-for-lock repro` ends the run and is its proof. The first
failure stops the starting of others (one that waits for its turn runs) and makes the exit code 1.
Each stage's output stands in `.work/flow/`. `--runner dask --cluster tcp://HOST:8786` runs the
stages on other machines (flows/distant.py). PREFECT_LOGGING_LEVEL=INFO shows Prefect's own log.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from flows.asked import within
from flows.dag import Graph, parse, plan, schedule, ways
from flows.leftovers import set_aside
from flows.process import DVC, JOBS, WORK, FlowError, ended_by, environment, leashed, telling
from flows.profiles import switched, write
from flows.served import Server
from flows.server import reachable
from flows.shown import called, show_stages

CODE = "code"  # the stage that says which code has changed
LOGS = WORK / "flow"
SECONDS = LOGS / "seconds.json"
TAIL = 40

_own = threading.local()  # each thread's server
_children: set[Server] = set()
_children_lock = threading.RLock()  # a signal may find this very thread inside
_stopping = threading.Event()


def dvc(*arguments: str) -> str:
    """A DVC command's standard output. FlowError with its standard error when it fails."""
    done = subprocess.run(
        leashed([*DVC, "--wait-for-lock", *arguments]),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        told = done.stderr.strip()[-4000:]
        if "read RWLock-file" in told:  # a killed dvc leaves it empty
            told += "\n  remedy: when no dvc is running, `rm .dvc/tmp/rwlock`"
        raise FlowError(f"`dvc {' '.join(arguments)}` failed:\n{told}")
    return done.stdout


def refuse_parameters() -> None:
    """FlowError 2 where the parameters do not fit their schema; a project without one has none."""
    if not Path("stages/params/__main__.py").is_file():
        return
    done = subprocess.run(
        leashed([sys.executable, "-m", "stages.params"]),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise FlowError(done.stderr.strip().removeprefix("error: "), done.returncode)


def log_of(stage: str) -> Path:
    """Where a stage's output goes."""
    return LOGS / (re.sub(r"[^\w@.-]+", "-", stage) + ".log")


def stale_stages() -> dict[str, Any]:
    """The stages that are not up to date, with why. What is absent here and lies in DVC's cache is
    put in its place first: a clone that shares a cache makes nothing again."""
    stale: dict[str, Any] = json.loads(dvc("status", "--json") or "{}")
    whys = [why for reasons in stale.values() for why in reasons if isinstance(why, dict)]
    changed = [why.get("changed outs", {}) for why in whys]
    absent = sorted(path for outs in changed for path, how in outs.items() if how == "deleted")
    if not absent:
        return stale
    dvc("checkout", "--allow-missing", *absent)  # what was never made is missing, too
    return json.loads(dvc("status", "--json") or "{}")


def reproduce(*arguments: str, log: Path) -> None:
    """`dvc --wait-for-lock repro ARGUMENTS` with its output in the log. FlowError with the log's
    end when it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    with _children_lock:
        if _stopping.is_set():
            raise FlowError("the run is being stopped")
        server: Server | None = getattr(_own, "server", None)
        if server is None or not server.alive():
            server = _own.server = Server()
        _children.add(server)
    try:
        code = server.run(["--wait-for-lock", "repro", *arguments], environment(), log)
    except BaseException:
        server.kill()
        raise
    finally:
        with _children_lock:
            _children.discard(server)
    if code:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:])
        raise FlowError(
            f"`dvc repro {' '.join(arguments)}` ended with {code}; the end of {log}:\n{tail}"
        )


class Threads:
    """The stages as Prefect tasks in threads of this process. `seconds` takes how long each
    took. One task more than `jobs` is begun, and waits for its turn: Prefect's book-keeping, a
    second a task, is done while others work."""

    ahead = 1

    def __init__(self, jobs: int, retries: int, seconds: dict[str, float]):
        from prefect import flow, task
        from prefect.cache_policies import NO_CACHE
        from prefect.task_runners import ThreadPoolTaskRunner

        # how each ended, "" when well; a future asks the server, which may learn it later than we
        self.problems: dict[str, str] = {}
        problems, turn = self.problems, threading.Semaphore(jobs)

        @task(
            name="stage",
            task_run_name="{stage}",
            retries=retries,
            cache_policy=NO_CACHE,
            persist_result=False,
        )
        def single(stage: str) -> None:
            problems[stage] = "the task did not come to its end"
            with turn:
                begin = time.monotonic()
                try:
                    reproduce("-s", stage, log=log_of(stage))
                except FlowError as error:
                    problems[stage] = str(error)
                    raise
                seconds[stage] = round(time.monotonic() - begin, 1)
            problems[stage] = ""

        self.task = single
        runner: Any = ThreadPoolTaskRunner(max_workers=jobs + self.ahead)
        self.flow = flow(name="reproduce", task_runner=runner, persist_result=False)

    def submit(self, stage: str) -> Any:
        """Start a stage as a task of its step's name."""
        return self.task.with_options(**called(stage)).submit(stage)

    def problem(self, stage: str, _future: Any) -> str:
        """Why the stage failed, "" when it did not."""
        return self.problems.get(stage, "the task did not begin")


def remembered() -> dict[str, Any]:
    """What stages took before, {} where that is not known."""
    try:
        found = json.loads(SECONDS.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def run(
    graph: Graph,
    *,
    jobs: int,
    retries: int = 0,
    limits: dict[str, int] | None = None,
    hands: Callable[..., Any] = Threads,
) -> list[str]:
    """Run the stages as tasks of one Prefect flow; the names of those that failed. Their messages
    go to standard error.

    `hands(jobs, retries, seconds)` are who works: `Threads` here, or `flows.distant.Machines`.
    """
    os.environ.update(environment())  # Prefect reads it when it is imported
    from prefect.states import Completed, Failed
    from tqdm import tqdm

    from flows.progress import Progress

    seconds = remembered()
    workers, ended = hands(jobs, retries, seconds), dict[str, str]()

    def start(stage: str, done: Callable[[bool], None]) -> None:
        def tell(future: Any) -> None:
            problem = "its result could not be judged"
            try:
                if problem := workers.problem(stage, future):
                    tqdm.write(f"error: {stage}: {problem}", file=sys.stderr)
            finally:
                ended[stage] = problem
                done(not problem)

        workers.submit(stage).add_done_callback(tell)

    failed: list[str] = []

    def everything() -> Any:
        with Progress(graph, seconds, jobs=jobs, limits=limits) as progress:
            try:
                failed.extend(
                    schedule(
                        graph,
                        start,
                        jobs=jobs + workers.ahead,
                        limits=limits,
                        first=ways(graph, seconds),
                        report=progress.report,
                    )
                )
            except BaseException:  # a signal: the tasks' threads would wait for their stages
                end_children()
                raise
        show_stages(graph, ended, seconds)
        return Failed(message=f"failed: {', '.join(failed)}") if failed else Completed()

    state = workers.flow(everything)(return_state=True)
    write(SECONDS, json.dumps(seconds, indent=1, sort_keys=True))
    if not failed and not state.is_completed():
        raise FlowError(f"the flow did not complete: {state.message}")
    return failed


@contextlib.contextmanager
def workers(
    runner: tuple[str, str] | None, graph: Graph, whole: Graph
) -> Iterator[tuple[Callable[..., Any], int]]:
    """Who does the stages, and how many they are: threads (None) or the machines of (a Dask
    scheduler's address, the profile)."""
    if runner is None:
        with reachable():
            yield Threads, os.cpu_count() or 1
        return
    from flows.distant import machines

    with machines(*runner, graph, whole) as found:
        yield found


def everything_up_to_date(
    jobs: int | None,
    retries: int,
    limits: dict[str, int],
    targets: tuple[str, ...] = (),
    runner: tuple[str, str] | None = None,
) -> str:
    """Bring all (or the targets and what they wait for) to date and prove it; says what was done
    in a sentence. FlowError if any failed."""
    stale = stale_stages()
    # below it lies every cell: which of them an edit touches is known once it has run
    if CODE in stale:
        reproduce("-s", CODE, log=log_of(CODE))
        stale = stale_stages()
    whole = parse(dvc("dag", "--dot")) if stale or targets else {}
    graph = plan(whole, stale, targets)
    if not graph:
        return "everything is up to date"
    begin = time.monotonic()
    with workers(runner, graph, whole) as (hands, most):
        jobs = jobs or most
        shared = 1 if runner else jobs  # machines elsewhere have cores of their own
        with telling(JOBS, str(shared)):
            failed = run(graph, jobs=jobs, retries=retries, limits=limits, hands=hands)
        if failed:
            raise FlowError(f"{len(failed)} of {len(graph)} stages failed: {', '.join(failed)}")
    middle = time.monotonic()
    reproduce(*targets, log=LOGS / "proof.log")
    again = len(re.findall(r"(?m)^Running stage", (LOGS / "proof.log").read_text(encoding="utf-8")))
    return (
        f"{len(graph)} stages, {jobs} at a time: {middle - begin:.0f} s; the serial `dvc repro` "
        f"after them ran {again} stages: {time.monotonic() - middle:.0f} s"
    )


def end_children() -> None:
    """Kill the running dvc processes (their stages die with them) and let no other begin."""
    with _children_lock:
        _stopping.set()
        for server in _children:
            server.process.kill()


def stop(number: int, _frame: FrameType | None) -> None:
    """A signal: end the children and leave by an ordinary exit, so that files are put right."""
    end_children()
    raise SystemExit(128 + number)


def limit(text: str) -> tuple[str, int]:
    """PATTERN=N, as `--limit` takes it."""
    pattern, _, count = text.rpartition("=")
    if not pattern or not count.isdigit() or int(count) < 1:
        raise argparse.ArgumentTypeError(f"expected PATTERN=N with N >= 1, found {text!r}")
    return pattern, int(count)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """What is asked for on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.repro", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--jobs",
        type=within(1, 256),
        metavar="N",
        help="stages at once (as many as cores, or as Dask workers)",
    )
    parser.add_argument(
        "--profile", help="run under this profile; params.yaml is as before afterwards"
    )
    parser.add_argument(
        "--retries",
        type=within(0, 9),
        default=0,
        metavar="N",
        help="second chances of a failed stage",
    )
    parser.add_argument(
        "--limit",
        type=limit,
        action="append",
        default=[],
        metavar="PATTERN=N",
        help="never more than N stages whose names match (for a GPU: --limit '*train*=1')",
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="STAGE",
        help="only this stage and what it waits for (repeatable)",
    )
    parser.add_argument(
        "--runner",
        default="threads",
        choices=("threads", "dask"),
        help="where stages run: here, or on a Dask cluster's workers",
    )
    parser.add_argument("--cluster", metavar="tcp://HOST:8786", help="the Dask scheduler's address")
    asked = parser.parse_args(arguments)
    if (asked.runner == "dask") != bool(asked.cluster):
        parser.error(
            "--runner dask and --cluster tcp://HOST:8786 go together; a cluster is started by "
            "`dask scheduler` here and `dask worker tcp://HOST:8786 --nthreads 1` in a clone on "
            "each machine (flows/README.md)"
        )
    return asked


def main(arguments: list[str] | None = None) -> int:
    """Parse, switch the profile, run; the exit code."""
    asked = parsed(arguments)
    ended_by(stop)
    try:
        with switched(asked.profile) as profile:
            refuse_parameters()  # before anything moves
            if asked.target:  # likewise
                plan(parse(dvc("dag", "--dot")), (), asked.target)
            for place in set_aside(profile):
                print(f"set aside a run that no cell declares: {place}", file=sys.stderr)
            runner = (asked.cluster, profile) if asked.cluster else None
            outcome = everything_up_to_date(
                asked.jobs, asked.retries, dict(asked.limit), tuple(asked.target), runner
            )
            print(f"{profile}: {outcome}")
    except FlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    from flows.repro import (
        # under its own name: other modules import this one, and its children are listed once
        main as known,
    )

    sys.exit(known())
