"""Trained cells that their experiment does not declare: left from earlier settings, or copied."""

from collections.abc import Collection
from pathlib import Path

from stages.scores.shell import WEIGHTS
from stages.training import store
from stages.training.cells import Cell


def stray(run: Path, declared: Collection[str], where: str) -> str:
    """Why a cell's folder is none of the `declared` ones, or holds another cell's checkpoint; ''
    where it is one and holds its own. `where`: the file that declares them."""
    if run.name not in declared:  # asked first: a file of another cell is not to be trusted
        return f"it is not declared in {where}"
    meta = store.load(str(run / WEIGHTS))[1]
    name = Cell(meta["model"], meta["arm"], meta["size"], meta["seed"]).name
    return "" if run.name == name else f"its checkpoint is that of {name}"
