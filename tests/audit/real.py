"""This repository with its mini results, copied in a second, and what makes a copy agree with a
forgery: records, locks, DVC's cache and a commit.

A copy is a clone of HEAD that borrows git's objects; data, results and cache are hard links, so a
forgery puts new files in the place of old ones and never writes into them.
"""

import json
import os
import posixpath
import shutil
import subprocess
from pathlib import Path

import pytest
from cached import shelved

from stages import records
from stages.audit import hashes

HOME = Path(__file__).parents[2]
PROFILE = "mini"
KEPT = ("raw", "decoded", "prepared", "contexts")  # of data/mini, in DVC's cache
RECORDS = (f"data/{PROFILE}/records/*.json", f"reports/*/{PROFILE}/records/*.json")
AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(root: Path, *words: str) -> str:
    """A git command that must succeed."""
    command = ["git", "-C", str(root), *AUTHOR, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def put(one: Path | str, other: Path | str) -> None:
    """A hard link to a file; a copy, where it cannot be."""
    try:
        os.link(one, other)
    except OSError:
        shutil.copy2(one, other)


def link(source: Path, target: Path) -> None:
    """A folder whose files are `put` in another's place."""
    shutil.copytree(source, target, copy_function=put, dirs_exist_ok=True)


def outputs() -> list[str]:
    """The folders and files of mini that git does not hold."""
    results = [
        f"reports/{file.parent.name}/{PROFILE}/{name}"
        for file in sorted(HOME.glob("reports/*/dvc.yaml"))
        for name in ("runs", "evaluated", "sweeps", "breakdowns.json")
    ]
    return [*(f"data/{PROFILE}/{name}" for name in KEPT), *results]


def clone(target: Path) -> Path:
    """The project at HEAD with the results that stand here, committed where another arithmetic
    made other ones; the test is skipped where these are not here."""
    cache = hashes.Cache(HOME).folder
    missing = [name for name in outputs()[:3] if not (HOME / name).is_dir()]
    if missing or not cache.is_dir():
        pytest.skip(f"results of mini are not here ({', '.join(missing) or cache}): `make repro`")
    git(HOME, "clone", "-q", "--shared", "--no-tags", str(HOME), str(target))
    for name in outputs():
        if (HOME / name).is_dir():
            link(HOME / name, target / name)
        elif (HOME / name).is_file():
            put(HOME / name, target / name)
    link(cache, target / ".dvc/cache")
    results = ("data", "reports", "dvc.lock")
    if changed := git(HOME, "diff", "--name-only", "HEAD", "--", *results).splitlines():
        for name in changed:
            shutil.copy2(HOME / name, target / name)
        git(target, "add", "--", *changed)
        git(target, "commit", "-q", "-m", "a run on another arithmetic")
    return target


def copy(source: Path, target: Path) -> Path:
    """A copy of a clone for one forgery."""
    shutil.copytree(source / ".git", target / ".git", symlinks=True)
    for name in sorted(file.name for file in source.iterdir() if file.name != ".git"):
        if (source / name).is_dir():
            link(source / name, target / name)
        else:
            shutil.copy2(source / name, target / name)
    return target


def write(root: Path, path: str, content: bytes | str) -> None:
    """A file put in the place of another."""
    file = root / path
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def change(root: Path, path: str, work) -> None:
    """A JSON file edited, written as the project writes JSON."""
    content = json.loads((root / path).read_text())
    work(content)
    write(root, path, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def agree(root: Path, *paths: str) -> None:
    """Make gates, records, locks, DVC's cache and a commit agree with files as they are."""
    paths = (*paths, *judged(root, paths))
    changed = {*paths}
    told = {path: records.describe(root / path) for path in paths if (root / path).is_file()}
    for file in (file for pattern in RECORDS for file in sorted(root.glob(pattern))):
        text = file.read_text()
        if any(f'"{path}"' in text for path in told):
            record = json.loads(text)
            for side in (record["inputs"], record["outputs"]):
                side.update({path: told[path] for path in told if path in side})
            name = file.relative_to(root).as_posix()
            changed.add(name)
            write(root, name, json.dumps(record, indent=2, sort_keys=True) + "\n")
    relock(root, changed)
    commit(root)


def judged(root: Path, paths: tuple[str, ...]) -> list[str]:
    """The gates that judged files, made to have judged them as they are."""
    found = []
    for file in sorted(root.glob(f"data/{PROFILE}/validated/*.json")):
        content = json.loads(file.read_text())
        mine = {path for path in paths if path in content["judged"]}
        if mine:
            content["judged"] |= {path: records.describe(root / path)["sha256"] for path in mine}
            name = file.relative_to(root).as_posix()
            write(root, name, json.dumps(content, indent=2, sort_keys=True) + "\n")
            found.append(name)
    return found


def relock(root: Path, changed: set[str]) -> None:
    """The MD5s of the locks made those of changed files and of the folders that hold them."""
    locks = hashes.Locks(root, *(file.parent.name for file in root.glob("reports/*/dvc.lock")))
    contents = hashes.Bytes(root)
    above = {place for path in changed for place in upwards(path)}
    below = tuple(f"{path}/" for path in changed)
    named: dict[str, dict[str, str]] = {}
    for entry in locks.entries:
        for path, md5 in (*entry.deps.items(), *entry.outs.items()):
            if (path in above or path.startswith(below)) and (root / path).exists():
                named.setdefault(entry.lock, {})[md5] = shelved(root, contents, path)
    for lock, pairs in named.items():
        text = (root / lock).read_text()
        for old, new in pairs.items():
            text = text.replace(old, new)
        write(root, lock, text)


def upwards(path: str):
    """A path and the folders that it lies in."""
    while path:
        yield path
        path = posixpath.dirname(path)


def commit(root: Path) -> None:
    """Commit all that git knows or does not ignore."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "all")
