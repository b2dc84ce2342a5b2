"""DVC's cache as it names and keeps what lies in a project."""

import json
from pathlib import Path

from stages.audit import hashes


def shelved(root: Path, contents: hashes.Bytes, path: str) -> str:
    """The MD5 by which DVC names a file or folder as it is, put into the cache under it."""

    def keep(md5: str, content: bytes) -> str:
        place = hashes.Cache(root).path(md5)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return md5

    if not (root / path).is_dir():
        return keep(contents.md5(path), (root / path).read_bytes())
    entries = contents.manifest(path)
    for one in entries:
        keep(one["md5"], (root / path / one["relpath"]).read_bytes())
    return keep(hashes.manifest_md5(entries), json.dumps(entries, sort_keys=True).encode())


def object_of(root: Path, path: str) -> Path:
    """The cache object of a file."""
    return hashes.Cache(root).path(hashes.Bytes(root).md5(path))
