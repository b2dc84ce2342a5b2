"""Progress: what is foretold equals the schedule that then happens; the line says it; nothing is
shown without a terminal."""

import random

import pytest

from flows import dag
from flows.progress import SIZES, Progress, guessed, span, to_come

DIAMOND = {"a": set(), "b": {"a"}, "c": {"a"}, "d": {"b", "c"}}
SECONDS = {"a": 2.0, "b": 10.0, "c": 3.0, "d": 1.0}


def test_an_unknown_stage_counts_as_its_kin_then_by_its_step_then_as_all():
    graph = {"train@mini-0": set(), "train@mini-9": set(), "report": set(), "novel@x": set()}
    seconds = {"train@mini-0": 4.0, "train@mini-1": 8.0, "other": 30.0}
    known = {"train@mini-0": 4.0, "train@mini-9": 6.0, "novel@x": 14.0}
    pace = (4.0 + 8.0) / (2 * SIZES["train"])
    assert guessed(graph, seconds) == known | {"report": pytest.approx(pace * SIZES["report"])}
    assert guessed(graph, {"other": 30.0}) == dict.fromkeys(graph, 30.0), "no step is known"
    assert guessed(graph, {}) == {}


def test_at_a_cold_start_trainings_are_not_taken_for_as_short_as_what_is_known():
    graph = {f"reports/{name}/dvc.yaml:train@mini-{name}": set() for name in "abc"}
    foretold = guessed(graph, {"data/sets/dvc.yaml:validate@mini-x": 2.0})
    assert foretold == dict.fromkeys(graph, 2.0 * SIZES["train"] / SIZES["validate"])


@pytest.mark.parametrize(
    ("jobs", "limits", "expected"),
    [(1, None, 16), (2, None, 13), (2, {"[bc]": 1}, 16), (9, None, 13)],
)
def test_the_whole_of_a_diamond(jobs, limits, expected):
    assert (
        to_come(DIAMOND, done=set(), running={}, seconds=SECONDS, jobs=jobs, limits=limits)
        == expected
    )


def test_the_rest_counts_what_has_run_and_an_overdue_stage_is_about_to_end():
    def rest(**running):
        return to_come(DIAMOND, done={"a"}, running=running, seconds=SECONDS, jobs=2)

    assert rest(b=4.0, c=1.0) == 7.0, "6 s of b, then d; c ends meanwhile"
    assert rest(b=40.0, c=1.0) == 3.0, "b is overdue; 2 s of c, then d"
    assert to_come(DIAMOND, done=set(DIAMOND), running={}, seconds=SECONDS, jobs=2) == 0.0
    assert to_come(DIAMOND, done=set(), running={}, seconds={}, jobs=2) is None


def play(graph, seconds, jobs, limits):
    """Independent of the forecast: `flows.repro.schedule` itself on a clock of our own; when the
    last stage ended, and when each began."""
    now, ends, began = [0.0], {}, {}
    waiting = []

    class Queue:
        put = waiting.append

        def get(self):
            stage = min(ends, key=lambda name: (ends[name], name))
            now[0] = ends.pop(stage)
            dones[stage](True)
            return waiting.pop()

    dones = {}

    def start(stage, done):
        began[stage] = now[0]
        ends[stage], dones[stage] = now[0] + seconds[stage], done

    true, dag.queue.SimpleQueue = (
        dag.queue.SimpleQueue,
        type("Subscriptable", (Queue,), {"__class_getitem__": classmethod(lambda cls, _: cls)}),
    )
    try:
        assert (
            dag.schedule(graph, start, jobs=jobs, limits=limits, first=dag.ways(graph, seconds))
            == []
        )
    finally:
        dag.queue.SimpleQueue = true
    return now[0], began


@pytest.mark.parametrize("seed", range(20))
def test_the_forecast_is_the_schedule_that_happens(seed):
    """At the start and at a random moment in the middle, on random graphs with random jobs and
    limits."""
    draw = random.Random(seed)
    graph = {f"s{n}": {f"s{m}" for m in range(n) if draw.random() < 0.15} for n in range(20)}
    seconds = {stage: draw.uniform(0.5, 20.0) for stage in graph}
    jobs, limits = draw.randint(1, 4), {"s*[02468]": draw.randint(1, 2)}
    whole, began = play(graph, seconds, jobs, limits)
    assert to_come(
        graph, done=set(), running={}, seconds=seconds, jobs=jobs, limits=limits
    ) == pytest.approx(whole)
    moment = draw.uniform(0.0, whole)
    done = {stage for stage in graph if began[stage] + seconds[stage] <= moment}
    running = {
        stage: moment - began[stage]
        for stage in graph
        if began[stage] <= moment and stage not in done
    }
    assert to_come(
        graph, done=done, running=running, seconds=seconds, jobs=jobs, limits=limits
    ) == pytest.approx(whole - moment)


def test_the_line_says_done_running_left_failed_and_when_it_ends(capsys):
    time = [100.0]
    with Progress(DIAMOND, SECONDS, jobs=2, clock=lambda: time[0], terminal=True) as progress:
        progress.report({"a"}, None)
        assert progress.words() == "running a; 3 left; about 13 s to come"
        time[0] += 2
        progress.report(set(), "a")
        progress.report({"b", "c"}, None)
        time[0] += 4
        assert progress.words() == "running b, c; 1 left; about 7 s to come"
        progress.report({"c"}, "b", False)
        assert progress.words() == "running c; 1 left; 1 failed, no other begins"
    assert "2/4 stages" in capsys.readouterr().err


def test_many_running_stages_are_counted_not_listed():
    graph = {f"s{n}": set() for n in range(5)}
    progress = Progress(graph, {}, jobs=5, terminal=False)
    progress.report(set(graph), None)
    assert progress.words() == "running s0, s1, s2 and 2 more; 0 left; end not known yet"


def test_without_a_terminal_each_stage_that_ends_has_a_line(capfd):
    time = [100.0]
    with Progress(DIAMOND, SECONDS, jobs=2, clock=lambda: time[0]) as progress:
        progress.report({"a"}, None)
        time[0] += 2
        progress.report(set(), "a")
        progress.report({"b", "c"}, None)
        time[0] += 4
        progress.report({"c"}, "b", False)
    out, err = capfd.readouterr()
    assert out == "" and err.splitlines() == [
        "1/4 stages in 2 s: a took 2 s; 3 left; about 11 s to come",
        "2/4 stages in 6 s: b failed after 4 s; 1 left; 1 failed, no other begins",
    ]


def test_spans_are_short():
    assert [span(seconds) for seconds in (0.4, 45, 89.4, 90, 3600, 5400, 11_100)] == [
        "0 s",
        "45 s",
        "89 s",
        "2 min",
        "60 min",
        "1 h 30 min",
        "3 h 05 min",
    ]
