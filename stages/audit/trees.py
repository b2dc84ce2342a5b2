"""Folders as commits had them: git's tree objects, each read once, many by one process.

A listing by git itself for each of hundreds of commits takes a process each, and longer than all
else that is asked of a history.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from stages.audit.history import FOLDER, blobs, entries


class Trees:
    """The trees of a repository that were asked for."""

    def __init__(self, root: Path):
        self.root = root
        self._read: dict[str, dict[str, tuple[str, str]]] = {}  # tree -> entry -> (mode, object)

    def read(self, names: Iterable[str]) -> None:
        """Read these trees and all below them. DataError as for `blobs`."""
        waiting = {*names} - self._read.keys()
        while waiting:
            for name, content in blobs(self.root, waiting).items():
                told = entries(content, len(name) // 2)
                self._read[name] = {inner: (mode, one) for mode, inner, one in told}
            inner = (entry for name in waiting for entry in self._read[name].values())
            waiting = {one for mode, one in inner if mode == FOLDER} - self._read.keys()

    def name(self, tree: str, path: str) -> str | None:
        """What a tree has at a path below it; None for nothing."""
        found: str | None = tree
        for part in path.split("/"):
            _, found = self._read.get(found or "", {}).get(part, ("", None))
        return found

    def files(self, tree: str) -> Iterator[tuple[str, str]]:
        """(path below a tree, git's name of its bytes) of all that is no folder."""
        for inner, (mode, one) in self._read[tree].items():
            if mode == FOLDER:
                yield from ((f"{inner}/{path}", name) for path, name in self.files(one))
            else:
                yield inner, one
