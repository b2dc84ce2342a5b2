"""Every file asked for and every object of DVC's cache read once, from disk, on as many threads as
there are cores.

SHA-256 (the records' word) and MD5 (DVC's) come from one pass over a file; a file that is a
workspace path and a cache object at once (hard links) is read once for both. hashlib lets go of
Python's lock while it works, so threads do; small files go to them in batches.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from stages.audit.hashes import Bytes, Cache, digests

BATCH = 1 << 22  # bytes, or this many files at most:
FILES = 64


@dataclass
class Task:
    """One file on disk: the paths and the cache objects that it is."""

    file: Path
    size: int
    paths: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    most: int | None = None  # bytes: of a longer file the size alone is told


@dataclass(frozen=True)
class Swept:
    """How many paths and objects were found, the bytes read for them, and the processor's time."""

    files: int
    objects: int
    bytes: int
    seconds: float = 0.0


def tasks_of(contents: Bytes, cache: Cache, paths: list[str], names: list[str]) -> list[Task]:
    """The files behind the paths and names, the largest first; what is not there is told to
    `contents` and has no task."""
    found: dict[tuple[int, int], Task] = {}
    for path, name in (*((path, "") for path in paths), *(("", name) for name in names)):
        file = contents.file(path) if path else cache.path(name)
        try:
            stat = os.stat(file)
        except (FileNotFoundError, NotADirectoryError):
            contents.learn(path, None)
            continue
        task = found.setdefault((stat.st_dev, stat.st_ino), Task(file, stat.st_size))
        task.paths.extend([path] if path else [])
        task.names.extend([name] if name else [])
    for task in found.values():
        known = [contents.most.get(path) for path in task.paths]
        task.most = max((size for size in known if size is not None), default=None)
        if task.names or None in known:
            task.most = None
        elif task.most is not None and task.size > task.most:
            task.size = 0
    return sorted(found.values(), key=lambda task: -task.size)


def batches_of(tasks: list[Task]) -> list[list[Task]]:
    """The tasks in groups that are worth a thread's while."""
    groups: list[list[Task]] = [[]]
    for task in tasks:
        if groups[-1] and (
            len(groups[-1]) == FILES or sum(one.size for one in groups[-1]) + task.size > BATCH
        ):
            groups.append([])
        groups[-1].append(task)
    return groups


def sweep(
    contents: Bytes, cache: Cache, paths: list[str], names: list[str], threads: int | None = None
) -> Swept:
    """Read them all; `contents` and `cache` then know them. DataError where a file cannot be
    read."""
    tasks = tasks_of(contents, cache, paths, names)
    total, seconds = sum(task.size for task in tasks), 0.0
    with (
        tqdm(total=total, desc="hashing", unit="B", unit_scale=True, disable=None) as bar,
        ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool,
    ):
        for batch, read, took in pool.map(hashed, batches_of(tasks)):
            seconds += took
            for task, both in zip(batch, read, strict=True):
                for path in task.paths:
                    contents.learn(path, both)
                for name in task.names:
                    cache.learn(name, both)
                bar.update(task.size)
    return Swept(
        sum(len(task.paths) for task in tasks),
        sum(len(task.names) for task in tasks),
        total,
        seconds,
    )


def hashed(batch: list[Task]) -> tuple[list[Task], list[tuple[str, str] | None], float]:
    """A group of tasks, both sums of each, and what they took of the processor in s."""
    before = time.thread_time()
    read = [digests(task.file, bool(task.paths), task.most) for task in batch]
    return batch, read, time.thread_time() - before
