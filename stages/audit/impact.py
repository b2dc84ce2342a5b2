"""Which published numbers rest on a file: every cell's chain in every table is walked and asked."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages.audit import history
from stages.audit.chain import Ledger, Metric, walk
from stages.errors import DataError, InputError
from stages.files import sha256
from stages.params import nearest
from stages.tables import parts


def impact(path: str, root: Path = Path(".")) -> list[str]:
    """The addresses of all metrics whose chain holds the file; InputError if no chain knows it."""
    chains = all_chains(Ledger(Path(root)))
    path = Path(path).as_posix().removeprefix("./")
    known = {file for files, _ in chains for file in files}
    if path not in known:
        raise InputError(
            "no published number rests on that file, or it is no file of the project",
            found=path + close(path, known),
            remedy="give the path from the project's root, as a record names it",
        )
    return resting({path}, chains)


def close(path: str, known: set[str]) -> str:
    """A hint, without listing every file."""
    return nearest(path, known).split(" (known:")[0]


def resting(paths: set[str], chains: list[tuple[frozenset[str], list[str]]]) -> list[str]:
    """The metrics whose chain meets `paths`."""
    return sorted(metric for files, metrics in chains if files & paths for metric in metrics)


def all_chains(ledger: Ledger) -> list[tuple[frozenset[str], list[str]]]:
    """For every cell of every table: the files of its chain and the addresses of its metrics."""
    chains = []
    for table in ledger.tables():
        _, experiment, profile, _ = table.split("/")
        for key, names in names_in(ledger, table).items():
            dataset, _, cell = key.partition("/")
            start = Metric(experiment, profile, dataset, cell, ())
            files = frozenset(walk(ledger, start, (cell,)).files)
            chains.append((files, [f"{experiment}/{profile}/{key}/{name}" for name in names]))
    return chains


def names_in(ledger: Ledger, table: str) -> dict[str, tuple[str, ...]]:
    """Cell -> its metrics in a table (all numbers below it where it has none of its own).

    A table whose bytes are not those recorded is read as it is committed, where that can be read.
    """
    owner = ledger.owner(table)
    recorded = (owner.record.get("outputs", {}).get(table) or {}).get("sha256") if owner else None
    texts = [
        lambda: parts.here((ledger.root / table).parent),
        lambda: json.loads(history.at_head(ledger.root, table) or ""),
    ]
    for read in texts if recorded == sha256(ledger.root / table) else reversed(texts):
        try:
            return {
                key: tuple(content["metrics"]) or tuple(numbers(content))
                for key, content in read()["cells"].items()
            }
        except (DataError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return {}


def numbers(content: dict[Any, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """The addresses, below a cell, of every number that it holds."""
    for name, part in content.items() if isinstance(content, dict) else ():
        if isinstance(part, dict) and isinstance(part.get("value"), (int, float)):
            yield "/".join((*path, name))
        else:
            yield from numbers(part, (*path, name))
