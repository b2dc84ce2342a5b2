"""What dvc.yaml declares of a stage, what its lock says was used, and what its record names: one.

A record that names less than its stage reads, makes or is set by would cut the chain there, and
whatever lies behind would be held to nothing. So each dependency, output and file of parameters of
the lock stands in the record, each file that the record names stands in the lock, and the lock has
whatever dvc.yaml declares. The gate of a data set is an edge without a record's word (chain.py).
"""

import bisect
import posixpath
from collections.abc import Iterator
from typing import Any

from stages.audit import commands
from stages.audit.case import Case
from stages.audit.chain import Node
from stages.audit.finding import Problem
from stages.audit.hashes import Entry
from stages.audit.settings import leaves
from stages.spreads import HOME

# A stage that reads a layer in part names what it reads; all others name all of it.
PARTLY = {("decode", "raw"), ("prepare", "decoded"), ("tabulate", "prepared"), ("train", "sweeps")}
# What a stage waits for and need not read. The lock has its MD5, and it has a record of its own.
AWAITED = {("train", "validated"), ("train", "contexts"), ("sweep", "validated")}


def layer(path: str) -> str:
    """What kind of place a path lies in: raw, prepared, runs and so on."""
    parts = path.split("/")
    place = {"data": 2, "reports": 3}.get(parts[0], len(parts))
    return parts[place] if place < len(parts) else ""


class Made:
    """Every output of every record, to be asked by the place that it lies in."""

    def __init__(self, nodes: list[Node]):
        self.paths = sorted({path for node in nodes for path in node.record.get("outputs", {})})

    def below(self, place: str) -> Iterator[str]:
        """The outputs that a place is or holds."""
        for at in range(bisect.bisect_left(self.paths, place), len(self.paths)):
            if not self.paths[at].startswith(place):
                return
            if holds(place, self.paths[at]):
                yield self.paths[at]


def holds(place: str, path: str) -> bool:
    """Whether `path` is a place or lies in it."""
    return path == place or path.startswith(place + "/")


def recorded(case: Case) -> Iterator[Problem]:
    """Each record names the inputs, outputs and parameters that its stage's lock has, and no
    other files."""
    made = Made(case.ledger.nodes)
    for node in case.chain.nodes:
        entry = case.locks.producer(node.homes[0])
        if node.error or entry is None or entry.lock.endswith(".dvc") or case.earlier(node):
            continue
        for text in (
            *inputs(case, node, entry, made),
            *outputs(node, entry),
            *unrecorded_params(node, entry),
        ):
            yield case.fails(node.path, f"the record of {node.producer} {text}")


def inputs(case: Case, node: Node, entry: Entry, made: Made) -> Iterator[str]:
    """How a record's inputs differ from its lock's dependencies."""
    named = node.record["inputs"]
    deps = [dep for dep in entry.deps if not commands.LISTED.fullmatch(dep)]
    for dep in deps:
        kind = (node.stage, layer(dep))
        if not any(holds(dep, path) for path in named):
            if unmeasured(case, node, dep):
                continue
            if kind not in AWAITED:
                yield f"does not name its input {dep}"
            elif case.ledger.owner(dep) is None:
                yield f"rests on {dep}, which no record made"
        elif kind not in PARTLY:
            left = [path for path in made.below(dep) if path not in named]
            yield from (f"does not name its input {path}" for path in left[:1])
    for path in named:
        if not any(holds(dep, path) for dep in deps):
            yield f"names the input {path}, which its stage does not declare"


def unmeasured(case: Case, node: Node, dep: str) -> bool:
    """Whether a place holds the spreads of experiments, but none of the record's own."""
    own = f"{dep}/{node.path.split('/')[1]}.json"
    return posixpath.dirname(dep) == HOME.as_posix() and case.bytes.md5(own) is None


def outputs(node: Node, entry: Entry) -> Iterator[str]:
    """How a record's outputs differ from its lock's."""
    named = node.record["outputs"]
    for out in entry.outs:
        if out != node.path and not any(holds(out, path) for path in named):
            yield f"does not name its output {out}"
    for path in named:
        if not any(holds(out, path) for out in entry.outs):
            yield f"names the output {path}, which its stage does not declare"


def unrecorded_params(node: Node, entry: Entry) -> Iterator[str]:
    """A record that tells none of its stage's parameters: what it is set by may have other names
    in it, but it is never silent."""
    mine = {name for name, _ in leaves(node.record["params"])}
    names = {
        name
        for keys in entry.params.values()
        for key, content in keys.items()
        for name in named_leaves(key, content)
    }
    if names and mine.isdisjoint(names):
        yield f"tells none of the parameters in {', '.join(sorted(entry.params))}"


def named_leaves(key: str, content: Any) -> Iterator[str]:
    """The names of the leaves of a declared parameter."""
    for name, _ in leaves({key.rpartition(".")[2]: content}):
        yield name


def locked(case: Case) -> Iterator[Problem]:
    """Each lock's entry has what dvc.yaml declares of its stage."""
    entries = {}
    for path in case.chain.files:
        owner, entry = case.chain.files[path], case.locks.producer(path)
        if entry is None or entry.lock.endswith(".dvc") or (owner and case.earlier(owner)):
            continue
        if owner or not case.foreign(entry):
            entries[entry.lock, entry.name] = entry
    for entry in entries.values():
        if why := commands.other(case.locks, entry):
            if not any(map(case.ledger.owner, entry.outs)):  # else `declared` says so
                yield Problem(
                    "FAIL", entry.lock, f"its entry {entry.name} ran `{entry.cmd}`: {why}"
                )
            continue
        words = commands.bound(commands.template_of(case.locks, entry) or "", entry.cmd)
        for text in lacking(commands.definition(case.locks, entry), entry, words):
            text = f"its entry {entry.name} does not have the declared {text}"
            yield Problem("FAIL", entry.lock, text, entry.cmd)


def lacking(declared: dict[Any, Any], entry: Entry, words: dict[str, str]) -> Iterator[str]:
    """What dvc.yaml declares of a stage and its lock's entry has not, the command's own `words` in
    the places of the declaration. Lists of code are told elsewhere (commands.unread)."""
    home = posixpath.join(posixpath.dirname(entry.lock), str(declared.get("wdir", ".")))

    def lacks(item: str, paths: dict[str, Any]) -> bool:
        template = posixpath.normpath(posixpath.join(home, commands.filled(item, words)))
        return not any(commands.fits(template, path) for path in paths)

    for dep in declared.get("deps") or ():
        listed = commands.LISTED.fullmatch(commands.FILLED.sub("x", str(dep)))
        if not listed and lacks(str(dep), entry.deps):
            yield f"dependency {dep}"
    for side in ("outs", "metrics", "plots"):
        for item in declared.get(side) or ():
            out = next(iter(item)) if isinstance(item, dict) else str(item)
            if lacks(out, entry.outs):
                yield f"output {out}"
    for item in declared.get("params") or ():
        file, keys = next(iter(item.items())) if isinstance(item, dict) else ("params.yaml", [item])
        if lacks(file, entry.params):
            yield f"parameters of {file}"
            continue
        mine = [key for path in entry.params for key in entry.params[path]]
        for key in keys or ():
            if not any(commands.fits(commands.filled(str(key), words), one) for one in mine):
                yield f"parameter {key}"


ALL = (recorded, locked)
