"""What travels between home and a worker (flows/distant.py): lock entries, and the outputs that git
keeps, each read here and written there by hand.

A lock is cut and joined as text, so that the entries which nobody touches stay as DVC wrote them.
Nothing is written outside the project or into its tools' folders.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ruamel.yaml import YAML

from flows.process import FlowError, leashed
from flows.profiles import write

EMPTY = "schema: '2.0'\nstages:\n"


def git(*words: str, given: str | None = None, fine: tuple[int, ...] = (0,)) -> str:
    """A git command's standard output. FlowError when its exit code is none of the fine ones."""
    done = subprocess.run(
        leashed(["git", *words]), input=given, capture_output=True, text=True, check=False
    )
    if done.returncode not in fine:
        raise FlowError(
            f"`git {' '.join(words)}` in {Path.cwd()} failed: {done.stderr.strip()[-2000:]}", 2
        )
    return done.stdout


def place(stage: str) -> tuple[Path, str]:
    """A stage's dvc.yaml and its name there."""
    file, colon, name = stage.rpartition(":")
    return (Path(file), name) if colon else (Path("dvc.yaml"), stage)


def entries(lock: Path) -> dict[str, str]:
    """A dvc.lock's entries as they stand there; empty when there is none."""
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    parts = re.split(r"(?m)^  (\S.*):\n", text)
    return {name.strip("'\""): block for name, block in zip(parts[1::2], parts[2::2], strict=True)}


def insert(lock: Path, name: str, block: str) -> None:
    """Put an entry in the place of the one with its name, or at the end; the others stay as they
    are."""
    text = lock.read_text(encoding="utf-8") if lock.exists() else EMPTY
    text = (
        EMPTY
        if not re.search(r"(?m)^stages:$", text)
        else text
        if text.endswith("\n")
        else text + "\n"
    )
    old = re.compile(rf"(?m)^  ['\"]?{re.escape(name)}['\"]?:\n(?:    .*\n)*")
    new = f"  {name}:\n{block}"
    write(lock, old.sub(lambda _: new, text, count=1) if old.search(text) else text + new)


def outputs(stage: str, block: str) -> list[str]:
    """The paths of a stage's outputs, from the project's root."""
    file, name = place(stage)
    declared = YAML(typ="safe").load(file)["stages"].get(name.partition("@")[0]) or {}
    folder = str((declared.get("do") or declared).get("wdir", "."))
    if "${" in folder:
        raise FlowError(
            f"{file}: the stage {name} has the wdir {folder!r}; on machines a wdir must be written "
            "out",
            2,
        )
    outs = YAML(typ="safe").load(block).get("outs", [])
    return [inside(os.path.normpath(file.parent / folder / out["path"])) for out in outs]


def inside(path: str) -> str:
    """The path, when it lies within the project and not in its tools' folders. FlowError when
    not."""
    parts = PurePosixPath(path).parts
    if (
        not parts
        or PurePosixPath(path).is_absolute()
        or ".." in parts
        or parts[0] in {".git", ".dvc"}
    ):
        raise FlowError(f"{path}: expected a path inside the project")
    return path


def ignored(paths: Iterable[str]) -> set[str]:
    """Those that git ignores: DVC keeps them. The others are git's."""
    paths = list(paths)
    return (
        set(git("check-ignore", "-z", "--stdin", given="\0".join(paths), fine=(0, 1)).split("\0"))
        & set(paths)
        if paths
        else set()
    )


def kept(paths: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """The outputs that git keeps, each with its files ("." for the output itself) and their
    bytes."""
    paths = list(paths)
    found = {}
    for path in sorted(set(paths) - ignored(paths)):
        root = Path(path)
        files = (
            [root] if root.is_file() else sorted(file for file in root.rglob("*") if file.is_file())
        )
        found[path] = {file.relative_to(root).as_posix(): file.read_bytes() for file in files}
    return found


def bring(outs: dict[str, dict[str, bytes]]) -> None:
    """Write outputs that git keeps, each file at once; other files in their folders are removed."""
    for path, files in outs.items():
        root = Path(inside(path))
        if "." in files:
            if root.is_dir():
                shutil.rmtree(root)
            replace(root, files["."])
            continue
        if root.is_file():
            root.unlink()
        for name, data in files.items():
            replace(root / inside(name), data)
        for file in [
            file
            for file in root.rglob("*")
            if file.is_file() and file.relative_to(root).as_posix() not in files
        ]:
            file.unlink()


def replace(path: Path, data: bytes) -> None:
    """Write a file by another and a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    other.write_bytes(data)
    os.replace(other, path)


def ignore(paths: Iterable[str]) -> None:
    """Let git ignore what DVC keeps, as DVC does where a stage runs."""
    paths = list(paths)
    for path in sorted(set(paths) - ignored(paths)):
        list_ = Path(path).parent / ".gitignore"
        before = list_.read_text(encoding="utf-8") if list_.exists() else ""
        write(
            list_,
            before
            + ("\n" if before and not before.endswith("\n") else "")
            + f"/{Path(path).name}\n",
        )
