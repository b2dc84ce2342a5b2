"""Several workers on one SQLite file: every draw exactly once, also when one of them is killed
in the middle of a draw; mistakes are told."""

import os
import re
from pathlib import Path

import pytest
import toy_sweep

from stages.errors import DataError, InputError
from stages.sweeps import search
from stages.sweeps.ledger import Ledger
from stages.sweeps.shell import workers
from stages.sweeps.store import Store


def quick(key: str) -> Store:
    """A store whose dead are missed after a second or two instead of ten."""
    return Store(key, beat_s=1, grace_s=2)


@pytest.mark.parametrize("sampler", ["random", pytest.param("tpe", marks=pytest.mark.slow_fault)])
def test_of_two_workers_one_killed_leaves_every_draw_made_once(tmp_path, monkeypatch, sampler):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(sampler=sampler), quick("toy")
    draws, joined = search.sweep(which, store, toy_sweep.Deadly(tmp_path), workers=2)
    dead, made = (tmp_path / "killed").read_text(), (tmp_path / "scored").read_text().split()
    assert (
        len(set(made)) == 2 and dead in made and str(os.getpid()) not in made and len(made) == 9
    )  # the killed draw was begun twice
    trials = Ledger(which, which.study(store)).study.trials
    assert [draw.draw for draw in draws] == list(range(8)) and joined == 0
    assert sum(trial.state.name == "COMPLETE" for trial in trials) == 8 and not [
        trial for trial in trials if trial.state.name in ("RUNNING", "WAITING")
    ]
    assert all(draw.value == pytest.approx(toy_sweep.error(draw.arguments)) for draw in draws)
    if sampler == "random":  # the same table as one worker's; of `tpe` the order is lost
        assert draws == toy_sweep.serial(which)


def test_a_sweep_whose_workers_were_all_killed_says_so_and_goes_on_when_called_again(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(trials=6), quick("toy")
    monkeypatch.setenv("FAULT", "trial:2")
    with pytest.raises(
        DataError, match=r"all workers of the sweep were killed[\s\S]*-9, -9; 2 draws are finished"
    ):
        search.sweep(which, store, toy_sweep.plain, workers=2)
    monkeypatch.delenv("FAULT")
    assert search.sweep(which, store, toy_sweep.plain)[0] == toy_sweep.serial(which)


def test_a_worker_that_fails_ends_the_sweep(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="a worker of the sweep failed"):
        search.sweep(toy_sweep.plan(), quick("toy"), toy_sweep.broken, workers=2)
    assert "this model cannot be scored" in capfd.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "257", "9" * 5000, "²"])
def test_a_number_of_workers_that_is_none_is_refused(monkeypatch, text):
    monkeypatch.setenv("TRADEWIND_SWEEP_WORKERS", text)
    with pytest.raises(InputError, match="not a number of workers"):
        workers()


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("sqlite:///x.db", "found: sqlite"),
        ("mysql://u:secret@h/d", "found: mysql"),
        ("secret", "text that is no URL"),
    ],
)
def test_only_postgresql_is_shared_and_no_password_is_told(monkeypatch, url, found):
    monkeypatch.setenv("TRADEWIND_SWEEPS_URL", url)
    with pytest.raises(InputError, match=re.escape(found)) as told:
        Store.named("key")
    assert (
        "secret" not in str(told.value).replace("found: secret", "") and told.value.exit_code == 2
    )


def test_a_database_that_does_not_answer_is_told_before_any_work_without_the_password():
    store = Store("key", "postgresql+psycopg2://user:secret@127.0.0.1:1/name?password=secret2")
    with pytest.raises(InputError, match="cannot be used") as told:
        store.make()
    assert "secret" not in str(told.value) + repr(
        store
    ) and "postgresql+psycopg2://127.0.0.1:1/name" in str(told.value)


def test_a_study_file_of_another_kind_is_refused_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which, store = toy_sweep.plan(), Store("toy")
    store.folder.mkdir(parents=True)
    Path(store.folder, "study.db").write_bytes(
        b"not a database, but long enough to be taken for one" * 100
    )
    with pytest.raises(DataError, match="remove that folder"):
        search.sweep(which, store, toy_sweep.plain)
