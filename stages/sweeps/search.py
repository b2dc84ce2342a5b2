"""One sweep: the arguments of a model that learns nothing by gradient, chosen by a family's
objective, the less the better.

Draws come from Optuna's tree of Parzen estimators, at random or on a grid (`sweeps` in params.yaml;
the thesis searched with a random forest, and prints no ranges). With one worker
the draws come one after another and are the same on every run, also on one that was killed and goes
on. With several, the draws of `random` and `grid` still are; those of `tpe` are not, as what each
is proposed from depends on who was faster, nor is what a pruner ends.
"""

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any

import optuna
from tqdm import tqdm

from stages.errors import DataError, InputError, TradewindError
from stages.files import die_with
from stages.sweeps.ledger import POLL_S, Draw, Ledger, Objective, Plan
from stages.sweeps.store import Store


def best(draws: list[Draw]) -> Draw:
    """The draw with the least error; the first of equals. DataError when none has one."""
    found = [draw for draw in draws if draw.value is not None]
    if not found:
        raise DataError(
            "no draw of the sweep has a finite error",
            found=f"{len(draws)} draws",
            remedy="mend the sweep's space in params.yaml",
        )
    return min(found, key=lambda draw: (draw.value, draw.draw))


def sweep(
    plan: Plan, store: Store, objective: Objective, workers: int = 1
) -> tuple[list[Draw], int]:
    """Make, or go on with, all draws of a plan; returns them in order, and how many were made by
    workers that joined from elsewhere."""
    store.make()
    ledger = Ledger(plan, plan.study(store))
    ledger.settle(store.local)
    with tqdm(total=plan.wanted.draws, disable=None, unit="draw") as bar:

        def progress(done: int) -> None:
            bar.update(done - bar.n)

        if workers == 1:
            ledger.work(objective, progress)
        else:
            together(ledger, store, objective, workers, progress)
    return ledger.finished(), ledger.joined()


def join(plan: Plan, store: Store, objective: Objective) -> None:
    """Help with a sweep that runs elsewhere until all its draws are finished. InputError when
    there is none."""
    store.make()
    ledger = Ledger(plan, plan.study(store, begin=False))
    with tqdm(total=plan.wanted.draws, disable=None, unit="draw") as bar:
        try:
            ledger.work(objective, lambda done: bar.update(done - bar.n), joined=True)
        except KeyError:  # the study goes when the sweep's outputs stand
            with contextlib.suppress(InputError):
                plan.study(store, begin=False)
                raise


def together(
    ledger: Ledger,
    store: Store,
    objective: Objective,
    workers: int,
    progress: Callable[[int], None],
) -> None:
    """The draws by several processes of ours. A killed one is missed and its draw made by another.

    DataError when one fails or none is left.
    """
    spawn = multiprocessing.get_context("spawn")
    crew: list[Any] = [
        spawn.Process(target=labour, args=(ledger.plan, store, objective, os.getpid()))
        for _ in range(workers)
    ]
    seen: set[int] = set()
    try:
        for process in crew:
            process.start()
        while True:
            living: list[Any] = [process for process in crew if process.exitcode is None]
            done = len(ledger.finished())
            progress(done)
            if done == ledger.plan.wanted.draws:
                break
            check(crew, living, done)
            ledger.bury(seen)
            connection.wait([process.sentinel for process in living], timeout=POLL_S)
        for process in crew:
            process.join()
    finally:
        for process in crew:
            if process.is_alive():
                process.terminate()
                process.join()


def check(crew: list[BaseProcess], living: list[BaseProcess], done: int) -> None:
    """DataError when a worker failed, or when all were killed."""
    failed = [process for process in crew if (process.exitcode or 0) > 0]
    if failed or not living:
        what = "a worker of the sweep failed" if failed else "all workers of the sweep were killed"
        codes = ", ".join(str(process.exitcode) for process in crew if process.exitcode is not None)
        raise DataError(
            what,
            found=f"exit codes {codes}; {done} draws are finished and kept",
            remedy=("see its error above; " if failed else "")
            + "run the same command again to go on",
        )


def labour(plan: Plan, store: Store, objective: Objective, parent: int) -> None:
    """A worker process: it makes draws until all are finished and dies with its parent."""
    die_with(parent)
    try:
        Ledger(plan, plan.study(store, begin=False)).work(objective)
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except optuna.exceptions.StorageInternalError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
