"""DVC's own words about the chain's bytes: dvc.lock entries, directory manifests, cache objects.

A lock names each output by MD5; a folder's MD5 is that of its manifest, the JSON list of {"md5",
"relpath"} sorted by relpath, kept in the cache as `xx/rest.dir`. `dvc status` trusts a cache
object's permissions and a file's time stamp and so does not see bit rot: here everything is read
from disk. A file is hashed once per audit (Bytes, Cache); nothing is remembered longer.
"""

import configparser
import copy
import hashlib
import json
import posixpath
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ruamel.yaml.error import YAMLError

from stages import records
from stages.errors import DataError
from stages.params.reading import kept

BLOCK = 1 << 18  # bytes read at once: they stay in a core's cache while both sums pass over them


def digests(file: Path, sha: bool = True, most: int | None = None) -> tuple[str, str] | None:
    """(SHA-256, MD5) of a file in one pass, SHA-256 left "" where it is not asked for; None where
    there is no such file. A file of more than `most` bytes is not read: its size stands for both.

    DataError where it cannot be read.
    """
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            return None
        if most is not None and found.st_size > most:
            return (f"({found.st_size:,} bytes)",) * 2
        sums = [*([hashlib.sha256()] if sha else []), hashlib.md5(usedforsecurity=False)]
        with file.open("rb", buffering=0) as stream:
            block = memoryview(bytearray(BLOCK))
            while size := stream.readinto(block):
                for one in sums:
                    one.update(block[:size])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataError(
            "a file cannot be read",
            where=str(file),
            found=error.strerror or str(error),
            remedy="mend its permissions or its disk",
        ) from None
    return sums[0].hexdigest() if sha else "", sums[-1].hexdigest()


class Bytes:
    """MD5 and SHA-256 of files, each read once from disk; None for a file that is not there.

    A file that is in DVC's cache alone may be read there: `stead` maps its path to the object.
    """

    def __init__(self, root: Path):
        self.root = root
        self.stead: dict[str, Path] = {}
        self.most: dict[str, int] = {}  # path -> the recorded size: a longer file is another
        self._known: dict[str, tuple[str, str] | None] = {}

    def file(self, path: str) -> Path:
        """Where the bytes of a path are read."""
        return self.stead.get(path) or self.root / path

    def learn(self, path: str, both: tuple[str, str] | None) -> None:
        """Take what another has read of a path."""
        self._known[path] = both

    def _both(self, path: str) -> tuple[str, str] | None:
        if path not in self._known:
            self._known[path] = digests(self.file(path), most=self.most.get(path))
        return self._known[path]

    def sha256(self, path: str) -> str | None:
        """Hex SHA-256 of a file under the root."""
        both = self._both(path)
        return both and both[0]

    def md5(self, path: str) -> str | None:
        """Hex MD5 of a file under the root, as DVC names it."""
        both = self._both(path)
        return both and both[1]

    def manifest(self, folder: str) -> list[dict[Any, Any]]:
        """The manifest DVC would write of the folder's present bytes."""
        files = records.files_in([self.root / folder])  # without what .dvcignore hides
        entries = [
            {"md5": self.md5(f"{folder}/{name}"), "relpath": name}
            for name in (p.relative_to(self.root / folder).as_posix() for p in files)
        ]
        return sorted(entries, key=lambda entry: entry["relpath"])


def manifest_md5(entries: list[dict[Any, Any]]) -> str:
    """The MD5 (with `.dir`) by which a lock names a folder."""
    return (
        hashlib.md5(json.dumps(entries, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
        + ".dir"
    )


@dataclass(frozen=True)
class Entry:
    """One stage of a dvc.lock; paths are told from the project's root."""

    name: str
    lock: str
    cmd: str
    deps: dict[str, str]  # path -> md5
    outs: dict[str, str]
    params: dict[str, dict[Any, Any]]  # file -> {dotted key: value}

    def out(self, path: str) -> tuple[str, str] | None:
        """The output (path, md5) that holds `path`."""
        return next(
            (
                (out, md5)
                for out, md5 in self.outs.items()
                if path == out or path.startswith(out + "/")
            ),
            None,
        )


def read_lock(where: str, lock: dict[Any, Any], declared: dict[Any, Any]) -> list[Entry]:
    """The entries of one dvc.lock, whose stages are declared in the dvc.yaml beside it.
    DataError where it is not a lock."""
    entries = []
    try:
        for name, stage in (lock.get("stages") or {}).items():
            definition = (declared.get("stages") or {}).get(name.split("@")[0]) or {}
            folder = posixpath.join(
                posixpath.dirname(where), (definition.get("do") or definition).get("wdir", ".")
            )

            def path(item: str, folder: str = folder) -> str:
                return posixpath.normpath(posixpath.join(folder, item))

            told = [
                {path(item["path"]): item["md5"] for item in stage.get(side) or [] if "md5" in item}
                for side in ("deps", "outs")
            ]
            if not all(isinstance(md5, str) for one in told for md5 in one.values()):
                raise TypeError(
                    f"an md5 of {name} is no text"
                )  # of digits alone YAML makes a number
            params = {
                path(file): dict(values) for file, values in (stage.get("params") or {}).items()
            }
            cmd = stage["cmd"] if isinstance(stage["cmd"], str) else " && ".join(stage["cmd"])
            # mypy takes a star for all that is left
            entries.append(Entry(name, where, cmd, *told, params))  # type: ignore[call-arg]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            "a dvc.lock is not one",
            where=where,
            found=f"{type(error).__name__}: {error}",
            remedy="`git checkout` it, or run `dvc repro`",
        ) from None
    return entries


def read_added(where: str, content: dict[Any, Any]) -> Entry:
    """What `dvc add` says of captures, which no stage makes, as an entry that makes them.
    DataError where it says nothing."""
    try:
        outs = {
            posixpath.join(posixpath.dirname(where), out["path"]): out["md5"]
            for out in content["outs"]
        }
    except (KeyError, TypeError) as error:
        raise DataError(
            "a .dvc file is not one",
            where=where,
            found=f"{type(error).__name__}: {error}",
            remedy="`git checkout` it",
        ) from None
    return Entry(
        posixpath.basename(where),
        where,
        f"dvc add {posixpath.basename(where).removesuffix('.dvc')}",
        {},
        outs,
        {},
    )


def read_data(file: Path) -> dict[Any, Any]:
    """A YAML mapping from a file; DataError where it is none."""
    try:
        return read_text(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise DataError("the file is not UTF-8", where=str(file), found=str(error)) from None


def read_text(text: str, where: str) -> dict[Any, Any]:
    """A YAML mapping from text; DataError where it is none. Locks are long and
    read by every audit, so that each text is parsed once a process."""
    try:
        content = copy.deepcopy(kept(text))
    except (YAMLError, ValueError) as error:
        raise DataError(
            "it is not plain YAML", where=where, found=" ".join(str(error).split())
        ) from None
    return content if isinstance(content, dict) else {}


class Locks:
    """The spine's dvc.lock and those of the experiments named."""

    def __init__(self, root: Path, *experiments: str):
        self.root = root
        self.entries: list[Entry] = []
        self.errors: list[DataError] = []
        self.declared: dict[str, dict[Any, Any]] = {}
        for file in (
            root / "dvc.lock",
            *sorted(root.glob("data/*/dvc.lock")),
            *(root / "reports" / name / "dvc.lock" for name in experiments),
        ):
            if file.exists():
                try:
                    where, declared = file.relative_to(root).as_posix(), file.with_name("dvc.yaml")
                    self.declared[where] = read_data(declared) if declared.exists() else {}
                    self.entries += read_lock(where, read_data(file), self.declared[where])
                except DataError as error:
                    self.errors.append(error)
        for file in sorted(root.glob("data/*/raw/*.dvc")):
            try:
                self.entries.append(read_added(file.relative_to(root).as_posix(), read_data(file)))
                self.declared[self.entries[-1].lock] = {}
            except DataError as error:
                self.errors.append(error)

    @cached_property
    def _made(self) -> dict[str, Entry]:
        return {out: entry for entry in self.entries for out in entry.outs}

    def producer(self, path: str) -> Entry | None:
        """The stage whose output `path` is, or lies in."""
        while path and path not in self._made:
            path = posixpath.dirname(path)
        return self._made.get(path)


class Cache:
    """DVC's local object store, which may lie elsewhere (`cache.dir` in .dvc/config or
    .dvc/config.local)."""

    def __init__(self, root: Path):
        self.folder = root / ".dvc" / "cache"
        self._known: dict[str, bool | None] = {}
        for name in ("config", "config.local"):
            parser = configparser.ConfigParser(interpolation=None, strict=False)
            try:
                parser.read(root / ".dvc" / name, encoding="utf-8")
            except configparser.Error:
                continue
            if parser.has_option("cache", "dir"):
                self.folder = root / ".dvc" / parser.get("cache", "dir")

    def path(self, md5: str) -> Path:
        """Where the object of that name lies (it may be absent)."""
        return self.folder / "files" / "md5" / md5[:2] / md5[2:]

    def whole(self, md5: str) -> bool | None:
        """Whether the object's bytes are what its name says; None when it is not here. Each is
        read once."""
        if md5 not in self._known:
            self.learn(md5, digests(self.path(md5), sha=False))
        return self._known[md5]

    def learn(self, md5: str, both: tuple[str, str] | None) -> None:
        """Take what has been read of the object of that name."""
        self._known[md5] = both and both[1] == md5.removesuffix(".dir")

    def names(self) -> list[str]:
        """Every object that is here."""
        return sorted(file.parent.name + file.name for file in self.folder.glob("files/md5/??/*"))

    def manifest(self, md5: str) -> dict[str, str] | None:
        """A folder's manifest as {relpath: md5}; None when it is not here or is not whole."""
        if not self.whole(md5):
            return None
        return {entry["relpath"]: entry["md5"] for entry in json.loads(self.path(md5).read_bytes())}
