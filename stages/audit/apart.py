"""The breakdowns of an experiment at a commit: its record and lock are in git, their bytes in the
working copy or DVC's cache, and believed only if they have the recorded SHA-256."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stages.audit.hashes import Cache
from stages.errors import DataError
from stages.files import json_of, read_json, sha256
from stages.tables import parts

# An item of a dvc.lock or .dvc file, its keys in any order; reading the whole YAML of a long lock
# would take longer than all else.
ITEM = re.compile(r"\n(?= *- )")
PATH = re.compile(
    r"\bpath:\s+(.+?)(?=, \w+: |,?\}?$)", re.MULTILINE
)  # DVC puts a long path on a line of its own
MD5 = re.compile(r"\bmd5: ([0-9a-f]{32}(?:\.dir)?)(?![0-9a-f])")
Read = Callable[[str], bytes | None]  # the bytes of a commit's file, None where it has none


def locked(lock: bytes) -> Iterator[tuple[str, str]]:
    """Each (path, MD5) that a lock names."""
    for item in ITEM.split(lock.decode("utf-8", "replace")):
        path, md5 = PATH.search(item), MD5.search(item)
        if path and md5:
            yield path[1], md5[1]


def file_of(root: Path, home: str, read: Read) -> Path | None:
    """A file with the bytes of HOME/breakdowns.json at a commit; None where it had none, or they
    are not here."""
    path, record = f"{home}/{parts.BREAKDOWNS}", read(f"{home}/records/tabulate.json")
    try:
        digest = json_of(record or b"{}", path)["outputs"][path]["sha256"]
    except (DataError, KeyError, TypeError):
        return None
    lock = read(f"{home.rpartition('/')[0]}/dvc.lock") or b""
    names = [md5 for name, md5 in locked(lock) if name == path]
    places = [root / path, *map(Cache(root).path, names)]
    return next((file for file in places if file.is_file() and sha256(file) == digest), None)


def numbers(root: Path, home: str, read: Read) -> tuple[dict[str, Any], bool]:
    """The numbers of an experiment at a commit as far as they are here, and whether that is all
    of them. DataError for a file that is no JSON."""
    path = f"{home}/{parts.METRICS}"
    metrics = json_of(read(path) or b"{}", path)
    file = None if parts.whole(metrics) else file_of(root, home, read)
    known = bool(file) or parts.whole(metrics) or not metrics
    if not metrics:
        return metrics, known
    return parts.joined(metrics, read_json(file) if file else None, path), known
