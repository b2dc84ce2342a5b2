"""Runs that no cell declares any more, and evaluations of data sets that their experiment leaves
out, are set aside before anything is made: a stage that measures all runs of a data set, or puts
all evaluations into tables, would count them, here and in no fresh clone.

`.work/leftovers/` keeps them under their own paths; nothing is lost.
"""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

from flows.process import WORK, FlowError

GROUPS = ("plain", "cells", "local", "swept")  # of an experiment's cells.yaml
HOME = WORK / "leftovers"


def leftovers(profile: str) -> Iterator[Path]:
    """The folders runs/DATASET/CELL of reports/EXPERIMENT/PROFILE that no cell of cells.yaml makes,
    and evaluated/DATASET of none that it lists as `evaluated`, where it has such a list; none of an
    experiment that does not name the profile. FlowError 2 for a cell without a data
    set, before anything moves."""
    for file in sorted(Path("reports").glob("*/cells.yaml")):
        whole = YAML(typ="safe").load(file)
        if not isinstance(whole, dict):
            raise FlowError(f"{file}: expected profiles with their cells, found no mapping", 2)
        part = whole.get(profile)
        if not isinstance(part, dict):
            continue
        try:
            declared = {
                (cell["dataset"], key.removeprefix(f"{profile}-{cell['dataset']}-"))
                for group in GROUPS
                for key, cell in (part.get(group) or {}).items()
            }
        except (AttributeError, KeyError, TypeError):
            problem = f"{file}: a cell of {profile} names no `dataset`; see its other cells"
            raise FlowError(problem, 2) from None
        for folder in sorted((file.parent / profile / "runs").glob("[!.]*/[!.]*")):
            if folder.is_dir() and (folder.parent.name, folder.name) not in declared:
                yield folder
        listed = part.get("evaluated")
        for folder in sorted((file.parent / profile / "evaluated").glob("[!.]*")):
            if folder.is_dir() and listed is not None and folder.name not in listed:
                yield folder


def set_aside(profile: str) -> list[Path]:
    """Move them; where each lies now."""
    found = []
    for folder in [*leftovers(profile)]:
        place = HOME / folder
        numbers = itertools.count(1)  # an earlier one of that name stays
        while place.exists():
            place = place.with_name(f"{folder.name}.{next(numbers)}")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, place)  # it may lie on another disk
        found.append(place)
    return found
