"""What stands in two places is compared, and what can be known of data without making them again is
derived, by the module of the family that dvc.yaml names beside the stage.

Which files tell the same thing, and how exactly, its family knows: prepared rows and the decoded
ones, metrics and the errors that they sum up, one value in two splits, an error below the least
possible. `meta: {agree: MODULE}` of a stage that prepares or evaluates makes nothing stale; the
module is called once for all places of its stages (agreeing.py), where the project is laid out.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from stages.audit import commands
from stages.audit.case import Case
from stages.audit.chain import Node
from stages.audit.commands import Command
from stages.audit.finding import Problem
from stages.audit.hashes import Entry, Locks
from stages.audit.laid import Laid
from stages.code import PACKAGE
from stages.errors import TradewindError
from stages.files import read_json

STAGES = ("prepare", "evaluate")


def chain(case: Case) -> Iterator[Problem]:
    """What contradicts in a chain's prepared data and evaluation."""
    found = places(case)
    if found:
        with tempfile.TemporaryDirectory(prefix="audit-") as folder:
            laid = Laid(case.root, Path(folder))
            link(case, laid, found)
            for module, homes in found.items():
                yield from agreement(case, laid, module, homes)


def link(case: Case, laid: Laid, found: dict[str, list[str]]) -> None:
    """Links to all that the modules read."""
    entries = [(home, case.locks.producer(home)) for homes in found.values() for home in homes]
    deps = [dep for _, entry in entries for dep in (entry.deps if entry else ())]
    laid.link_all({*deps, *(home for home, _ in entries)})


def agreement(case: Case, laid: Laid, module: str, homes: list[str]) -> Iterator[Problem]:
    """What contradicts in these places, which with all that they were made of are linked in
    `laid`."""
    try:
        found = judged(laid, module, homes)
    except TradewindError as error:
        text = f"whether it agrees with itself cannot be told: {' '.join(str(error).split())}"
        yield from (case.fails(home, text) for home in homes)
        return
    for path, text in found:
        yield case.fails(path, f"it contradicts: {text}")


def judged(laid: Laid, module: str, homes: list[str]) -> list[tuple[str, str]]:
    """(file, text) of what a module says of places. TradewindError where it says nothing."""
    out = f"{module}.agree.json"
    laid.run(Command(module, tuple(homes)), "--out", out)
    told = read_json(laid.folder / out, list)
    return [(Path(path).as_posix(), str(text)) for path, text in told]


def of_data(root: Path, home: str) -> list[tuple[str, str]]:
    """(file, text) of what its family says of one place of a project; nothing where it has no
    judge. TradewindError where that says nothing."""
    locks = Locks(root)
    module = judge(locks, entry := locks.producer(home))
    if not module or entry is None:
        return []
    with tempfile.TemporaryDirectory(prefix="rows-") as folder:
        laid = Laid(root, Path(folder))
        laid.link_all((home, *entry.deps))
        return judged(laid, module, [home])


def judge(locks: Locks, entry: Entry | None) -> str:
    """The module of the family that judges what a lock's entry made; "" for none."""
    meta = commands.definition(locks, entry).get("meta") if entry else None
    module = str(meta.get("agree")) if isinstance(meta, dict) else ""
    return module if module.startswith(f"{PACKAGE}.") else ""


def places(case: Case) -> dict[str, list[str]]:
    """Module -> the places it judges: of the code of today, their every file and input here."""
    found: dict[str, list[str]] = {}
    for node in case.chain.nodes:
        if node.stage in STAGES and not node.error and not case.earlier(node):
            module = judge(case.locks, case.locks.producer(node.homes[0]))
            if module and here(case, node):
                found.setdefault(module, []).append(node.homes[0])
    return found


def here(case: Case, node: Node) -> bool:
    """Whether a stage's outputs are here, with the data that it read."""
    read = (path for path in node.record["inputs"] if path.startswith("data/"))
    return all((case.root / path).is_file() for path in (*node.record["outputs"], *read))
