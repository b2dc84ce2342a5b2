"""In which order the parallel flow starts stages: what it reads from DVC, and promises on random
graphs."""

import random
import threading
import time

import pytest

from flows import repro

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
