"""The number made again from nothing (--verify raw): acquired or simulated, decoded, judged,
prepared, searched, trained and evaluated by the stages' own commands, in the order of their locks.

Raw files that a digest pins are taken from where they lie if they have it, else fetched. Data come
out to the byte wherever NumPy computes alike; what a model's arithmetic enters (neighbours, sweeps)
on the record's arithmetic. All that a stage wrote is compared, and nothing else may come out.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from stages import records
from stages.audit import arithmetics, commands, raws, rerun
from stages.audit.case import Case
from stages.audit.chain import Node
from stages.audit.declarations import holds
from stages.audit.finding import Finding, Problem, worst
from stages.audit.laid import Laid
from stages.audit.ownrun import DATA
from stages.audit.served import CHAIN, TRAINED, Server
from stages.errors import TradewindError
from stages.files import sha256

HEADS = ("train", "evaluate", "tabulate")  # compared as numbers, by rerun.py
DOWNLOADS = ".work/downloads"  # archives, of which raw folders hold the contents


def remade(case: Case, found: Finding) -> Iterator[Problem]:
    """What of the chain is not what its stages make of it, and the number if it is not theirs."""
    loaded = CHAIN if rerun.untrained(case) else TRAINED
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        laid = Laid(case.root, Path(folder))
        laid.link(DOWNLOADS)
        with Server(laid.folder, loaded) as laid.server:
            yield from from_nothing(case, found, laid)


def from_nothing(case: Case, found: Finding, laid: Laid) -> Iterator[Problem]:
    """The chain made again where the project is laid out, stage by stage."""
    nodes = order(case)
    for node in nodes:
        problems = list(unlike(case, found, laid, node))
        yield from problems
        if worst(problems) != "PASS":
            if worst(problems) != "FAIL":
                yield from rerun.evaluation(case, found)
            return
    made = f"{len(nodes)} stages from the raw files on were run again"
    found.notes.append(f"{made}: all data came out to the byte")
    if not rerun.untrained(case):
        yield from rerun.retrained(case, found, laid)
        return
    if rerun.unlike(case, laid):
        yield from rerun.evaluation(case, found)
    yield from rerun.compared(case, found, laid, "making all of it again")


def order(case: Case) -> list[Node]:
    """The chain's stages before training, each after those whose outputs it depends on."""
    waiting = [node for node in case.chain.nodes if node.stage not in HEADS and not node.error]
    found: list[Node] = []

    def needs(node: Node) -> Iterator[Node]:
        entry = case.locks.producer(node.homes[0])
        for dep in entry.deps if entry else ():
            for other in waiting:
                if any(holds(dep, home) or holds(home, dep) for home in other.homes):
                    yield other

    def add(node: Node) -> None:
        for other in needs(node):
            if other is not node and other not in found:
                add(other)
        if node not in found:
            found.append(node)

    for node in waiting:
        add(node)
    return found


def unlike(case: Case, found: Finding, laid: Laid, node: Node) -> Iterator[Problem]:
    """How what a stage makes again where the project is laid out is not what it is recorded to
    have made."""
    home = node.homes[0]
    entry = case.locks.producer(home)
    if entry is None or entry.lock.endswith(".dvc"):
        found.notes.append(f"{home} was taken in, not made: its bytes are held to its record alone")
        laid.link(home)
        return
    try:
        laid.link_all(entry.deps)
        pinned = node.stage == "acquire" and any(raws.pins(case, Path(home).name).values())
        mirror = case.root / home if pinned else None
        laid.run(commands.command(case.locks, home), mirror=mirror)
    except TradewindError as error:
        text = f"it cannot be made again: {' '.join(str(error).split())}"
        yield Problem("INCONCLUSIVE", home, text, entry.cmd)
        return
    again = {
        file.relative_to(laid.folder).as_posix(): sha256(file)
        for file in records.files_in(
            laid.folder / place for place in node.homes if (laid.folder / place).exists()
        )
    }
    told = {path: one["sha256"] for path, one in node.record["outputs"].items()}
    differing = sorted(path for path in again.keys() | told if again.get(path) != told.get(path))
    if not differing:
        return
    mine, theirs = (
        arithmetics.line_of(one) for one in (records.environment(), node.record["environment"])
    )
    alike = arithmetics.numpy_alike if node.stage in DATA else arithmetics.alike
    if not alike(mine, theirs) and node.stage not in DATA:
        found.notes.append(f"{node.producer} gives other bytes on another arithmetic: {theirs}")
        return
    verdict = rerun.blame(found) if alike(mine, theirs) else "INCONCLUSIVE"
    for path in differing:
        why = "is not made" if path not in again else "is not recorded" if path not in told else ""
        text = f"{node.producer}, run again, gives other bytes" if not why else f"it {why}"
        yield Problem(verdict, path, f"{text}: made again from the raw files", entry.cmd)
