"""The files of one commit, in memory, and the arithmetic by which git names them.

A release is a function of a commit, so all that exports read comes through here: `of_commit` takes
the blobs from git, never from the working tree; a bundle (reader.py) gives the same view of the
same files on a machine without git. git names a file by the SHA-1 of "blob <size>\\0" and its
bytes, a folder by that of its sorted entries, a commit by that of its text (SHA-256 in newer
repositories): so whoever holds the files and the commit's text can check that they belong together.
"""

import datetime as dt
import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from stages.audit import history
from stages.audit.chain import Node, nearest_home, read_node
from stages.audit.coded import Code
from stages.audit.earlier import History
from stages.audit.history import kind_of, name_of
from stages.code import Project
from stages.errors import DataError, InputError
from stages.files import json_of

REGULAR, PROGRAM = "100644", "100755"


@dataclass(frozen=True)
class Commit:
    """A commit: its name, the name of its tree, when it was made (Unix seconds), its text as git
    keeps it."""

    name: str
    tree: str
    seconds: int
    text: bytes = field(repr=False)

    @classmethod
    def parse(cls, name: str, text: bytes) -> "Commit":
        """From git's own text; DataError where that is no commit."""
        head = text.split(b"\n\n", 1)[0].decode("utf-8", errors="replace").split("\n")
        try:
            (tree,) = (line.split()[1] for line in head if line.startswith("tree "))
            (made,) = (
                line.split("> ")[-1].split()[0] for line in head if line.startswith("committer ")
            )
            return cls(name, tree, int(made), text)
        except (ValueError, IndexError):
            raise DataError(
                "that is no commit",
                where=name,
                expected="git's text of a commit: tree, author, committer",
                found=repr(text[:80]),
            ) from None

    @property
    def date(self) -> str:
        """The day it was made, UTC, as 2026-01-31."""
        return f"{self.moment:%Y-%m-%d}"

    @property
    def moment(self) -> dt.datetime:
        """When it was made, UTC."""
        return dt.datetime.fromtimestamp(self.seconds, dt.UTC)


@dataclass(frozen=True)
class Tree:
    """Files by path, the mode of each, and the commit they are of; `root` is the repository that
    has it, None where there is none."""

    files: Mapping[str, bytes]
    modes: dict[str, str]
    commit: Commit
    root: Path | None = None

    def json(self, path: str) -> Any:
        """A file's JSON; DataError where it is missing or none."""
        if path not in self.modes:
            raise DataError("a file is missing from the commit", where=path)
        return json_of(self.files[path], path)

    def yaml(self, path: str) -> dict[Any, Any]:
        """A file's YAML mapping, parsed once; {} where the commit has no such file. DataError
        where it is none."""
        if path not in self._parsed:
            try:
                self._parsed[path] = (
                    mapping(self.files[path].decode("utf-8"), path) if path in self.modes else {}
                )
            except UnicodeDecodeError as error:
                raise DataError("the file is not UTF-8", where=path, found=str(error)) from None
        return self._parsed[path]

    @cached_property
    def _parsed(self) -> dict[str, dict[Any, Any]]:
        return {}

    def matching(self, start: str, end: str) -> list[str]:
        """The paths that start and end so, sorted."""
        return sorted(path for path in self.modes if path.startswith(start) and path.endswith(end))

    @cached_property
    def sha256(self) -> dict[str, str]:
        """SHA-256 of every file."""
        return {path: hashlib.sha256(self.files[path]).hexdigest() for path in self.modes}

    @cached_property
    def nodes(self) -> list[Node]:
        """Every run record, sorted by path; one that cannot be read has an `error`."""
        paths = [
            path
            for path in sorted(self.modes)
            if "/records/" in path
            and path.endswith(".json")
            and path.startswith(("data/", "reports/"))
        ]
        return [
            node for node in (read_node(path, partial(self.json, path)) for path in paths) if node
        ]

    @cached_property
    def homes(self) -> dict[str, Node]:
        """Place -> the record that speaks for it."""
        return {home: node for node in self.nodes for home in node.homes}

    @cached_property
    def code(self) -> Code:
        """The commit's code, and what records say of it."""
        run = self.yaml("params.yaml").get("run")
        chosen = run.get("profile") if isinstance(run, dict) else None
        return Code(partial(TreeProject, self), History(self.root), chosen)

    def owner(self, path: str) -> Node | None:
        """The record in whose place `path` lies."""
        return nearest_home(self.homes, path)


class TreeProject(Project):
    """The modules of a Tree: nothing is read from disk."""

    def __init__(self, tree: Tree):
        self.tree = tree
        super().__init__()

    def listed(self, package: str) -> Iterator[str]:
        """The paths of a package's files."""
        yield from self.tree.matching(f"{package}/", "")

    def content(self, path: str) -> bytes:
        """A file's bytes."""
        return self.tree.files[path]


def mapping(text: str, where: str) -> dict[Any, Any]:
    """A YAML mapping from text by the compiled parser, {} for anything else; DataError where it
    is not plain YAML."""
    try:
        content = YAML(typ="safe").load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise DataError(
            "it is not plain YAML", where=where, found=" ".join(str(error).split())
        ) from None
    return content if isinstance(content, dict) else {}


def git(root: Path, *arguments: str) -> bytes:
    """Output of a git command that only reads; InputError where it fails or git is not here."""
    try:
        done = subprocess.run(
            history.command(root, *arguments),
            capture_output=True,
            env=history.environment(),
            check=False,
        )
    except FileNotFoundError:
        raise InputError(
            "git is not installed", remedy="a release is made of a commit; install git"
        ) from None
    if done.returncode and b"not a git repository" in done.stderr:
        raise InputError(
            "this folder is no clone of a project",
            where=str(root),
            expected="a git repository: what is told of data and cells stands in its commit",
            remedy="run it at the root of a clone",
        )
    if done.returncode:
        raise InputError(
            f"`git {arguments[0]}` failed",
            where=str(root),
            found=done.stderr.decode("utf-8", "replace").strip()[-500:],
        )
    return done.stdout


def of_commit(root: Path) -> Tree:
    """HEAD's files. InputError without a commit, below the repository's root, or for an entry
    that is no plain file."""
    top = git(root, "rev-parse", "--show-toplevel").decode().rstrip("\n")
    if Path(top).resolve() != root.resolve():
        raise InputError(
            "that is not the repository's root",
            where=str(root),
            expected=top,
            remedy="run it there",
        )
    name = git(root, "rev-parse", "--verify", "HEAD").decode().strip()
    commit = Commit.parse(name, history.blobs(root, {name})[name])
    modes, names = {}, {}
    for path, (mode, blob) in (history.modes(root) or {}).items():
        if mode not in (REGULAR, PROGRAM):
            raise InputError(
                "a release holds plain files only",
                where=path,
                found=f"mode {mode}: a link or a submodule",
            )
        if any("\ud800" <= letter <= "\udfff" for letter in path):
            raise InputError("a file's name is not UTF-8", where=repr(path))
        modes[path], names[path] = mode, blob
    contents = history.blobs(root, set(names.values()))
    return Tree({path: contents[blob] for path, blob in names.items()}, modes, commit, root)


def commit_name(commit: Commit) -> str:
    """The name that a commit's text has."""
    return name_of("commit", commit.text, kind_of(commit.tree))


def tree_name(blobs: dict[str, tuple[str, str]], kind: str = "sha1") -> str:
    """The name of the folder that holds files of these paths -> (mode, blob name)."""
    folders: dict[str, dict[str, tuple[str, str]]] = {}
    entries = []
    for path, (mode, blob) in blobs.items():
        first, _, rest = path.partition("/")
        if rest:
            folders.setdefault(first, {})[rest] = mode, blob
        else:
            entries.append((first.encode(), first.encode(), mode, blob))
    entries += [
        (name.encode() + b"/", name.encode(), "40000", tree_name(inner, kind))
        for name, inner in folders.items()
    ]  # git's order
    body = b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(blob)
        for _, name, mode, blob in sorted(entries)
    )
    return name_of("tree", body, kind)
