"""Whether records that differ from the commit's are an honest run of it on another arithmetic.

Such a run has the commit's code, parameters, seeds and names of files. Its data are the commit's
to the byte where NumPy computes alike, as it does on every x86-64 processor. What a model made may
have other bytes where the record names another arithmetic than the commit's, or where the stage
read such bytes; so may all that rests on them. On the same arithmetic nothing but an edit gives
other bytes of the same inputs. A record of code whose comments or layout were edited since the
commit's was made tells today's bytes of it, and the same meaning.
"""

import json
from functools import partial
from typing import Any

from stages.audit import arithmetics, history
from stages.audit.case import Case
from stages.audit.chain import Node, read_node
from stages.errors import DataError

DATA = ("acquire", "decode", "validate", "prepare")  # made with NumPy, which is set alike always
SIDES = ("inputs", "outputs")


class OwnRun:
    """The records of a case against the commit's: `moved` are the files that honestly differ."""

    def __init__(self, case: Case):
        self.case = case
        self.moved: set[str] = set()
        self.lines: tuple[set[str], set[str]] = (set(), set())  # here, and at the commit
        self._judged: dict[str, str] = {}
        dirty = [
            path
            for path in history.changed_below(case.root, "stages")
            if not path.startswith("stages/params/")
        ]  # the cone's are judged by the locks
        self.code = f"{dirty[0]} is not the commit's either" if dirty else ""
        names = sorted(node.path for node in case.ledger.nodes)
        different = history.changed(case.root, names)
        self._before = history.contents(case.root, different)
        self._same = {*names} - {*different}
        for node in case.chain.nodes:
            self.judge(node)

    def judge(self, node: Node) -> str:
        """Why a record is no honest run of the commit; "" where it is one."""
        if node.path in self._same:
            return ""
        if node.path not in self._judged:
            self._judged[node.path] = "it rests on itself"  # until it is judged
            self._judged[node.path] = self.code or self._reason(node)
        return self._judged[node.path]

    def explains(self, path: str, owner: Node | None) -> str:
        """Why no honest run explains that a file differs from the commit; "" where one does."""
        if owner is None:
            return "no stage makes it"
        if reason := self.judge(owner):
            return reason
        if path == owner.path:
            return ""
        recorded = owner.record["outputs"].get(path, {}).get("sha256")
        if path not in self.moved or self.case.bytes.sha256(path) != recorded:
            return "its record does not say so"
        return ""

    def _reason(self, node: Node) -> str:
        content = self._before.get(node.path)
        before = read_node(node.path, partial(parsed, content)) if content else None
        if node.error or before is None or before.error:
            return "a record cannot be read" if content else "the commit has no such record"
        mine, theirs = node.record, before.record
        other = sorted(
            key
            for key in mine.keys() | theirs.keys()
            if key not in (*SIDES, "code", "environment") and mine.get(key) != theirs.get(key)
        )
        if not self._same_code(mine["code"], theirs["code"]):
            other.append("code")
        other += [f"names of {side}" for side in SIDES if mine[side].keys() != theirs[side].keys()]
        if mine["environment"].get("threads") != theirs["environment"].get("threads"):
            other.append("threads")
        if other:
            return f"the record of {node.producer} has another {', '.join(other)}"
        read, made = (
            [path for path in mine[side] if mine[side][path] != theirs[side][path]]
            for side in SIDES
        )
        reason = next(filter(None, (self._read(node, path) for path in read)), "")
        if not reason and made:
            reason = self._made(node, before, made, bool(read))
        if not reason:
            self.moved |= {node.path, *made}
            for lines, record in zip(self.lines, (mine, theirs), strict=True):
                lines.add(arithmetics.line_of(record["environment"]))
        return reason

    def _same_code(self, mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
        """Whether two records rest on code of one meaning, the first on the bytes of today."""
        if mine == theirs:
            return True
        alike = all(mine.get(key) == theirs.get(key) for key in ("modules", "digest"))
        files = mine.get("files", {})
        return alike and all(self.case.code.raw(path) == files[path] for path in files)

    def _read(self, node: Node, path: str) -> str:
        """Why it is not honest that a stage read other bytes of a file than at the commit."""
        owner = self.case.ledger.owner(path)
        if owner is None:
            return f"{node.producer} read another {path} than the commit's"
        if reason := self.judge(owner):
            return reason
        if path in self.moved and owner.record["outputs"].get(path) == node.record["inputs"][path]:
            return ""
        return f"{node.producer} read another {path} than {owner.producer} made"

    def _made(self, node: Node, before: Node, made: list[str], followed: bool) -> str:
        """Why it is not honest that a stage made other bytes; `followed`: it read others."""
        mine, theirs = (arithmetics.line_of(one.record["environment"]) for one in (node, before))
        unrecorded = arithmetics.UNRECORDED in (mine, theirs)
        if node.stage in DATA and (unrecorded or arithmetics.numpy_alike(mine, theirs)):
            return f"{made[0]} is data, which is the same wherever NumPy computes alike"
        same = arithmetics.numpy_alike if node.stage == "tabulate" else arithmetics.alike
        if followed or not (mine.startswith(arithmetics.UNRECORDED) or same(mine, theirs)):
            return ""
        text = "made other bytes of the same inputs on the same arithmetic"
        return f"{node.producer} {text} ({mine})"


def parsed(content: bytes) -> Any:
    """The JSON of a committed record. DataError where it is none."""
    try:
        return json.loads(content)
    except ValueError as error:
        raise DataError("the committed record is no JSON", found=str(error)) from None
