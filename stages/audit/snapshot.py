"""The project as a commit holds it, read from git's objects: no checkout, nothing written in the
project.

Records and tables of a commit are laid into a temporary folder, where the ledger reads them as it
reads a working copy; code is hashed from the objects. Many objects are asked of one `git cat-file
--batch`. Bytes that git does not hold (data, evaluated numbers) are looked for in the working copy
and in DVC's cache by the locks of the commit, and believed only if they have the recorded SHA-256.
"""

import hashlib
import json
import posixpath
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.audit import apart
from stages.audit.chain import Chain, Ledger, Metric, published, walk
from stages.audit.hashes import Cache
from stages.audit.history import blobs, git, shallow
from stages.errors import InputError
from stages.files import sha256
from stages.params import nearest
from stages.tables import parts


def resolve(root: Path, name: str) -> str:
    """The commit that `name` (a branch, a tag, a hash, HEAD~2) stands for; InputError with the
    nearest name for an unknown one."""
    if git(root, "rev-parse", "--git-dir") is None:
        raise InputError(
            "this is no git repository", where=str(root), remedy="run from a clone of the project"
        )
    found = (
        None
        if name.startswith("-")
        else git(root, "rev-parse", "--verify", "--quiet", name + "^{commit}")
    )
    if not found:
        lists = (("for-each-ref", "--format=%(refname:short)"), ("log", "-200", "--format=%h"))
        known = [word for words in lists for word in (git(root, *words) or "").split()]
        raise InputError(
            "there is no such commit",
            found=name + nearest(name, known).split(" (known:")[0],
            expected="a branch, a tag, a hash or HEAD~N",
            remedy="`git log --oneline` lists them"
            + ("; `git fetch --unshallow` brings the earlier ones" if shallow(root) else ""),
        )
    return found.strip()


class Snapshot:
    """One commit: `ledger` and `chain` of a metric as it has them, `value` its entry; where it
    has no such number, why not in `absent`."""

    if TYPE_CHECKING:
        value: dict[Any, Any]
        cells: tuple[str, ...]

    def __init__(self, root: Path, commit: str, metric: Metric, folder: Path):
        self.root, self.commit, self.folder = root, commit, folder
        self.tree: dict[str, str] = {}
        for line in filter(None, (git(root, "ls-tree", "-r", "-z", commit) or "").split("\0")):
            about, _, path = line.partition("\t")
            self.tree[path] = about.split()[2]
        records = (
            f"data/{metric.profile}/records/*.json",
            f"reports/*/{metric.profile}/records/*.json",
        )
        wanted = {
            path
            for path in self.tree
            if path == metric.table or any(fnmatchcase(path, pattern) for pattern in records)
        }
        self._known: dict[str, bytes] = {}
        contents = self.read(wanted)
        for path in self.tree:  # of other experiments' tables the name is enough
            if path in wanted or fnmatchcase(path, "reports/*/*/metrics.json"):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(contents.get(path, b"{}"))
        rest = apart.file_of(root, metric.folder, lambda path: self.read({path}).get(path))
        if rest and metric.table in contents:
            (folder / metric.folder / parts.BREAKDOWNS).write_bytes(rest.read_bytes())
        self.ledger, self.value, self.cells, self.absent = Ledger(folder), {}, (metric.cell,), None
        try:
            self.value, self.cells = published(self.ledger, metric)
        except InputError as error:
            self.absent = error
        self.chain: Chain = walk(self.ledger, metric, self.cells)

    def read(self, paths: set[str]) -> dict[str, bytes]:
        """The committed bytes of files; those the commit lacks are left out."""
        missing = {self.tree[path] for path in paths if path in self.tree} - self._known.keys()
        if missing:
            self._known |= blobs(self.root, missing)
        return {path: self._known[self.tree[path]] for path in paths if path in self.tree}

    def sha256(self, paths: set[str]) -> dict[str, str]:
        """SHA-256 of committed files."""
        return {
            path: hashlib.sha256(content).hexdigest() for path, content in self.read(paths).items()
        }

    @cached_property
    def _locked(self) -> dict[str, list[str]]:
        """Path -> the MD5s that the locks of this commit, and what `dvc add` wrote of captures,
        give it (one, unless a lock is stale)."""
        patterns = ("dvc.lock", "data/*/dvc.lock", "reports/*/dvc.lock", "data/*/raw/*.dvc")
        found: dict[Any, Any] = {}
        for where, content in self.read(
            {path for path in self.tree if any(fnmatchcase(path, pattern) for pattern in patterns)}
        ).items():
            # paths of a lock are told from the root, of a .dvc file from its folder
            base = posixpath.dirname(where) if where.endswith(".dvc") else ""
            for name, md5 in apart.locked(content):
                found.setdefault(posixpath.join(base, name), []).append(md5)
        return {path: list(dict.fromkeys(names)) for path, names in found.items()}

    def object(self, path: str, digest: str) -> Path | None:
        """A file with the bytes that this commit's record gives `path`: the working copy's, or a
        cache object; None where there is none."""
        candidates, cache, place = [self.root / path], Cache(self.root), path
        while place:
            for md5 in self._locked.get(place, ()):
                inner = (
                    [md5]
                    if place == path
                    else listed(cache.path(md5), path.removeprefix(place + "/"))
                    if md5.endswith(".dir")
                    else []
                )
                candidates += map(cache.path, inner)
            place = posixpath.dirname(place)
        return next(
            (file for file in candidates if file.is_file() and sha256(file) == digest), None
        )


def listed(manifest: Path, name: str) -> list[str]:
    """The MD5 of a file in a folder's manifest, as DVC keeps it."""
    try:
        return [
            entry["md5"] for entry in json.loads(manifest.read_bytes()) if entry["relpath"] == name
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
