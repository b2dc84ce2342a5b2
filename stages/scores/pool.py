"""Trained cells measured side by side: one process a core, as cells know nothing of each other;
this process alone where one is enough, or on an accelerator. Where a flow runs several stages at
once, it says so (TRADEWIND_JOBS), and they share the cores.

Every process opens the data once, keeps it for all its cells and dies with its parent. What is made
of a cell is the same bytes in whichever process; so is what the stage's record tells of libraries.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

from tqdm import tqdm

from stages import files
from stages.errors import DataError, InputError

JOBS = "TRADEWIND_JOBS"  # stages that run at once on this machine
TOLD = ("numba", "torch")  # libraries that a record tells of where they are loaded

Data = TypeVar("Data")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Measuring(Generic[Data, Result]):
    """How cells are measured. `open` reads the data in another process, `measure` gives a cell's
    result (both are sent to processes: functions of modules, or partials of them); a cell of larger
    `cost` begins earlier; `device` of the models."""

    open: Callable[[], Data]
    measure: Callable[[Data, Path], Result]
    device: str = "cpu"
    cost: Callable[[Path], float] | None = None


def processes(cells: int, device: str) -> int:
    """How many processes measure so many cells: one a core that is this stage's, one on an
    accelerator. InputError where TRADEWIND_JOBS is no count."""
    jobs = os.environ.get(JOBS, "1")
    if not jobs.isdigit() or int(jobs) < 1:
        raise InputError(
            "not a number of stages", where=JOBS, found=repr(jobs), expected="1 or more"
        )
    cores = len(os.sched_getaffinity(0)) // int(jobs)
    return max(1, min(cells, cores)) if device == "cpu" else 1


def results_by_cell(
    cells: Sequence[Path], data: Data, how: Measuring[Data, Result]
) -> Iterator[tuple[Path, Result]]:
    """Each cell's folder and result, in the cells' order; `data` is what `how.open` gives, for this
    process. DataError where a process was killed."""
    count = processes(len(cells), how.device)
    progress = tqdm(total=len(cells), desc="evaluate", unit="cell", disable=None)
    with progress:
        results = _here(cells, data, how) if count == 1 else _side_by_side(cells, how, count)
        for cell, result in zip(cells, results, strict=True):
            progress.update()
            yield cell, result


def _here(cells: Sequence[Path], data: Data, how: Measuring[Data, Result]) -> Iterator[Result]:
    for cell in cells:
        yield how.measure(data, cell)


def _side_by_side(
    cells: Sequence[Path], how: Measuring[Data, Result], count: int
) -> Iterator[Result]:
    cost = how.cost
    first = sorted(cells, key=cost, reverse=True) if cost else cells
    asked: dict[Path, Future[tuple[Result, list[str]]]] = {}
    context = get_context("spawn")
    with ProcessPoolExecutor(count, context, _begin, (os.getpid(), how)) as pool:
        try:
            asked |= {cell: pool.submit(_measure, cell) for cell in first}
            for cell in cells:
                result, loaded = asked[cell].result()
                for name in loaded:
                    importlib.import_module(name)
                yield result
        except BrokenProcessPool:
            raise DataError(
                "a process that evaluated a cell was killed",
                where=str(cells[0].parent),
                found="likely by want of memory",
                remedy="free memory, or run fewer stages at once (JOBS=1); nothing was written",
            ) from None
        finally:
            for one in asked.values():
                one.cancel()


_own: tuple[Measuring[Any, Any], Any] | None = None  # of a process that measures cells: how, data


def _begin(parent: int, how: Measuring[Any, Any]) -> None:
    """Make this process one that measures cells, for as long as its parent lives."""
    global _own
    files.die_with(parent)
    _own = how, how.open()


def _measure(cell: Path) -> tuple[Any, list[str]]:
    """A cell's result, and the libraries that are loaded after it."""
    assert _own is not None
    how, data = _own
    return how.measure(data, cell), [name for name in TOLD if name in sys.modules]
