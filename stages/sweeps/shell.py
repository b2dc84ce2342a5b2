"""The one shell of all sweeps: names -> a family's Task -> draws -> best.yaml, trials.csv,
importance.csv (in git: read them in a diff) and the record.

They are written to reports/EXPERIMENT/PROFILE/sweeps/DATASET/MODEL. Draws made are kept until then
(store.py): a killed sweep goes on. TRADEWIND_SWEEP_WORKERS processes work here; with the study in
PostgreSQL (TRADEWIND_SWEEPS_URL) `--join` helps from any machine.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import optuna

from stages import code, files, records, runner
from stages.errors import DataError, InputError
from stages.runner import Asked, Work
from stages.sweeps import outputs, search
from stages.sweeps.ledger import Objective, Plan
from stages.sweeps.store import URL, Store

WORKERS = "TRADEWIND_SWEEP_WORKERS"
MOST = 256
NAMES = ("experiment", "profile", "dataset", "model")
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--join": {
        "action": "store_true",
        "help": f"only help with a sweep that was started elsewhere, through {URL}",
    }
}


@dataclass(frozen=True)
class Task:
    """What a family has searched. plan: all that decides the draws; module: of the model,
    stages.FAMILY.models.NAME; sources: files and folders that are read; used: the parameters, as
    the record tells them; objective: the error of arguments, which goes to other processes."""

    plan: Plan
    module: str
    sources: Sequence[Path]
    used: Mapping[str, Any]
    objective: Objective


def command(
    module: str, about: str, plan: Callable[[Asked], Task], argv: Sequence[str] | None = None
) -> int:
    """The command line of a family's sweep: its exit code."""

    def planned(asked: Asked) -> Work:
        return work_of(asked, plan(asked), module)

    return runner.command(module, about, NAMES, planned, argv, OPTIONS, run)


def workers() -> int:
    """How many processes the environment asks for. InputError for what is no such number."""
    text = os.environ.get(WORKERS) or "1"
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST):
        raise InputError(
            "not a number of workers", where=WORKERS, found=repr(text[:40]), expected=f"1 to {MOST}"
        )
    return int(text)


def work_of(asked: Asked, task: Task, module: str) -> Work:
    """The sweep, or the help with one (`--join`), as the runner does it."""
    names, count, modules = asked.names, workers(), (module, task.module)
    threads = asked.parameters.training.threads
    inputs = {path.as_posix(): records.describe(path) for path in records.files_in(task.sources)}
    digest, environment = code.recorded(modules)["digest"], records.environment(threads=threads)
    store = Store.named(
        records.key("sweep", names["experiment"], dict(task.used), digest, inputs, environment)
    )
    used = dict(task.used)
    folder = asked.home / "sweeps" / names["dataset"] / names["model"]
    if names["join"] and store.local:
        raise InputError(
            "workers join a sweep through a database",
            found=f"no {URL}",
            remedy=f"set {URL} as where the sweep was started",
        )
    record = records.location(
        "sweep",
        names["profile"],
        names["dataset"],
        experiment=names["experiment"],
        cell=names["model"],
    )
    return Work(
        stage="sweep",
        cell=f"{names['profile']}/{names['dataset']}/{names['model']}",
        record=None if names["join"] else record,
        do=partial(joined, task, store)
        if names["join"]
        else partial(swept, task, store, folder, count, used),
        inputs=task.sources,
        code=modules,
        params=used,
        seed=task.plan.seed,
        threads=threads,
        clear=store.clear,
    )


def swept(
    task: Task, store: Store, folder: Path, count: int, used: dict[str, Any]
) -> dict[str, Path]:
    """Make all draws by `count` workers and write what was found; `used` learns how many were made
    elsewhere."""
    draws, joined = search.sweep(task.plan, store, task.objective, count)
    with files.atomic_folder(folder) as temporary:
        outputs.write(temporary, draws, task.plan.wanted)
    used.update(workers=count, joined_draws=joined)
    return records.outputs_of(folder, folder)


def joined(task: Task, store: Store) -> dict[str, Path]:
    """Help with a sweep that runs elsewhere, and write nothing."""
    search.join(task.plan, store, task.objective)
    return {}


def run(work: Work) -> None:
    """Do the work. DataError where the store is lost: its cause, which Optuna chains, may name the
    database's user and is not told."""
    try:
        runner.run(work)
    except optuna.exceptions.StorageInternalError as error:
        raise DataError(
            "the sweep lost its store",
            found=str(error),
            remedy="run the same command again to go on",
        ) from None
