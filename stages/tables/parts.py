"""The numbers of an experiment in a profile, in two files.

    metrics.json      in git: each cell's metrics, or those that tables print; a number a line
    breakdowns.json   in DVC's cache: the rest (by altitude, lead or day, samplers, probes)

Arms, means over seeds, stand in neither: they follow from the cells. A metrics.json of an earlier
commit, which has them, is whole by itself.
"""

import json
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stages.errors import DataError
from stages.files import atomic_file, json_text, read_json
from stages.tables.gather import over_seeds

METRICS, BREAKDOWNS = "metrics.json", "breakdowns.json"
HISTORY = "history"  # of a cell: the curve of its training, short
KEPT = ("metrics/*",)  # of a cell, where a family names nothing else
REMEDY = "run `dvc repro`, or `dvc pull` for what others have computed"
Content = dict[str, Any]  # {"cells": {DATASET/CELL: {"metrics": ...}}, "arms": ..., ...}


def parted(content: Content, kept: Collection[str] = KEPT) -> tuple[Content, Content]:
    """The contents of both files. Of a cell metrics.json keeps plain values, the history, and the
    numbers whose place in it matches one of `kept` ("metrics/mse", "samplers/*/passes")."""
    both = {name: split(cell, kept) for name, cell in content["cells"].items()}
    cells: dict[str, Content] = {name: {"metrics": {}} | mine for name, (mine, _) in both.items()}
    others = {key: one for key, one in content.items() if key not in ("arms", "cells")}
    rest = {name: other for name, (_, other) in both.items() if other}
    return others | {"cells": cells}, {"cells": rest}


def split(entry: Content, kept: Collection[str], path: str = "") -> tuple[Content, Content]:
    """What stays of an entry, and the rest; the two have no number in common."""
    mine: Content = {}
    rest: Content = {}
    for key, one in entry.items():
        place = f"{path}{key}"
        group = isinstance(one, dict)
        if group and one and "value" not in one and place != HISTORY:
            for side, part in zip((mine, rest), split(one, kept, f"{place}/"), strict=True):
                side.update({key: part} if part else {})
            continue
        plain = not path and not isinstance(one, (dict, list))
        stays = plain or place == HISTORY or any(fnmatchcase(place, name) for name in kept)
        (mine if stays else rest)[key] = one
    return mine, rest


def fill(entry: Content, rest: Content) -> None:
    """Put the rest of an entry back into what stayed of it."""
    for key, one in rest.items():
        if isinstance(one, dict) and isinstance(entry.get(key), dict):
            fill(entry[key], one)
        else:
            entry[key] = one


def whole(metrics: Content) -> bool:
    """Whether a metrics.json has all numbers itself: earlier commits had no other file."""
    return "arms" in metrics


def joined(metrics: Content, breakdowns: Content | None = None, where: str = "") -> Content:
    """The content of metrics.json, its cells filled in with what is known of them, and their arms
    over seeds. DataError where the two do not belong together, or are not of this form."""
    if whole(metrics):
        return metrics
    try:
        for name, rest in (breakdowns or {"cells": {}})["cells"].items():
            fill(metrics["cells"][name], rest)
        metrics["arms"] = over_seeds(metrics["cells"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        text = f"{type(error).__name__}: {error}"
        raise DataError("these are not the numbers of cells", where=where, found=text) from None
    return metrics


def in_git(home: Path) -> Content:
    """The numbers that git holds, the same wherever they are read."""
    return joined(read_json(home / METRICS), where=str(home / METRICS))


def here(home: Path) -> Content:
    """The numbers that are here: without breakdowns.json those that git holds."""
    file = home / BREAKDOWNS
    if not file.is_file():
        return in_git(home)
    return joined(read_json(home / METRICS), read_json(file), str(home))


def read(home: Path) -> Content:
    """All numbers of an experiment. DataError where its breakdowns are not here."""
    if lacking(home):
        file = str(home / BREAKDOWNS)
        raise DataError("the breakdowns of an experiment are not here", where=file, remedy=REMEDY)
    return here(home)


def lacking(home: Path) -> bool:
    """Whether numbers of an experiment are not here."""
    return not (home / BREAKDOWNS).is_file() and not whole(read_json(home / METRICS))


def write(home: Path, content: Content, kept: Collection[str] = KEPT) -> list[Path]:
    """Write both files, a number a line; their paths."""
    files = [home / METRICS, home / BREAKDOWNS]
    for file, one in zip(files, parted(content, kept), strict=True):
        json_text(one, str(file))  # refuses what is not finite
        with atomic_file(file, "w") as stream:
            stream.write(by_line(one) + "\n")
    return files


def by_line(content: Mapping[str, Any], indent: str = "") -> str:
    """JSON with sorted keys, where a mapping without mappings in it stands in one line."""
    if not any(isinstance(one, dict) for one in content.values()):
        return json.dumps(content, sort_keys=True, allow_nan=False, ensure_ascii=False)
    inner = indent + " "
    lines = []
    for key, one in sorted(content.items()):
        mapping = isinstance(one, dict)
        text = by_line(one, inner) if mapping else json.dumps(one, ensure_ascii=False)
        lines.append(f"{inner}{json.dumps(key, ensure_ascii=False)}: {text}")
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
