"""What git knows of the chain: the commit, the last one that touched the number, and what differs
from it.

Only the files of the metric's own cone count: an edit elsewhere in the tree leaves the number what
it was. dvc.lock and params.yaml serve all cones and are compared entry by entry elsewhere, so they
are not asked here as whole files.

Whatever can stand between a commit's name and its bytes is passed by. Of git only objects are
asked, without replacements, grafts, commit graphs and variables that lead it elsewhere; each object
is hashed again and must have the name by which it was asked for; files on disk are hashed as they
are, without the filters of attributes.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stages.errors import DataError

# Settings of a repository that run programs, or answer for objects without reading them.
PLAIN = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.commitGraph=false",
    "log.showSignature=false",  # asks gpg.program
)
# No transport, which a promised object that is missing would call for (ext:: runs any program).
ALONE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
FILES = ("100644", "100755")  # modes of plain files: no link, no other repository
FOLDER = "40000"


@dataclass(frozen=True)
class Commit:
    """HEAD, the last commit that touched the table, and the cone's files that differ from HEAD."""

    head: str
    touched: str
    dirty: tuple[str, ...]


def command(root: Path, *arguments: str) -> list[str]:
    """A git command that believes nothing but objects. Its working tree is the folder that holds
    `.git`, whatever core.worktree says."""
    plain = [word for one in PLAIN for word in ("-c", one)]
    here = root.resolve()
    top = next((place for place in (here, *here.parents) if (place / ".git").exists()), None)
    tree = [f"--work-tree={top}"] if top else []
    return ["git", "--no-replace-objects", "-C", str(root), *tree, *plain, *arguments]


def environment() -> dict[str, str]:
    """A process' environment without what leads git to another repository, index or store; what
    it says of settings (which folders are safe, say) stays."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key.startswith("GIT_CONFIG")
    }
    return kept | ALONE | {"GIT_OPTIONAL_LOCKS": "0", "GIT_GRAFT_FILE": os.devnull, "LC_ALL": "C"}


def git(root: Path, *arguments: str) -> str | None:
    """Output of a git command that only reads, None where it fails or git is not here."""
    try:
        done = subprocess.run(
            command(root, *arguments),
            capture_output=True,
            text=True,
            errors="surrogateescape",
            env=environment(),
            check=False,
        )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def shallow(root: Path) -> bool:
    """Whether a clone lacks the commits before some (`git clone --depth`)."""
    return (git(root, "rev-parse", "--is-shallow-repository") or "").strip() == "true"


def kind_of(name: str) -> str:
    """The hash of a repository, told by the length of its names."""
    return "sha256" if len(name) == 64 else "sha1"


def name_of(what: str, content: bytes, kind: str) -> str:
    """The name that git gives an object (a blob, tree or commit) by a hash."""
    found = hashlib.new(kind, usedforsecurity=False)
    found.update(f"{what} {len(content)}\0".encode())
    found.update(content)
    return found.hexdigest()


def blobs(root: Path, names: set[str]) -> dict[str, bytes]:
    """The contents of git objects, all asked of one process, each hashed again. DataError where
    the repository lacks one, or holds other bytes under its name."""
    asked, found, at = sorted(names), {}, 0
    done = subprocess.run(
        command(root, "cat-file", "--batch"),
        input="\n".join(asked).encode(),
        capture_output=True,
        env=environment(),
        check=False,
    )
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
        if name_of(words[1].decode(), found[name], kind_of(name)) != name:
            raise DataError(
                "git holds other bytes under an object's name",
                found=name,
                remedy="`git fsck`, then clone anew",
            )
        at = end + size + 2
    return found


def entries(tree: bytes, size: int) -> Iterator[tuple[str, str, str]]:
    """(mode, name, object) of each entry of a tree object; objects' names have `size` bytes."""
    at = 0
    while at < len(tree):
        end = tree.index(b"\0", at)
        mode, _, name = tree[at:end].partition(b" ")
        at = end + 1 + size
        yield mode.decode(), os.fsdecode(name), tree[end + 1 : at].hex()


@lru_cache(maxsize=8)
def _walked(root: Path, commit: str, prefix: str) -> dict[str, tuple[str, str]]:
    """Path -> (mode, object) of all that a commit holds below a folder, told from there."""
    text = blobs(root, {commit})[commit].decode("utf-8", "replace")
    (start,) = (line[5:] for line in text.split("\n", 1)[:1] if line.startswith("tree "))
    found: dict[str, tuple[str, str]] = {}
    waiting = {"": start}
    while waiting:
        read, below = blobs(root, {*waiting.values()}), {}
        for place, name in waiting.items():
            for mode, inner, one in entries(read[name], len(name) // 2):
                path = f"{place}{inner}"
                if mode == FOLDER and f"{path}/".startswith(prefix[: len(path) + 1]):
                    below[f"{path}/"] = one
                elif path.startswith(prefix):
                    found[path.removeprefix(prefix)] = mode, one
        waiting = below
    return found


def modes(root: Path) -> dict[str, tuple[str, str]] | None:
    """Path -> (mode, git's name of its bytes) of all that HEAD holds; None where there is no
    HEAD. DataError where the repository is damaged."""
    head = git(root, "rev-parse", "HEAD", "--show-prefix")
    if head is None:
        return None
    commit, _, prefix = head.partition("\n")
    return _walked(root.resolve(), commit, prefix.strip("\n"))


def cut(root: Path) -> list[str]:
    """The commits at which git's walk from HEAD ends, though they name others before them: history
    is cut off there, in a shallow clone or by what `.git` says. DataError where a commit's bytes
    are not those of its name."""
    head = (git(root, "rev-parse", "HEAD") or "").strip()
    walked = (git(root, "rev-list", "HEAD") or head).split()
    read = blobs(root, {*walked}) if walked else {}
    return [name for name in walked if not {*parents(read[name])} <= read.keys()]


def parents(commit: bytes) -> list[str]:
    """The commits that a commit object names as those before it."""
    lines = commit.partition(b"\n\n")[0].decode("utf-8", "replace").split("\n")
    return [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]


def look(root: Path, table: str, files: list[str]) -> Commit | None:
    """The commit behind the tree; None without a repository or a first commit."""
    head = git(root, "rev-parse", "HEAD")
    if head is None:
        return None
    touched = git(root, "log", "-1", "--format=%h %cs", "--", table) or ""
    return Commit(head.strip(), touched.strip(), tuple(changed(root, files)))


def tree(root: Path, places: Iterable[str]) -> dict[str, str] | None:
    """Path -> git's name of its bytes, of HEAD's plain files at these places; None where there is
    no HEAD."""
    found = modes(root)
    if found is None:
        return None
    asked = {*places}
    folders = tuple(f"{place}/" for place in asked)
    return {
        path: name
        for path, (mode, name) in found.items()
        if mode in FILES and (path in asked or path.startswith(folders))
    }


def changed(root: Path, files: list[str]) -> list[str]:
    """Those of `files` whose bytes on disk are not HEAD's (edited, deleted or never committed),
    whatever the index and attributes say; a link in place of a file is another."""
    committed = tree(root, files)
    if committed is None:
        return sorted(files)
    return sorted(path for path in files if hashed(root / path, committed.get(path)) is False)


def hashed(file: Path, name: str | None) -> bool:
    """Whether a file on disk has the bytes that git calls `name`."""
    if name is None or file.is_symlink() or not file.is_file():
        return False
    return name_of("blob", file.read_bytes(), kind_of(name)) == name


def changed_below(root: Path, folder: str) -> list[str]:
    """The files of a folder that are not HEAD's, with those that git does not know and does not
    ignore."""
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", folder) or ""
    index = git(root, "ls-files", "-z", "--", folder) or ""
    names = {*(tree(root, [folder]) or ()), *filter(None, (new + index).split("\0"))}
    return changed(root, sorted(names))


def at_commits(root: Path, commits: list[str], path: str) -> list[str]:
    """The text of a file at each commit, "" where it has none."""
    names = at_each(root, commits, f"./{path}")
    read = blobs(root, set(names.values())) if names else {}
    return [read.get(names.get(commit, ""), b"").decode("utf-8", "replace") for commit in commits]


def at_each(root: Path, commits: list[str], path: str) -> dict[str, str]:
    """Commit -> git's name of what it has at a path, told from the repository's top (from `root`
    where it begins with ./), for those commits that have it."""
    done = subprocess.run(
        command(root, "cat-file", "--batch-check=%(objectname)"),
        input="".join(f"{commit}:{path}\n" for commit in commits).encode(),
        capture_output=True,
        env=environment(),
        check=False,
    )
    names = done.stdout.decode("utf-8", "replace").splitlines()
    told = zip(commits, names, strict=False)
    return {commit: name for commit, name in told if not name.endswith(" missing")}


def contents(root: Path, files: list[str]) -> dict[str, bytes]:
    """The committed bytes of those of `files` that HEAD has."""
    names = tree(root, files) or {}
    read = blobs(root, set(names.values())) if names else {}
    return {path: read[name] for path, name in names.items()}


def at_head(root: Path, path: str) -> str | None:
    """The committed text of a file, None where there is none."""
    found = contents(root, [path]).get(path)
    return None if found is None else found.decode("utf-8", "replace")
