"""What git knows of the chain: the commit, the last one that touched the number, and what differs
from it.

Only the files of the metric's own cone count: an edit elsewhere in the tree leaves the number what
it was. dvc.lock and params.yaml serve all cones and are compared entry by entry elsewhere, so they
are not asked here as whole files.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from stages.errors import DataError


@dataclass(frozen=True)
class Commit:
    """HEAD, the last commit that touched the table, and the cone's files that differ from HEAD."""

    head: str
    touched: str
    dirty: tuple[str, ...]


def git(root: Path, *arguments: str) -> str | None:
    """Output of a git command that only reads, None where it fails or git is not here."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def blobs(root: Path, names: set[str]) -> dict[str, bytes]:
    """The contents of git objects, all asked of one process. DataError where the repository
    lacks one."""
    asked = sorted(names)
    command = ["git", "-C", str(root), "cat-file", "--batch"]
    done = subprocess.run(
        command, input="\n".join(asked).encode(), capture_output=True, check=False
    )
    found, at = {}, 0
    for name in asked:
        end = done.stdout.find(b"\n", at)
        words = done.stdout[at:end].split()
        if end < 0 or len(words) != 3:
            raise DataError(
                "git does not hold an object of that commit",
                found=name,
                remedy="`git fetch --unshallow`, `git fsck`",
            )
        size = int(words[2])
        found[name] = done.stdout[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def look(root: Path, table: str, files: list[str]) -> Commit | None:
    """The commit behind the tree; None without a repository or a first commit."""
    head = git(root, "rev-parse", "HEAD")
    if head is None:
        return None
    touched = git(root, "log", "-1", "--format=%h %cs", "--", table) or ""
    return Commit(head.strip(), touched.strip(), tuple(changed(root, files)))


def tree(root: Path, places: list[str]) -> dict[str, str] | None:
    """Path -> git's name of its bytes, of HEAD's files at these places; None where there is no
    HEAD."""
    lines = git(root, "ls-tree", "-r", "-z", "HEAD", "--", *places) if places else ""
    if lines is None:
        return None
    pairs = (line.partition("\t") for line in filter(None, lines.split("\0")))
    return {path: about.split()[2] for about, _, path in pairs}


def changed(root: Path, files: list[str]) -> list[str]:
    """Those of `files` whose bytes on disk are not HEAD's (edited, deleted or never committed),
    whatever the index believes."""
    committed = tree(root, files)
    if committed is None:
        return sorted(files)
    present = [path for path in files if (root / path).is_file()]
    hashed = (git(root, "hash-object", "--", *present) if present else "") or ""
    actual = dict(zip(present, hashed.split(), strict=False))
    return sorted(
        path for path in files if path not in committed or actual.get(path) != committed[path]
    )


def changed_below(root: Path, folder: str) -> list[str]:
    """The files of a folder that are not HEAD's, with those that git does not know and does not
    ignore."""
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", folder) or ""
    index = git(root, "ls-files", "-z", "--", folder) or ""
    names = {*(tree(root, [folder]) or ()), *filter(None, (new + index).split("\0"))}
    return changed(root, sorted(names))


def contents(root: Path, files: list[str]) -> dict[str, bytes]:
    """The committed bytes of those of `files` that HEAD has."""
    names = tree(root, files) or {}
    read = blobs(root, set(names.values())) if names else {}
    return {path: read[name] for path, name in names.items()}


def at_head(root: Path, path: str) -> str | None:
    """The committed text of a file, None where there is none."""
    return git(root, "show", f"HEAD:./{path}")
