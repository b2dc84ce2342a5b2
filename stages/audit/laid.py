"""A project in a temporary folder, in which a stage's own command is run again.

Code, settings and declarations are the commit's own bytes (history.py), written there anew; data
and results are links to what is asked for. What a command writes stays in the folder. Its process
is Python's interpreter and libraries, and of the project these files alone: no variable that leads
Python or numba to other files, no sitecustomize, usercustomize or .pth, no cached bytecode, no
compiled kernels. Outside of git the files of the working copy are taken.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stages import params
from stages.audit import history, loading
from stages.audit.commands import Command
from stages.audit.hashes import Cache
from stages.audit.served import Server
from stages.code import PACKAGE
from stages.errors import DataError, TradewindError
from stages.files import read_json

GROUND = (f"{PACKAGE}/*", params.WHOLE, "constraints.txt", "data/published/*", "data/spreads/*")
DECLARED = ("dvc.yaml", "data/*/dvc.yaml", "reports/*/*.yaml", "reports/*/*.csv")
ANSWER = ".again.json"


class Unmade(TradewindError):
    """A command failed; the message says which and how it ended."""


class Laid:
    """The project at `root`, laid out in `folder`."""

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root.resolve(), folder
        self.server: Server | None = None  # of many commands; None: each has its own process
        self.cache = Cache(self.root).folder.resolve()
        for path, content in ground(self.root).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)

    def link(self, path: str) -> None:
        """A link to a file of the project, where it is there and nothing is here; of a folder, a
        folder of such links: what a command writes in it stays here, for a file is written by
        putting another in its place. Unmade where it leads out of the project and its cache; what
        does so in a folder is left out, of which the checks of bytes tell."""
        there = self.root / path
        if there.exists() and not self._within(there):
            found = str(there.resolve())
            raise Unmade("a link leads out of the project", where=path, found=found)
        if not there.is_dir():
            self._linked(path, there)
            return
        for home, inner, names in os.walk(there):
            place = Path(path, os.path.relpath(home, there))
            (self.folder / place).mkdir(parents=True, exist_ok=True)
            for name in (*names, *(one for one in inner if os.path.islink(Path(home, one)))):
                self._linked((place / name).as_posix(), Path(home, name))

    def _linked(self, path: str, there: Path) -> None:
        here = self.folder / path
        if not there.exists() or os.path.lexists(here) or not self._within(there):
            return
        here.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # another thread's
            here.symlink_to(there.resolve())

    def _within(self, there: Path) -> bool:
        """Whether a path of the project's lies in it or in its cache, links followed."""
        end = there.resolve()
        return any(end.is_relative_to(place) for place in (self.root, self.cache))

    def link_all(self, paths: Iterable[str]) -> None:
        """Links to all of them."""
        for path in sorted(paths):
            self.link(path)

    def add_threads(self, count: int) -> None:
        """Let every stage here compute with so many threads more."""
        for file in (self.folder / params.WHOLE, *(self.folder / params.PARTS).glob("*.yaml")):
            told = params.read_yaml(file)
            training = told.get("training") if isinstance(told, dict) else None
            if isinstance(training, dict) and isinstance(training.get("threads"), int):
                training["threads"] += count
                file.write_text(json.dumps(told, default=str), encoding="utf-8")  # JSON is YAML

    def run(
        self, command: Command, *more: str, mirror: Path | None = None, alone: bool = False
    ) -> None:
        """Run a stage's command here. Unmade with its last words where it fails.

        `mirror`: where pinned files are looked for, by digest, if the environment names no place;
        `alone`: in a process of its own, which nothing was loaded or made quicker in. A terminal
        is told what runs, for it may take minutes.
        """
        if sys.stderr.isatty():
            print(f"running {command} ...", file=sys.stderr, flush=True)
        if self.server is not None and mirror is None and not alone:
            words = (*command.words, *more)
            code, said = self.server.run(command.module, *words, folder=self.folder)
            self._ended(command, code, said)
            return
        environment = loading.environment()
        if mirror and mirror.is_dir():
            environment.setdefault("TRADEWIND_MIRROR", str(mirror.resolve()))
        done = subprocess.run(
            loading.process(self.folder, command.module, *command.words, *more),
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        self._ended(command, done.returncode, done.stderr)

    @staticmethod
    def _ended(command: Command, code: int, said: str) -> None:
        """Unmade with the last words of a command that failed."""
        if code:
            last = (said.strip().splitlines() or ["it said nothing"])[-1]
            raise Unmade(f"it ended with exit code {code}", where=str(command), found=last.strip())

    def cell(self, command: Command, cell: str) -> Any:
        """A cell's entry as its evaluation writes it, computed again here. Unmade as for `run`."""
        (self.folder / ANSWER).unlink(missing_ok=True)
        self.run(command, "--cell", cell, "--out", ANSWER)
        return read_json(self.folder / ANSWER)


def ground(root: Path) -> dict[str, bytes]:
    """Path -> bytes of what every command reads: of the commit, where there is one. DataError
    where Python would load another file in place of one of them."""
    names = history.modes(root)
    if names is None:
        files = {
            file.relative_to(root).as_posix(): file
            for place in (PACKAGE, "data/published", "data/spreads")
            for file in (root / place).rglob("*")
        }
        files |= {path: root / path for path in (params.WHOLE, "constraints.txt")}
        files |= {
            file.relative_to(root).as_posix(): file
            for pattern in DECLARED
            for file in root.glob(pattern)
        }
        sources = {path for path in files if not loading.compiled(path)}
        return {path: files[path].read_bytes() for path in sources if files[path].is_file()}
    wanted = {
        path: (mode, name)
        for path, (mode, name) in names.items()
        if any(fnmatchcase(path, pattern) for pattern in (*GROUND, *DECLARED))
    }
    for path, why in loading.shadows(names):
        raise DataError(why, where=path)
    for path, (mode, _) in wanted.items():
        if mode not in history.FILES:
            raise DataError("the commit holds a link or another repository", where=path)
    contents = history.blobs(root, {name for _, name in wanted.values()})
    return {path: contents[name] for path, (_, name) in wanted.items()}
