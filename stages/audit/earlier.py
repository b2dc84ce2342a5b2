"""Every version of the project's code that git's history holds.

A record tells the SHA-256 of each file of code; git names its bytes otherwise. Once an audit all
versions of the files beneath stages/ are read from git's objects and hashed, so that a record's
files can be found: one by one (`version_bytes`), and all together, as one commit had them
(`commit`).
"""

import contextlib
import hashlib
import json
from collections import Counter
from functools import cached_property
from pathlib import Path

from stages import code
from stages.audit.hashes import manifest_md5
from stages.audit.history import at_commits, at_each, blobs, git
from stages.audit.trees import Trees
from stages.code import PACKAGE
from stages.errors import DataError


class History:
    """The versions of a repository's code. Without git, or before a first commit, none; `known`
    is False of a place that has no history at all, such as a bundle."""

    def __init__(self, root: Path | None):
        self.root, self.known = root or Path(), root is not None
        self._commits: dict[tuple[tuple[str, str], ...], str | None] = {}
        self._trees = Trees(self.root)
        self._names: dict[str, dict[str, str | None]] = {}  # path -> commit -> git's name of it

    @cached_property
    def shallow(self) -> bool:
        """Whether commits are missing here."""
        return (git(self.root, "rev-parse", "--is-shallow-repository") or "").strip() == "true"

    @cached_property
    def _introduced(self) -> dict[tuple[str, str], list[str]]:
        """(path, git's name of its bytes) -> the commits that brought them, newest first."""
        words = ("--all", "-m", "--raw", "--no-abbrev", "--no-renames", "--format=commit %H")
        found: dict[tuple[str, str], list[str]] = {}
        commit = ""
        log = git(self.root, "log", *words, "--", PACKAGE) if self.known else ""
        for line in (log or "").splitlines():
            if line.startswith("commit "):
                commit = line.removeprefix("commit ")
            elif line.startswith(":"):
                about, _, path = line.partition("\t")
                found.setdefault((path, about.split()[3]), []).append(commit)
        return found

    @cached_property
    def _versions(self) -> dict[tuple[str, str], tuple[str, bytes]]:
        """(path, SHA-256) -> git's name of these bytes, and they."""
        names = {name for _, name in self._introduced if name.strip("0")}
        contents = blobs(self.root, names) if names else {}
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        return {
            (path, digests[name]): (name, contents[name])
            for path, name in self._introduced
            if name in contents
        }

    def version_bytes(self, path: str, sha256: str) -> bytes | None:
        """The bytes of a version of a file; None where no commit holds it."""
        found = self._versions.get((path, sha256))
        return found and found[1]

    def commit(self, files: dict[str, str]) -> str | None:
        """The newest commit that has all these files (path -> SHA-256) at once; None for none."""
        key = tuple(sorted(files.items()))
        if key not in self._commits:
            self._commits[key] = self._search(files)
        return self._commits[key]

    def commit_of(self, path: str, md5: str) -> str | None:
        """The newest commit that has any file or folder of the project in the bytes of this MD5 (a
        folder's ends with .dir); None for none."""
        log = git(self.root, "log", "--all", "--format=%H", "--", path) if self.known else ""
        folder = md5.endswith(".dir")
        held = at_each(self.root, (log or "").split(), f"./{path}{'/' * folder}")
        tops = {*held.values()}
        self._trees.read(tops if folder else ())
        below = {top: dict(self._trees.files(top)) if folder else {"": top} for top in tops}
        names = {name for files in below.values() for name in files.values()}
        digests = {
            name: hashlib.md5(content, usedforsecurity=False).hexdigest()
            for name, content in (blobs(self.root, names) if names else {}).items()
        }
        for commit, top in held.items():
            found = {file: digests[name] for file, name in below[top].items()}
            entries = [{"md5": found[file], "relpath": file} for file in sorted(found) if file]
            if md5 == (manifest_md5(entries) if folder else found.get("")):
                return commit
        return None

    def recorded(self, record: str, path: str, described: dict[str, object]) -> str | None:
        """The newest commit whose record, a file of the project, tells that a file was written as
        described; None for none."""
        log = git(self.root, "log", "--all", "--format=%H", "--", record) if self.known else ""
        commits = (log or "").split()
        for commit, text in zip(commits, at_commits(self.root, commits, record), strict=True):
            with contextlib.suppress(ValueError, TypeError, KeyError):
                if json.loads(text)["outputs"][path] == described:
                    return commit
        return None

    def _search(self, files: dict[str, str]) -> str | None:
        found = {path: self._versions.get((path, sha256)) for path, sha256 in files.items()}
        wanted = {path: version[0] for path, version in found.items() if version}
        if not files or len(wanted) < len(files):
            return None
        often = max(sorted(wanted), key=self._often.__getitem__)
        if often not in self._names:
            self._names[often] = {commit: self._held(commit, often) for commit in self._order}
        for commit in self._order:
            if self._names[often][commit] != wanted[often]:
                continue  # most commits are told apart by the file that was edited most
            if all(self._held(commit, path) == name for path, name in wanted.items()):
                return commit
        return None

    @cached_property
    def _often(self) -> Counter[str]:
        """How many versions each path has had."""
        return Counter(path for path, _ in self._versions)

    @cached_property
    def _order(self) -> list[str]:
        """The commits that touch code, newest first, merges last."""
        listed = git(self.root, "log", "--all", "--format=%H", "--", PACKAGE) or ""
        merges = [commit for commits in self._introduced.values() for commit in commits]
        return list(dict.fromkeys([*listed.split(), *merges]))

    @cached_property
    def _tops(self) -> dict[str, str]:
        """Commit -> git's name of the folder of code that it has; they are read."""
        tops = at_each(self.root, self._order, f"./{PACKAGE}/")
        self._trees.read(tops.values())
        return tops

    def _held(self, commit: str, path: str) -> str | None:
        """Git's name of what a commit has at a path of code."""
        top = self._tops.get(commit)
        return self._trees.name(top, path.removeprefix(f"{PACKAGE}/")) if top else None

    def meaning(self, path: str, sha256: str) -> str | None:
        """The digest of what a version of a file means; None where no commit holds it."""
        content = self.version_bytes(path, sha256)
        return None if content is None else meaning(path, content)


def meaning(path: str, content: bytes) -> str:
    """The digest of a file's meaning, of what is no Python that of its bytes. A version that
    cannot be read as Python has none: ""."""
    if not path.endswith(".py"):
        return hashlib.sha256(content).hexdigest()
    try:
        return code.meaning(content)
    except DataError:
        return ""
