"""What a module reaches: the closure of its imports, and the templates and tables that they name.

Imports are found in syntax trees, those inside functions too; nothing is imported to find them. A
circle of imports is one set. Paths are relative to the project's root, with `/`.
"""

import difflib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stages import files
from stages.code.syntax import Import, Source, read
from stages.errors import DataError, InputError

HOME = Path("data/code")
PACKAGE = "stages"

# Modules, and packages whole, that contribute nothing, nor does what only they import. They write,
# tell and name what was computed and compute none of it: how a file is written, what an error says,
# what a record holds. Parameters are tracked by DVC, key by key. stages/__init__.py and what it
# imports are not among them: they choose the kernels of every library, and so last digits.
INERT = (
    "stages.records",
    "stages.runner",
    "stages.files",
    "stages.errors",
    "stages.code",
    "stages.params",
)


def _with_ancestors(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


class Project:
    """The files of the project's packages beneath `root`, each read once.

    `modules` holds dotted name -> path, `others` the paths of what is no module (templates, say),
    `known` the names of modules and of folders without __init__.py. All is as it was when asked for
    first: one that edits files makes another Project.
    """

    def __init__(self, root: Path = Path("."), packages: Iterable[str] = (PACKAGE,)):
        self.root = root
        self.modules: dict[str, str] = {}
        self.others: list[str] = []
        self._edges: dict[str, tuple[str, ...]] = {}
        self._digests: dict[str, str] = {}
        for package in sorted({*packages}):
            self._scan(package)
        self.known = {part for name in self.modules for part in _with_ancestors(name)}
        homes = tuple(f"{name.replace('.', '/')}{end}" for name in INERT for end in (".py", "/"))
        everything = [*self.modules.values(), *self.others]
        self.inert = frozenset(path for path in everything if path.startswith(homes))

    def listed(self, package: str) -> Iterator[str]:
        """The paths of a package's files, folder by folder, without hidden and cached ones."""
        for folder, inner, names in os.walk(self.root / package, followlinks=True):
            inner[:] = sorted(n for n in inner if n != "__pycache__" and not n.startswith("."))
            home = Path(folder).relative_to(self.root)
            yield from ((home / name).as_posix() for name in sorted(names))

    def content(self, path: str) -> bytes:
        """A file's bytes."""
        return (self.root / path).read_bytes()

    def _scan(self, package: str) -> None:
        for path in self.listed(package):
            name = path.rpartition("/")[2]
            if name.endswith(".py"):
                module = path.removesuffix(".py").removesuffix("/__init__")
                self.modules[module.replace("/", ".")] = path
            elif not name.startswith(".") and not name.endswith((".pyc", ".pyo")):
                self.others.append(path)

    def paths(self, module: str) -> list[str]:
        """The files that importing one module runs first: its packages' and its own."""
        return [self.modules[name] for name in _with_ancestors(module) if name in self.modules]

    def source(self, path: str) -> Source:
        """What a module's file means."""
        return read(self.content(path), path)

    def digest(self, path: str) -> str:
        """The digest of a module's meaning; of another file's bytes."""
        if path not in self._digests:
            told = self.source(path).digest if path.endswith(".py") else None
            self._digests[path] = told or hashlib.sha256(self.content(path)).hexdigest()
        return self._digests[path]

    def edges(self, path: str) -> tuple[str, ...]:
        """The paths that a file names: modules it imports, with their packages; other files."""
        if path not in self._edges:
            named = self._module_edges(path) if path.endswith(".py") else self._file_edges(path)
            self._edges[path] = tuple(sorted(named))
        return self._edges[path]

    def _module_edges(self, path: str) -> set[str]:
        source, named = self.source(path), set()
        for asked in source.imports:
            for name in self._targets(path, asked):
                named.update(self.paths(name))
        home = path.rpartition("/")[0] + "/"
        tails = tuple(f"/{string}" for string in source.strings if string)
        beneath = (other for other in self.others if other.startswith(home))
        return named | {other for other in beneath if f"/{other}".endswith(tails)}

    def _targets(self, path: str, asked: Import) -> list[str]:
        """The project's modules that one import asks for. DataError for one that is not there."""
        base = asked.module
        if asked.level:
            package = path.split("/")[: -asked.level]
            base = ".".join([*package, base] if base else package)
        if base.partition(".")[0] not in self.known:
            return []
        if base not in self.known:
            raise DataError(
                "a module is imported that does not exist",
                where=f"{path}:{asked.line}",
                found=base,
                remedy="mend its name, or remove the import",
            )
        inner = [f"{base}.{name}" for name in asked.names or ()]
        return [base, *(name for name in inner if name in self.known)]

    def _file_edges(self, path: str) -> set[str]:
        """Other files beneath a template's folder whose names stand in its text."""
        text = self.content(path).decode("utf-8", "replace")
        home, named = path.rpartition("/")[0], set()
        for other in self.others:
            name = other.rpartition("/")[2]
            alone = rf"(?<![\w.-]){re.escape(name)}(?![\w.-])"
            if other.startswith(f"{home}/") and other != path and re.search(alone, text):
                named.add(other)
        return named

    def reached(self, modules: Iterable[str], barred: frozenset[str] = frozenset()) -> set[str]:
        """The paths that importing `modules` reaches, without `barred` and what only it reaches."""
        waiting = [path for module in modules for path in self.paths(module)]
        found: set[str] = set()
        while waiting:
            path = waiting.pop()
            if path not in found and path not in barred:
                found.add(path)
                waiting += self.edges(path)
        return found

    def closure(self, module: str) -> dict[str, str]:
        """Path -> digest of what importing `module` reaches. InputError for no such module."""
        if module not in self.modules:
            near = difflib.get_close_matches(module, self.modules, 3)
            raise InputError(
                "there is no such module",
                where=str(self.root),
                expected=" or ".join(near),
                found=module,
                remedy="mend the name in dvc.yaml, or write the module",
            )
        return {path: self.digest(path) for path in sorted(self.reached([module], self.inert))}


def closure(module: str, root: Path = Path(".")) -> dict[str, str]:
    """Path -> digest of all that importing `module` ("stages.winds.train") may run, inert aside.

    Imports in functions count; those under TYPE_CHECKING and by computed names do not; the packages
    of every module do. InputError for no such module; DataError for a file that is not Python.
    """
    return Project(root, (PACKAGE, module.partition(".")[0])).closure(module)


def list_of(module: str) -> Path:
    """Where the closure of a module stands: data/code/winds.train.json of stages.winds.train."""
    return HOME / f"{module.removeprefix(f'{PACKAGE}.')}.json"


def raw(paths: Iterable[str], root: Path = Path(".")) -> dict[str, str]:
    """Path -> SHA-256 of the bytes, of the files of a closure: a record keeps them beside it."""
    return {path: files.sha256(root / path) for path in sorted(paths)}


def recorded(modules: Iterable[str], root: Path = Path(".")) -> dict[str, Any]:
    """What a record tells of code: the modules, one digest of what their closures mean, and the
    raw SHA-256 of every file in them."""
    asked = sorted({*modules})
    project = Project(root)
    meanings = {path: one for name in asked for path, one in project.closure(name).items()}
    text = json.dumps(meanings, sort_keys=True)
    return {
        "modules": asked,
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "files": raw(meanings, root),
    }


def outside(modules: Iterable[str], root: Path = Path(".")) -> list[str]:
    """The project's modules loaded in this process that no closure of `modules` holds.

    A stage asserts at its end that there are none: one would be a module imported by a computed
    name that its deps do not declare. Lists that the stage `code` wrote are believed first.
    """
    project, modules = Project(root), list(modules)
    loaded = {
        name: project.modules.get(name, name)
        for name, module in list(sys.modules.items())
        if module is not None and name.partition(".")[0] == PACKAGE
    }
    left = {*loaded.values()} - project.inert - project.known  # folders without a file run nothing
    for module in modules:
        if (wrote := root / list_of(module)).exists():
            left -= {*files.read_json(wrote)}
    for name in INERT:
        if left:  # what only these import is no more a part of the outputs than they are
            left -= project.reached([name])
    if left:
        left -= project.reached(modules, project.inert)
    return sorted(name for name, path in loaded.items() if path in left)
