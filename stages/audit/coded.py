"""What a record says of its code, held to the project's code and to git's history.

A record names the modules that its stage rests on, one digest of what their closures mean, and the
SHA-256 of every file in them (stages.code.recorded). The digest is computed again from the sources
of today: equal, and the code means the same. Another SHA-256 of a file is then accepted where git's
history holds these very bytes and they mean the same, too. A profile that is not the chosen one may
have been made by the code of an earlier commit: that is told by name, and is neither a proof nor a
fault of its bytes. Records before stages.code list files and their digest, and no modules.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from stages import code
from stages.audit.chain import Node
from stages.audit.earlier import History, meaning
from stages.errors import DataError, InputError


@dataclass(frozen=True)
class Judged:
    """What is said of a record's code: PASS, FAIL, INCONCLUSIVE or STALE, and why; of STALE, the
    commit that has the code."""

    verdict: str
    text: str = ""
    commit: str = ""


def digest_of(told: dict[str, str]) -> str:
    """One digest of paths and their digests, as records have it."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class Code:
    """The code of a project, its history, and the profile that its params.yaml runs."""

    def __init__(self, project: Callable[[], code.Project], history: History, chosen: str | None):
        self._project, self.history, self.chosen = project, history, chosen
        self._closures: dict[str, dict[str, str] | None] = {}
        self._raw: dict[str, str] = {}
        self._judged: dict[str, Judged] = {}

    @classmethod
    def at(cls, root: Path, chosen: str | None) -> "Code":
        """That of a working copy."""
        return cls(partial(code.Project, root), History(root), chosen)

    @cached_property
    def project(self) -> code.Project:
        """The project's modules, each read once."""
        return self._project()

    @cached_property
    def _present(self) -> set[str]:
        return {*self.project.modules.values(), *self.project.others}

    def closure(self, module: str) -> dict[str, str] | None:
        """Path -> digest of what a module reaches today; None where there is no such module, or
        where its code cannot be read."""
        if module not in self._closures:
            try:
                self._closures[module] = self.project.closure(module)
            except (DataError, InputError):
                self._closures[module] = None
        return self._closures[module]

    def meanings(self, modules: Iterable[str]) -> dict[str, str] | None:
        """Path -> digest of what modules reach together; None where one is not there."""
        found = [self.closure(module) for module in modules]
        if not found or None in found:
            return None
        return {path: digest for one in found for path, digest in one.items()}

    def raw(self, path: str) -> str | None:
        """SHA-256 of a file of code today; None where there is none."""
        if path not in self._present:
            return None
        if path not in self._raw:
            self._raw[path] = hashlib.sha256(self.project.content(path)).hexdigest()
        return self._raw[path]

    def judge(self, node: Node) -> Judged:
        """What is to be said of a record's code."""
        if node.error:
            return Judged("PASS")  # `links` says what is wrong with it
        if node.path not in self._judged:
            self._judged[node.path] = self._judge(node)
        return self._judged[node.path]

    def beside(self, reader: Node, owner: Node, path: str, described: dict[str, object]) -> str:
        """That a table of another profile and of earlier code was made beside prepared data as an
        earlier record has them, which git's history holds; "" of anything else."""
        table = reader.stage == "tabulate" and fnmatchcase(path, "data/*/prepared/*")
        if not table or self.judge(reader).verdict != "STALE":
            return ""
        if not self.history.known:
            return f"made beside an earlier {path}, which is not here"
        commit = self.history.recorded(owner.path, path, described)
        return f"made beside an earlier {path}: that of commit {commit[:12]}" if commit else ""

    def _judge(self, node: Node) -> Judged:
        told = node.record["code"]
        then = told["files"]
        now = self.meanings(told.get("modules") or ())
        if now is not None and digest_of(now) == told.get("digest"):
            return self._same(then, now)
        if broken := self._inconsistent(told):
            return Judged("FAIL", broken)
        profile = node.path.split("/")[-3]
        if not then or self.chosen in (None, profile):
            return self._other(then, now or {}, node.producer)
        if not self.history.known:
            return Judged("STALE", "made by earlier code, which is not here")
        if commit := self.history.commit(then):
            return Judged("STALE", f"made by earlier code: that of commit {commit[:12]}", commit)
        if self.history.shallow:
            text = "its code is not today's, and git's history is cut off here: `git fetch "
            return Judged("INCONCLUSIVE", text + "--unshallow`")
        return Judged("FAIL", f"no commit holds the code that {node.producer} ran with")

    def _same(self, then: dict[str, str], now: dict[str, str]) -> Judged:
        """Of code that means the same: its files are those of its modules, and each file's bytes
        stand in the tree, or in git's history with the same meaning."""
        if then.keys() != now.keys():
            path = sorted(then.keys() ^ now.keys())[0]
            return Judged("FAIL", f"its list of code is not that of its modules: {path}")
        for path in sorted(then):
            if then[path] == self.raw(path):
                continue
            content = self.history.version_bytes(path, then[path])
            if content is None and not self.history.known:
                continue  # what its digest tells is all that can be known
            if content is None and self.history.shallow:
                text = f"git's history is cut off here and may hold its {path}"
                return Judged("INCONCLUSIVE", f"{text}: `git fetch --unshallow`")
            if content is None:
                text = f"it ran with bytes of {path} that no commit holds: {then[path][:12]}"
                return Judged("FAIL", text)
            if meaning(path, content) != now[path]:
                text = f"the bytes of {path} that it ran with ({then[path][:12]}) mean another code"
                return Judged("FAIL", f"{text} than its digest tells")
        return Judged("PASS")

    def _inconsistent(self, told: dict[Any, Any]) -> str:
        """How a record's digest contradicts its own list of files; "" where it does not, or where
        the files are not all known."""
        then = told["files"]
        if "modules" not in told:
            agree = not then or digest_of(then) == told.get("digest")
        else:
            contents = {path: self._bytes(path, digest) for path, digest in then.items()}
            if None in contents.values():
                return ""
            found = {path: meaning(path, content) for path, content in contents.items()}
            agree = digest_of(found) == told.get("digest")
        return "" if agree else "the record's code digest is not that of its list of files"

    def _bytes(self, path: str, sha256: str) -> bytes | None:
        if self.raw(path) == sha256:
            return self.project.content(path)
        return self.history.version_bytes(path, sha256)

    def _other(self, then: dict[str, str], now: dict[str, str], producer: str) -> Judged:
        """Of code that means something else today: what differs."""
        differing = []
        for path in sorted(then):
            if self.raw(path) is None:
                differing.append(f"{path} (gone)")
            elif self.raw(path) != then[path]:
                content = self.history.version_bytes(path, then[path])
                if content is None or meaning(path, content) != self.project.digest(path):
                    differing.append(f"{path} (changed)")
        differing += [f"{path} (new)" for path in sorted(now.keys() - then.keys())]
        if not differing and (now or not then):
            differing = ["the record names none" if not then else "its modules are others"]
        if not differing:
            return Judged("PASS")
        told = ", ".join(differing)
        return Judged("FAIL", f"the code of {producer} is not what it ran with: {told}")
