"""How far the DAG is: stages done, running, left and failed, the time so far and the time to come.

The time to come is no mean: what is left is played through in the order in which the flow would
start it (`flows.dag.schedule`'s own rule: parents, jobs, limits, longest way first) with each
stage's last seconds. A stage that never ran counts as the mean of those with the same name
before `@`, failing that by the size of its step at the pace of the known ones; with none known
nothing is foretold. Times are in seconds. On a terminal it is one line that stays in place;
elsewhere a line for each stage that ends, so that a log tells how far a run is.
"""

import heapq
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from flows.dag import Graph, choose, ways

NAMES = 3  # how many running stages the line names
# How long a stage of each step takes, in the mean of a cold run of mini on two cores [s].
SIZES = {"acquire": 5, "decode": 19, "validate": 1, "prepare": 2, "contexts": 12, "train": 14,
         "plain": 3, "synthetic": 21, "original": 15, "swept": 4, "sweep": 1, "evaluate": 18,
         "tabulate": 6, "page": 1, "summary": 1, "example": 1, "report": 1}  # fmt: skip


def step_of(stage: str) -> str:
    """What a stage does: `train` of `reports/chaos/dvc.yaml:train@mini-x`."""
    return stage.partition("@")[0].rpartition(":")[2]


def guessed(graph: Graph, seconds: dict[str, float]) -> dict[str, float]:
    """Seconds for every stage of the graph: its own, else its kin's mean, else its step's size at
    the pace of all known ones, else their mean; empty when none is known."""
    if not seconds:
        return {}
    kin: dict[str, list[float]] = {}
    for stage, took in seconds.items():
        kin.setdefault(stage.partition("@")[0], []).append(took)
    sized = {stage: SIZES[step_of(stage)] for stage in seconds if step_of(stage) in SIZES}
    pace = sum(seconds[stage] for stage in sized) / sum(sized.values()) if sized else 0.0
    mean = sum(seconds.values()) / len(seconds)

    def guess(stage: str) -> float:
        if stage in seconds:
            return seconds[stage]
        if known := kin.get(stage.partition("@")[0]):
            return sum(known) / len(known)
        return pace * SIZES.get(step_of(stage), 0) or mean

    return {stage: guess(stage) for stage in graph}


def to_come(
    graph: Graph,
    *,
    done: set[str],
    running: dict[str, float],
    seconds: dict[str, float],
    jobs: int,
    limits: dict[str, int] | None = None,
) -> float | None:
    """Seconds until the last stage ends, None when no stage's seconds are known.

    `running` maps each running stage to the seconds since it began; one that takes longer than
    foreseen is about to end.
    """
    if not (expected := guessed(graph, seconds)):
        return None
    first = ways(graph, expected)
    order = sorted(graph, key=lambda stage: (-first[stage], stage))
    waiting = {
        stage: parents - done
        for stage, parents in graph.items()
        if stage not in done and stage not in running
    }
    ends = [(max(0.0, expected[stage] - began), stage) for stage, began in running.items()]
    heapq.heapify(ends)
    at_work, now = set(running), 0.0
    while True:
        while (stage := choose(order, waiting, at_work, jobs, limits)) is not None:
            del waiting[stage]
            at_work.add(stage)
            heapq.heappush(ends, (now + expected[stage], stage))
        if not ends:
            return now
        now, stage = heapq.heappop(ends)
        at_work.discard(stage)
        for parents in waiting.values():
            parents.discard(stage)


def span(seconds: float) -> str:
    """45 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class Progress:
    """How far a run is, told on standard error, as a context; `report` is what
    `flows.dag.schedule` calls. `seconds` may grow meanwhile."""

    def __init__(
        self,
        graph: Graph,
        seconds: dict[str, float],
        *,
        jobs: int,
        limits: dict[str, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        terminal: bool | None = None,
    ):
        from tqdm import tqdm

        self.graph, self.seconds, self.jobs, self.limits, self.clock = (
            graph,
            seconds,
            jobs,
            limits,
            clock,
        )
        self.done: set[str] = set()
        self.failed: set[str] = set()
        self.began: dict[str, float] = {}
        self.lock, self.over = threading.Lock(), threading.Event()
        self.start = clock()
        self.bar = tqdm(
            total=len(graph),
            unit="stage",
            disable=None if terminal is None else not terminal,  # None: tqdm looks for itself
            file=sys.stderr,
            dynamic_ncols=True,
            miniters=0,
            mininterval=0,
            bar_format="{n_fmt}/{total_fmt} stages |{bar:12}| {elapsed}{postfix}",
        )

    def ahead(self) -> str:
        """How many stages have not begun, and when the last will have ended."""
        now = self.clock()
        left = len(self.graph) - len(self.done) - len(self.failed) - len(self.began)
        if self.failed:
            return f"{left} left; {len(self.failed)} failed, no other begins"
        come = to_come(
            self.graph,
            done=self.done,
            running={stage: now - began for stage, began in self.began.items()},
            seconds=self.seconds,
            jobs=self.jobs,
            limits=self.limits,
        )
        return f"{left} left; " + (
            "end not known yet" if come is None else f"about {span(come)} to come"
        )

    def words(self) -> str:
        """What the line on a terminal says beside the count and the time so far."""
        names = sorted(self.began)
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        return f"running {', '.join(names[:NAMES]) or 'none'}{more}; {self.ahead()}"

    def report(self, running: set[str], ended: str | None, ok: bool = True) -> None:
        """Stages are running; one has ended, well or not."""
        with self.lock:
            now = self.clock()
            began, self.began = self.began, {stage: self.began.get(stage, now) for stage in running}
            if ended is not None:
                (self.done if ok else self.failed).add(ended)
            if not self.bar.disable:
                self.bar.n = len(self.done) + len(self.failed)
                self.bar.set_postfix_str(self.words(), refresh=True)
            elif ended is not None:
                took = f"{ended} {'took' if ok else 'failed after'} {span(now - began[ended])}"
                count = f"{len(self.done) + len(self.failed)}/{len(self.graph)} stages"
                told = f"{count} in {span(now - self.start)}: {took}; {self.ahead()}"
                print(told, file=sys.stderr, flush=True)

    def tick(self) -> None:
        """Once a second: the time goes on while stages run."""
        while not self.over.wait(1.0):
            with self.lock:
                self.bar.set_postfix_str(self.words(), refresh=True)

    def __enter__(self) -> "Progress":
        if not self.bar.disable:
            threading.Thread(target=self.tick, name="progress", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        with self.lock:
            self.bar.close()
