"""One sweep: the arguments of a model that learns nothing by gradient, chosen on validation slices
(thesis sections 1.3.3, 1.4.1).

The thesis searched k, the scales and the like with a random forest, and prints no ranges; we use
Optuna's tree of Parzen estimators, random draws or a grid (`sweeps` in params.yaml). The objective
is the RMSE per component over all points of every `val_every`-th validation slice. With one worker
the draws come one after another and are the same on every run, also on one that was killed and goes
on. With several, the draws of `random` and `grid` still are; those of `tpe` are not, as what each
is proposed from depends on who was faster, nor is what a pruner ends.
"""

import contextlib
import functools
import multiprocessing
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from torch import nn
from tqdm import tqdm

from stages import params
from stages.errors import DataError, InputError, TradewindError
from stages.fields.models import build
from stages.files import die_with
from stages.sweeps.ledger import POLL_S, Draw, Ledger, Objective, Plan, Report
from stages.sweeps.space import Arguments
from stages.sweeps.store import Store
from stages.training.losses import square
from stages.winds.batches import Data
from stages.winds.contexts.given import Contexts
from stages.winds.fitting import scale_to

PARTS = 4  # of the slices; after each but the last a pruner may end the draw


@dataclass(frozen=True)
class Score:
    """The objective of a model on one prepared data set; each process opens the data once."""

    model: str
    arm: dict[str, Any]
    prepared: Path
    contexts: params.Contexts
    every: int
    threads: int

    def __call__(self, arguments: Arguments, report: Report | None = None) -> float:
        """RMSE per component, knots."""
        torch.set_num_threads(self.threads)
        return score(
            build(self.model, {**self.arm, **arguments}),
            opened(self.prepared, self.contexts),
            self.every,
            report,
        )


@functools.lru_cache(maxsize=1)
def opened(prepared: Path, settings: params.Contexts) -> Contexts:
    """A prepared data set."""
    return Contexts.open(prepared, settings)


@torch.no_grad()
def score(model: nn.Module, contexts: Contexts, every: int, report: Report | None = None) -> float:
    """RMSE per component in knots over every n-th validation slice.

    The slices come in four parts, each spread over the whole validation, so that what `report` is
    told after a part is near what follows.
    """
    scale_to(model, contexts)
    model.eval()
    data = Data(contexts, model, torch.device("cpu"))
    unit_kn, slices = data.unit_kn(), data.slices("val")[::every]
    if not slices:
        raise DataError(
            "nothing to choose on",
            found="no validation slices",
            remedy="widen the split's intervals in params.yaml",
        )
    squares, points = 0.0, 0
    for part in range(PARTS):
        for slice in slices[part::PARTS]:
            batch = data.batch(slice)
            count = int(batch.target_mask.sum())
            squares, points = (
                squares + float(square(model(batch).mean, batch, unit_kn)) * count,
                points + count,
            )
        if report and points and part < PARTS - 1:
            report(part, float(np.sqrt(squares / points)))
    return float(np.sqrt(squares / points))


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
        progress = lambda done: bar.update(done - bar.n)  # noqa: E731
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
    crew = [
        spawn.Process(target=labour, args=(ledger.plan, store, objective, os.getpid()))
        for _ in range(workers)
    ]
    seen: set[int] = set()
    try:
        for process in crew:
            process.start()
        while True:
            living = [process for process in crew if process.exitcode is None]
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
    except (TradewindError, optuna.exceptions.StorageInternalError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
