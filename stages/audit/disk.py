"""Every byte of the chain read from disk and compared with the records, with dvc.lock and with
DVC's cache.

No time stamp, file mode or state database is believed. A file or cache object that is not here
makes the audit inconclusive; one with other bytes fails it and voids every metric that rests on it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from stages import records
from stages.audit.case import PULL, Case
from stages.audit.finding import Problem
from stages.audit.hashes import Cache, manifest_md5


def contents(case: Case) -> Iterator[Problem]:
    """Each file's SHA-256 is the recorded one."""
    for path in tqdm(sorted(case.chain.files), desc="hashing", unit="file", disable=None):
        described, found = case.file_record(path), case.bytes.sha256(path)
        if described and found and found != described["sha256"]:
            yield case.fails(
                path,
                f"its bytes are not those recorded: SHA-256 {found[:12]}, recorded "
                f"{described['sha256'][:12]}",
                broken=True,
            )


def objects(case: Case, cache: Cache | None = None) -> Iterator[Problem]:
    """Each file's MD5 is what dvc.lock's manifest names, and the cache object of that name holds
    those bytes."""
    outs: dict[Any, Any]
    cache, outs = cache or Cache(case.root), {}
    for path in sorted(case.chain.files):
        entry = case.locks.producer(path)
        out = entry.out(path) if entry else None
        if out:
            outs.setdefault(out, []).append(path)
    for (out, md5), paths in outs.items():
        yield from (
            folder(case, cache, out, md5, paths)
            if md5.endswith(".dir")
            else single(case, cache, out, md5)
        )


def single(case: Case, cache: Cache, out: str, md5: str) -> Iterator[Problem]:
    """An output that is one file (in git, or cached)."""
    found = case.bytes.md5(out)
    if found and found != md5:
        yield case.fails(out, f"its MD5 is {found[:12]}, dvc.lock says {md5[:12]}", broken=True)
    if cache.whole(md5) is False:
        yield case.fails(
            out, f"its object in DVC's cache is damaged ({cache.path(md5)})", broken=True
        )


def folder(case: Case, cache: Cache, out: str, md5: str, paths: list[str]) -> Iterator[Problem]:
    """An output that is a folder: its manifest, then the chain's files in it."""
    manifest = cache.manifest(md5)
    if manifest is None:
        if cache.whole(md5) is False:
            yield case.fails(
                out, f"its manifest in DVC's cache is damaged ({cache.path(md5)})", broken=True
            )
        elif not all(map(case.kept, paths)):  # DVC need not hold a copy of what is in git
            yield Problem(
                "INCONCLUSIVE",
                out,
                f"its manifest {md5} is not in DVC's cache; {PULL}",
                case.producer(out),
            )
        if (
            all(case.bytes.md5(path) for path in paths)
            and manifest_md5(case.bytes.manifest(out)) != md5
        ):
            yield case.fails(out, f"the folder's files are not those dvc.lock names ({md5[:12]})")
        return
    for path in paths:
        wanted, found = manifest.get(path.removeprefix(out + "/")), case.bytes.md5(path)
        if found and wanted is None:
            yield case.fails(
                path, f"dvc.lock's manifest does not list it ({md5[:12]})", broken=True
            )
        elif found and found != wanted:
            yield case.fails(
                path,
                f"its MD5 is {found[:12]}, dvc.lock's manifest says {wanted[:12]}",
                broken=True,
            )
        whole = cache.whole(wanted) if wanted else True
        if whole is False:
            yield case.fails(
                path, f"its object in DVC's cache is damaged ({cache.path(wanted)})", broken=True
            )
        elif whole is None and not case.kept(path):
            yield Problem(
                "INCONCLUSIVE",
                path,
                f"its object {wanted} is not in DVC's cache; {PULL}",
                case.producer(path),
            )


def strays(case: Case) -> Iterator[Problem]:
    """Each file in a stage's place is one that its record says it wrote."""
    for node in case.chain.nodes:
        places = [case.root / home for home in node.homes if (case.root / home).exists()]
        for file in records.files_in(places) if not node.error else ():
            path = file.relative_to(case.root).as_posix()
            if path not in node.record["outputs"]:
                yield case.fails(
                    path, f"the record of {node.producer} does not name it: put there by hand?"
                )


def astray(case: Case) -> Iterator[Problem]:
    """No file of the chain is reached by a link that leads out of the project, but into DVC's
    cache."""
    root, cache = case.root.resolve(), Cache(case.root).folder.resolve()
    for path in sorted(case.chain.files):
        end = Path(os.path.realpath(case.root / path))
        if not (end.is_relative_to(root) or end.is_relative_to(cache)):
            yield case.fails(path, f"a link leads out of the project: {end}", broken=True)


ALL = (contents, objects, strays, astray)
