"""DVC's graph of stages: what is stale in it, what goes first, and who may start when.

Nothing here runs a stage: `schedule` says when one may start, and its caller starts it.
"""

import fnmatch
import queue
import re
from collections.abc import Callable, Iterable

from flows.process import FlowError

Graph = dict[str, set[str]]  # stage -> the stages it waits for


def parse(dot: str) -> Graph:
    """The graph in `dvc dag --dot`'s output."""
    graph: Graph = {name: set() for name in re.findall(r'(?m)^\s*"([^"\n]+)";$', dot)}
    for parent, child in re.findall(r'(?m)^\s*"([^"\n]+)"\s*->\s*"([^"\n]+)";$', dot):
        graph.setdefault(parent, set())
        graph.setdefault(child, set()).add(parent)
    return graph


def above(graph: Graph, start: Iterable[str]) -> set[str]:
    """The stages in `start` and all that they wait for."""
    found: set[str] = set()
    todo = [stage for stage in start if stage in graph]
    while todo:
        if (stage := todo.pop()) not in found:
            found.add(stage)
            todo.extend(graph[stage])
    return found


def plan(graph: Graph, stale: Iterable[str], targets: Iterable[str] = ()) -> Graph:
    """What to run: of the stages that `dvc repro TARGET...` covers, the stale ones and all below
    them. FlowError 2 for an unknown target.

    It covers the targets and everything they wait for; without targets, those are the stages of the
    top dvc.yaml (named without a file).
    """
    if unknown := sorted(set(targets) - set(graph)):
        raise FlowError(
            f"no stage is named {', '.join(unknown)}; `dvc dag --dot` lists the names under this "
            "profile",
            2,
        )
    covered = above(
        graph,
        targets or (stage for stage in graph if ":" not in stage and not stage.endswith(".dvc")),
    )
    chosen = above(turned(graph), set(stale) & covered) & covered
    return {stage: graph[stage] & chosen for stage in chosen}


def turned(graph: Graph) -> Graph:
    """Of each stage those that wait for it."""
    children: Graph = {stage: set() for stage in graph}
    for stage, parents in graph.items():
        for parent in parents:
            children[parent].add(stage)
    return children


def ways(graph: Graph, seconds: dict[str, float]) -> dict[str, float]:
    """For each stage the seconds of the longest way from its start to the end of the DAG; an
    unknown stage counts 1 s."""
    children = turned(graph)
    found: dict[str, float] = {}
    waiting = {stage: len(below) for stage, below in children.items()}
    ready = [stage for stage, count in waiting.items() if not count]
    while ready:
        stage = ready.pop()
        found[stage] = seconds.get(stage, 1.0) + max(
            (found[child] for child in children[stage]), default=0.0
        )
        for parent in graph[stage]:
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    return found


def choose(
    order: Iterable[str],
    waiting: Graph,
    running: set[str],
    jobs: int,
    limits: dict[str, int] | None,
) -> str | None:
    """The first stage in the order that may start now: it waits for nobody, and neither `jobs`
    nor a limit of its kind is reached."""
    if len(running) >= jobs:
        return None
    for stage in order:
        if (
            stage in waiting
            and not waiting[stage]
            and not any(
                fnmatch.fnmatchcase(stage, pattern)
                and sum(fnmatch.fnmatchcase(name, pattern) for name in running) >= most
                for pattern, most in (limits or {}).items()
            )
        ):
            return stage
    return None


def schedule(
    graph: Graph,
    start: Callable[[str, Callable[[bool], None]], None],
    *,
    jobs: int,
    limits: dict[str, int] | None = None,
    first: dict[str, float] | None = None,
    report: Callable[[set[str], str | None, bool], None] = lambda running, ended, ok: None,
) -> list[str]:
    """Start each stage once its parents are done; the names of those that failed.

    `start(stage, done)` begins a stage and calls `done(ok)`, from any thread, at its end. At most
    `jobs` at once, and at most `limits[pattern]` of those whose names match the pattern. Larger
    `first` goes first. After a failure nothing new starts.
    """
    waiting = {stage: set(parents) for stage, parents in graph.items()}
    order = sorted(graph, key=lambda stage: (-(first or {}).get(stage, 0.0), stage))
    running: set[str] = set()
    failed: list[str] = []
    ended: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()
    while True:
        while not failed and (stage := choose(order, waiting, running, jobs, limits)) is not None:
            del waiting[stage]
            running.add(stage)
            start(stage, lambda ok, stage=stage: ended.put((stage, ok)))
        if not running:
            return failed
        report(running, None, True)
        stage, ok = ended.get()
        running.remove(stage)
        if not ok:
            failed.append(stage)
        for parents in waiting.values():
            parents.discard(stage)
        report(running, stage, ok)
