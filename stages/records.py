"""The run record: which bytes, parameters, code, seed and environment made which bytes.

Every stage writes one, into git. A record holds nothing that changes from run to run on one machine
(no clock, no host name), so a re-run gives the same bytes; its `code` is
what stages.code.recorded says of the modules it rests on; durations go to `.work/durations.jsonl`.
Audit walks from record to record by path and SHA-256.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from stages.arithmetic import probe
from stages.errors import typed
from stages.files import WORK, sha256

LIBRARIES = (
    "torch",
    "numpy",
    "polars",
    "pyarrow",
    "scipy",
    "numba",
    "great-expectations",
    "safetensors",
    "ppigrf",
)


def describe(path: Path) -> dict[str, Any]:
    """sha256 and size of one file, read from disk."""
    return {"sha256": sha256(path), "bytes": path.stat().st_size}


def files_in(paths: Iterable[str | Path]) -> list[Path]:
    """All regular files under the given files and folders, sorted, without caches and DVC's
    .gitignore."""
    found: set[Path] = set()
    for path in map(Path, paths):
        found.update(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else found.add(
            path
        )
    return sorted(p for p in found if p.name != ".gitignore" and "__pycache__" not in p.parts)


def key(*parts: Any) -> str:
    """Hash of everything that decides a run's bits: the name of its place in `.work`."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def environment(device: str = "cpu", threads: int | None = None) -> dict[str, Any]:
    """Library versions, arithmetic, machine kind, device and threads: what an audit needs to know
    where a difference comes from.

    What changes no bit is left out (Python's patch release, torch's build), lest a record should
    differ where its outputs do not."""
    versions: dict[str, str | None] = {}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            versions[name] = None
    constraints = Path("constraints.txt")
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "arithmetic": probe.line(),
        "machine": platform.machine(),
        "system": platform.system(),
        "libraries": versions,
        "constraints": sha256(constraints) if constraints.exists() else None,
        "device": device,
        "threads": threads,
    }


def make(
    stage: str,
    cell: str,
    *,
    inputs: Iterable[str | Path],
    outputs: dict[str, Path],
    params: dict[str, Any],
    code: dict[str, Any],
    seed: int | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> dict[str, Any]:
    """A record. `outputs` maps each final path (as it will be named) to the file that holds its
    bytes now."""
    return {
        "stage": stage,
        "cell": cell,
        "seed": seed,
        "params": params,
        "inputs": {p.as_posix(): describe(p) for p in files_in(inputs)},
        "outputs": {name: describe(path) for name, path in sorted(outputs.items())},
        "code": code,
        "environment": environment(device, threads),
    }


def outputs_of(temporary: Path, final: str | Path) -> dict[str, Path]:
    """Name the files of a temporary folder by the path they will have under `final`."""
    return {(Path(final) / p.relative_to(temporary)).as_posix(): p for p in files_in([temporary])}


@contextmanager
def timed(stage: str, cell: str) -> Iterator[None]:
    """Append the wall-clock duration of a stage to `.work/durations.jsonl` (never to a hashed
    output). What a library says of damaged bytes, a full disk or too little memory is told as an
    error of ours (errors.typed)."""
    start = time.monotonic()
    try:
        yield
    except Exception as error:
        if (ours := typed(error)) is error:
            raise
        raise ours from None
    WORK.mkdir(exist_ok=True)
    line = json.dumps(
        {
            "stage": stage,
            "cell": cell,
            "seconds": round(time.monotonic() - start, 3),
            "pid": os.getpid(),
        }
    )
    with (WORK / "durations.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")


def location(
    stage: str,
    profile: str,
    dataset: str | None = None,
    *,
    experiment: str | None = None,
    cell: str | None = None,
) -> Path:
    """Where a record lives, in git, beside (never inside) what it describes: else a new comment
    upstream would change the bytes of an output and re-run everything downstream of it."""
    home = Path("data") if experiment is None else Path("reports") / experiment
    name = ".".join(part for part in (dataset, cell, stage) if part)
    return home / profile / "records" / f"{name}.json"
