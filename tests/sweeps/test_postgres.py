"""Workers that share a real PostgreSQL server: exact counts with one of them killed, the serial
study's result, and a password nobody sees."""

import multiprocessing
import os
import re
import subprocess
import sys
from statistics import median

import postgres
import pytest
import toy_sweep

from stages.errors import InputError
from stages.sweeps import search
from stages.sweeps.ledger import Ledger, Plan
from stages.sweeps.store import Store

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason=postgres.ABSENT)


@pytest.fixture(scope="module")
def url():
    """An empty database, the tests' own."""
    with postgres.server() as found:
        yield found


def shared(key: str, url: str) -> Store:
    return Store(key, url, beat_s=1, grace_s=2)


def password_of(url: str) -> str:
    return re.search(r"sweeper:([0-9a-f]+)@", url)[1]


def test_two_workers_one_killed_make_every_draw_once_and_random_draws_are_the_serial_ones(
    tmp_path, monkeypatch, url
):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(), shared("random", url)
    draws, _ = search.sweep(which, store, toy_sweep.Deadly(tmp_path), workers=2)
    trials = Ledger(which, which.study(store)).study.trials
    assert (tmp_path / "killed").exists() and len(
        set((tmp_path / "scored").read_text().split())
    ) == 2
    assert sorted(
        trial.user_attrs["draw"] for trial in trials if trial.state.name == "COMPLETE"
    ) == list(range(8))
    assert draws == toy_sweep.serial(which)
    store.clear()


@pytest.mark.slow_fault
def test_the_best_of_two_tpe_workers_is_the_serial_studys_to_sampling_noise(
    tmp_path, monkeypatch, url
):
    """Compared: the best of 30 draws of two workers, one killed, with the bests of 20 serial
    studies of other seeds: it lies among them, give or take their own spread, and well below the
    median of single draws."""
    monkeypatch.chdir(tmp_path)
    settings = {"sampler": "tpe", "trials": 30}
    which, store = toy_sweep.plan(**settings), shared("tpe", url)
    draws, _ = search.sweep(which, store, toy_sweep.Deadly(tmp_path, after=14), workers=2)
    store.clear()
    assert [draw.draw for draw in draws] == list(range(30)) and (tmp_path / "killed").exists()
    serial = [toy_sweep.serial(Plan(which.wanted, seed, "toy")) for seed in range(20)]
    bests = [search.best(one).value for one in serial]
    assert search.best(draws).value <= max(bests) + (max(bests) - min(bests))
    assert search.best(draws).value < median(draw.value for one in serial for draw in one)


def test_a_worker_joins_from_another_process_and_the_study_is_gone_when_the_outputs_stand(
    tmp_path, monkeypatch, url
):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(trials=30), shared("join", url)
    with pytest.raises(InputError, match="no such sweep to join"):
        search.join(which, store, toy_sweep.plain)
    store.make()
    which.study(store)
    helper = multiprocessing.get_context("spawn").Process(
        target=search.join, args=(which, store, toy_sweep.Deadly(tmp_path, after=10**6))
    )
    helper.start()
    ledger = Ledger(which, which.study(store))
    while not ledger.joined():  # the helper is at work: now the sweep itself begins
        assert helper.exitcode is None
        helper.join(0.05)
    draws, joined = search.sweep(which, store, toy_sweep.plain)
    store.clear()
    helper.join()
    assert helper.exitcode == 0 and len(draws) == 30 and joined > 0
    with pytest.raises(InputError, match="no such sweep to join"):
        which.study(store, begin=False)


def test_a_draw_whose_worker_died_before_its_first_signature_is_not_lost(
    tmp_path, monkeypatch, url
):
    """Optuna counts as stale only what has signed once; a kill right after the trial was taken
    leaves none."""
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(trials=3), shared("unsigned", url)
    store.make()
    pid = os.fork()
    if not pid:
        try:
            os.environ["FAULT"] = "asked:1"
            Ledger(which, which.study(store)).work(toy_sweep.plain)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert [trial.state.name for trial in which.study(store).trials] == ["RUNNING"]
    assert [draw.draw for draw in search.sweep(which, store, toy_sweep.plain)[0]] == [0, 1, 2]
    store.clear()


def test_sweeps_that_start_side_by_side_make_the_tables_once(url):
    """On a database without tables; each process has its own store."""
    import psycopg2

    with (
        psycopg2.connect(re.sub(r"\+psycopg2", "", url)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("drop schema public cascade; create schema public")
    code = (
        "import sys; from stages.sweeps.store import Store; import os; Store('k', "
        "os.environ['U']).make()"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, "U": url}, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said


def test_a_wrong_password_is_told_without_telling_it(url):
    wrong = url.replace(password_of(url), "opensesame")
    with pytest.raises(InputError, match="password authentication failed") as told:
        Store("k", wrong).make()
    assert "opensesame" not in str(told.value)
