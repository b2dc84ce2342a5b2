"""What an audit looks at: the number, its chain, its locks and the bytes."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from stages import records
from stages.audit import history
from stages.audit.chain import SOURCES, Chain, Ledger, Metric, Node
from stages.audit.coded import Code
from stages.audit.finding import Problem
from stages.audit.hashes import Bytes, Entry, Locks
from stages.tables import parts

REPRO = "run `dvc repro`"
PULL = "run `dvc pull` (or `dvc checkout`, or `dvc repro` to make it anew)"
CHECKOUT = "`git checkout` it"
IN_GIT = ("example", "sweep", "tabulate")  # stages whose folders git keeps, not DVC's cache


@dataclass
class Case:
    """One audit's materials."""

    root: Path
    metric: Metric
    ledger: Ledger
    chain: Chain
    locks: Locks
    bytes: Bytes
    value: dict[Any, Any]
    params: dict[Any, Any] = field(default_factory=dict)
    early: list[Problem] = field(default_factory=list)  # found while opening
    commit: history.Commit | None = None
    own: frozenset[str] = frozenset()  # what differs from the commit by an honest run of it

    def __post_init__(self) -> None:
        sizes = {path: self.file_record(path) for path in self.chain.files}
        self.bytes.most |= {path: told["bytes"] for path, told in sizes.items() if told}

    @cached_property
    def code(self) -> Code:
        """The project's code, and what records say of it."""
        chosen = self.params.get("run")
        return Code.at(self.root, chosen.get("profile") if isinstance(chosen, dict) else None)

    def earlier(self, node: Node) -> bool:
        """Whether a record is of another profile than the one that runs, and of an earlier
        commit's code."""
        return self.code.judge(node).verdict == "STALE"

    def foreign(self, entry: Entry) -> bool:
        """Whether a lock's entry is of another profile than the one that runs."""
        profile = entry.name.partition("@")[2].partition("-")[0]
        return profile in self.params.get("profiles", {}) and profile != self.code.chosen

    def file_record(self, path: str) -> dict[Any, Any] | None:
        """What the records say of a file: its producer's word, else its first reader's."""
        owner = self.chain.files.get(path)
        made = owner.record.get("outputs", {}).get(path) if owner else None
        readers = self.chain.inputs.get(path, ())
        return made or (readers[0][1] if readers else None)

    def kept(self, path: str) -> bool:
        """Whether a file is one of the small ones in git: a result, or a source."""
        owner, entry = self.chain.files.get(path), self.locks.producer(path)
        if path.endswith(f"/{parts.BREAKDOWNS}"):
            return False
        if owner:
            return path in owner.homes or owner.stage in IN_GIT
        made = entry is not None and entry.name.partition("@")[0] in IN_GIT
        return made or bool(SOURCES.fullmatch(path))

    def away(self, path: str) -> bool:
        """Whether outputs that git does not hold, a file or all files of a folder, are not here."""
        outs = {out for entry in self.locks.entries for out in entry.outs}
        made = any(out == path or out.startswith(f"{path}/") for out in outs)
        if not made or (self.root / path).is_file():
            return False
        if (self.root / path).is_dir() and records.files_in([self.root / path]):
            return False
        held = history.tree(self.root, [path]) or ()
        return all(name.endswith("/.gitignore") for name in held)

    def fails(self, path: str, text: str, broken: bool = False) -> Problem:
        """FAIL for a file, with the command that makes it."""
        return Problem("FAIL", path, text, self.producer(path), broken)

    def producer(self, path: str) -> str:
        """The command that makes a file, as the lock has it; else the record's stage and cell."""
        entry, owner = self.locks.producer(path), self.chain.files.get(path)
        return entry.cmd.removeprefix("exec ") if entry else owner.producer if owner else ""
