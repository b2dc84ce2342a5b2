"""A sweep that is killed anywhere and started again ends in the same bytes as one that was left
alone.

Every kill is a SIGKILL at a named point, in a forked child; n goes up until a run ends without
meeting it (SQLite's method).
"""

import itertools
import os
import signal
from pathlib import Path

import optuna
import pytest
import toy_sweep

from stages.sweeps.ledger import Ledger
from stages.sweeps.store import Store

PRUNED = {"sampler": "tpe", "trials": 12, "pruner": "median"}
POINTS = ("offered", "asked", "trial", "scored", "told", "before_rename", "after_rename")


def killed(fault: str, which, store: Store, folder: Path, objective=toy_sweep.plain) -> bool:
    """Whether a child that makes the sweep dies by SIGKILL at `fault`."""
    pid = os.fork()
    if not pid:
        try:
            os.environ["FAULT"] = fault
            toy_sweep.swept(which, store, folder, objective)
        finally:
            os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.parametrize(
    ("settings", "points", "stride", "most"),
    [
        pytest.param({"sampler": "tpe", "trials": 12}, ("scored",), 5, 1, id="once"),
        *(
            pytest.param(*each, 10**6, id=name, marks=pytest.mark.slow_fault)
            for name, *each in (
                ("tpe", {"sampler": "tpe", "trials": 12}, POINTS, 5),
                ("pruned", PRUNED, ("reported", "scored"), 9),
                ("random", {"sampler": "random", "trials": 5}, ("trial",), 2),
            )
        ),
    ],
)
def test_a_sweep_killed_and_resumed_is_the_undisturbed_one(
    tmp_path, monkeypatch, settings, points, stride, most
):
    """Points inside a draw are met at every few draws, those around the outputs at each passage;
    in `make test` one point once."""
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(**settings), Store("toy")
    toy_sweep.swept(which, store, Path("whole"))
    whole = toy_sweep.bytes_of(Path("whole"))
    for point in points:
        kills = 0
        for n in itertools.islice(itertools.count(1, 1 if "rename" in point else stride), most):
            if not killed(f"{point}:{n}", which, store, Path("out")):
                break
            kills += 1
            toy_sweep.swept(which, store, Path("out"))
            assert toy_sweep.bytes_of(Path("out")) == whole, (point, n)
            assert not store.folder.exists()
        assert kills, f"{point} was never met"


@pytest.mark.slow_fault
def test_a_sweep_killed_at_every_draw_ends_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(sampler="tpe", trials=12), Store("toy")
    toy_sweep.swept(which, store, Path("whole"))
    kills = 0
    while killed(
        "trial:2", which, store, Path("out")
    ):  # each start finishes one draw and dies in the next
        kills += 1
    assert kills == 11 and toy_sweep.bytes_of(Path("out")) == toy_sweep.bytes_of(Path("whole"))


def test_a_killed_draw_is_failed_and_made_anew_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(trials=5), Store("toy")
    assert killed("trial:3", which, store, Path("out"))
    ledger = Ledger(which, which.study(store))
    assert [trial.state.name for trial in ledger.study.trials] == [
        "COMPLETE",
        "COMPLETE",
        "RUNNING",
    ]
    ledger.settle(local=True)
    ledger.work(toy_sweep.plain)
    made = [(trial.user_attrs["draw"], trial.state.name) for trial in ledger.study.trials]
    assert made == [
        (0, "COMPLETE"),
        (1, "COMPLETE"),
        (2, "FAIL"),
        (2, "COMPLETE"),
        (3, "COMPLETE"),
        (4, "COMPLETE"),
    ]


def test_an_error_of_the_objective_is_raised_and_its_draw_stays_owed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(trials=3), Store("toy")
    with pytest.raises(ZeroDivisionError):
        toy_sweep.swept(which, store, Path("out"), toy_sweep.broken)
    assert not Path("out").exists()
    assert [draw.draw for draw in toy_sweep.swept(which, store, Path("out"))] == [0, 1, 2]


def test_of_two_trials_of_one_draw_the_first_counts_and_what_is_nobodys_is_failed(
    tmp_path, monkeypatch
):
    """Two workers that start together may both offer a draw; one may ask when the other has just
    taken the trial that waited."""
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(trials=2), Store("toy")
    store.make()
    ledger = Ledger(which, which.study(store))
    for _ in range(2):
        ledger.study.add_trial(
            optuna.trial.create_trial(state=optuna.trial.TrialState.WAITING, user_attrs={"draw": 0})
        )
    ledger.attempt(toy_sweep.plain)
    ledger.attempt(toy_sweep.plain)  # the second of draw 0
    ledger.attempt(toy_sweep.plain)  # nothing waits: a trial without a draw
    assert [trial.state.name for trial in ledger.study.trials] == ["COMPLETE", "FAIL", "FAIL"]
    ledger.work(toy_sweep.plain)
    assert [draw.draw for draw in ledger.finished()] == [0, 1]


def test_a_worker_that_was_taken_for_dead_changes_nothing_when_it_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(trials=2), Store("toy")
    store.make()
    ledger = Ledger(which, which.study(store))

    def slow(arguments, report=None):
        other = Ledger(which, which.study(store))
        other.settle(local=True)  # buries this very trial ...
        other.work(toy_sweep.plain)  # ... and makes all draws
        return 0.0  # better than any: it would win

    assert ledger.offer()
    ledger.attempt(slow)
    assert [draw.draw for draw in ledger.finished()] == [0, 1] and min(
        draw.value for draw in ledger.finished()
    ) > 0
