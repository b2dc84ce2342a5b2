"""Which published numbers rest on a file: every cell's chain in every table is walked and asked."""

from pathlib import Path

from stages.errors import DataError, InputError
from stages.files import read_json
from stages.params import nearest
from stages.reporting.audit.chain import Ledger, Metric, walk


def impact(path: str, root: Path = Path(".")) -> list[str]:
    """The addresses of all metrics whose chain holds the file; InputError if no chain knows it."""
    chains = all_chains(Ledger(Path(root)))
    path = Path(path).as_posix().removeprefix("./")
    known = {file for files, _ in chains for file in files}
    if path not in known:
        raise InputError("no published number rests on that file, or it is no file of the project", found=path + close(path, known),
                         remedy="give the path from the project's root, as a record names it")
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
        try:
            cells = read_json(ledger.root / table)["cells"]
            names = {key: tuple(content["metrics"]) for key, content in cells.items()}
        except (DataError, KeyError, TypeError, AttributeError):
            cells = {}
        for key in cells:
            dataset, _, cell = key.partition("/")
            start = Metric(experiment, profile, dataset, cell, ())
            files = frozenset(walk(ledger, start, (cell,)).files)
            chains.append((files, [f"{experiment}/{profile}/{key}/{name}" for name in names[key]]))
    return chains
