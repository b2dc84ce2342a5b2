"""Which published numbers rest on a file: every cell's chain in every table is walked and asked; of
code the lists of what each stage imports are, of parameters the locks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages import code
from stages.audit import history
from stages.audit.chain import Chain, Ledger, Metric, Node, walk
from stages.audit.hashes import Locks
from stages.errors import DataError, InputError
from stages.files import read_json, sha256
from stages.params import nearest
from stages.tables import parts


def impact(path: str, root: Path = Path(".")) -> list[str]:
    """The addresses of all metrics whose chain holds the file, or of which a stage read a parameter
    there; of code the stages that it belongs to, with how many metrics rest on each. InputError if
    none does."""
    ledger, path = Ledger(Path(root)), inside(path, Path(root))
    chains = all_chains(ledger)
    known = {file for files, _ in chains for file in files}
    if path in known:
        return resting({path}, chains)
    if found := of_code(path, ledger) or of_parameters(path, ledger):
        return found
    if (Path(root) / path).is_file():
        raise InputError(
            "no published number rests on that file",
            where=path,
            expected="data, code of a stage, parameters, or what a stage wrote",
            found="a file that no chain, list of code or lock of a stage names",
        )
    raise InputError(
        "there is no such file of the project",
        found=path + close(path, known),
        remedy="give its path from the project's root, as a record names it",
    )


def inside(path: str, root: Path) -> str:
    """The path from the project's root, with `/`; one from the file system's root may be given."""
    given = Path(path)
    for home in (root.absolute(), root.resolve()) if given.is_absolute() else ():
        if given.is_relative_to(home):
            given = given.relative_to(home)
            break
    return given.as_posix().removeprefix("./")


def of_code(path: str, ledger: Ledger) -> list[str]:
    """A line a stage whose closure (data/code) holds the file: its module, and how many metrics
    rest on what it made."""
    modules = {
        f"{code.PACKAGE}.{file.stem}": file.stem
        for file in sorted((ledger.root / code.HOME).glob("*.json"))
        if path in read_json(file)
    }
    counts = dict.fromkeys(modules.values(), 0)
    for nodes, metrics in walked(ledger) if modules else ():
        made = {name for node in nodes for name in node.record.get("code", {}).get("modules", [])}
        for module in made & modules.keys():
            counts[modules[module]] += len(metrics)
    told = {name: f"{count:,} numbers" if count else "no number" for name, count in counts.items()}
    return [f"{name}: {told[name]}" for name in told]


def of_parameters(path: str, ledger: Ledger) -> list[str]:
    """The addresses of all metrics with a stage that, by its lock, reads a key of the file."""
    experiments = {table.split("/")[1] for table in ledger.tables()}
    locks = Locks(ledger.root, *sorted(experiments))
    if not any(path in entry.params for entry in locks.entries):
        return []
    reads: dict[str, bool] = {}
    found = []
    for nodes, metrics in walked(ledger):
        for node in nodes:
            if node.path not in reads:
                entries = map(locks.producer, node.homes)
                reads[node.path] = any(entry and path in entry.params for entry in entries)
        if any(reads[node.path] for node in nodes):
            found += metrics
    return sorted(found)


def close(path: str, known: set[str]) -> str:
    """A hint, without listing every file."""
    return nearest(path, known).split(" (")[0]


def resting(paths: set[str], chains: list[tuple[frozenset[str], list[str]]]) -> list[str]:
    """The metrics whose chain meets `paths`."""
    return sorted(metric for files, metrics in chains if files & paths for metric in metrics)


def all_chains(ledger: Ledger) -> list[tuple[frozenset[str], list[str]]]:
    """For every cell of every table: the files of its chain and the addresses of its metrics."""
    return [(frozenset(chain.files), metrics) for chain, metrics in every_chain(ledger)]


def walked(ledger: Ledger) -> Iterator[tuple[list[Node], list[str]]]:
    """For every cell of every table: the records of its chain and the addresses of its metrics."""
    return ((chain.nodes, metrics) for chain, metrics in every_chain(ledger))


def every_chain(ledger: Ledger) -> Iterator[tuple[Chain, list[str]]]:
    """For every cell of every table: its chain and the addresses of its metrics."""
    for table in ledger.tables():
        _, experiment, profile, _ = table.split("/")
        for key, names in names_in(ledger, table).items():
            dataset, _, cell = key.partition("/")
            start = Metric(experiment, profile, dataset, cell, ())
            addresses = [f"{experiment}/{profile}/{key}/{name}" for name in names]
            yield walk(ledger, start, (cell,)), addresses


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
