"""Whether what an evaluation keeps of single tasks (items.npz) is what it tells of all of them: for
the judges of families whose claims compare cells task by task.

Other values of single tasks, or the same of others, draw another interval.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stages import params, seeds
from stages.audit import agreeing
from stages.audit.agreeing import near
from stages.scores import groups, items

ENDS = ("low", "high")
Mean = Callable[[np.ndarray, np.ndarray], Mapping[str, Any]]  # of values, by their groups


def resampled(family: str, resamples: int) -> Mean:
    """How a family's evaluation takes a mean and its interval: every cell's by the same draws."""
    seed = agreeing.parameters(Path.cwd() / params.WHOLE).training.seed

    def mean(values: np.ndarray, group: np.ndarray) -> Mapping[str, Any]:
        return groups.mean_of(values, group, "", resamples, seeds.stream(seed, family, "resamples"))

    return mean


def itemised(home: Path, cells: dict[str, Any], group: np.ndarray, mean: Mean) -> Iterator[str]:
    """How what is kept of single tasks is of other cells than are told, of tasks that go together
    otherwise, or averages to other numbers."""
    kept = items.read(home)
    scores = {} if kept is None else kept.cells
    if kept is not None and not np.array_equal(kept.group, group):
        yield "its tasks go together otherwise than the prepared ones"
        return
    for cell in sorted(scores.keys() ^ cells.keys()):
        yield f"{cell} stands in one of it and metrics.json alone"
    for cell in sorted(scores.keys() & cells.keys()):
        for name, values in scores[cell].items():
            told, known = cells[cell]["metrics"].get(name), ~np.isnan(values)
            again = mean(values[known], group[known]) if known.any() else {"value": 0.0, "n": 0}
            told = told or {"value": 0.0, "n": 0}
            if told["n"] != again["n"] or not near(again["value"], told["value"]):
                text = f"its {name} is {again['value']} over {again['n']:,}, told"
                yield f"{cell}: {text} {told['value']} over {told['n']:,}"
            elif not all(near(again[end], told.get(end, np.nan)) for end in ENDS if end in again):
                text = f"the interval of its {name} is {again['low']} to {again['high']}, told"
                yield f"{cell}: {text} {told.get('low')} to {told.get('high')}"
