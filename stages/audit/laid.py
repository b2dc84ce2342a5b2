"""A project in a temporary folder, in which a stage's own command is run again.

It holds the code, settings and declarations of the project, and links to what is asked for; what a
command writes stays in it. Code is copied without what is no source of it (cached bytecode,
compiled kernels), so that a process there loads the project's files and nothing else; bytecode of
these files is cached in the folder, for the next command there.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stages import params
from stages.audit.commands import Command
from stages.code import PACKAGE
from stages.errors import TradewindError
from stages.files import read_json

CODE = shutil.ignore_patterns("__pycache__", "*.pyc", "*.pyo", "*.nbi", "*.nbc")
GROUND = ("constraints.txt", "data/published", "data/spreads")
DECLARED = ("dvc.yaml", "data/*/dvc.yaml", "reports/*/*.yaml", "reports/*/*.csv")
# What may make a process load other files than the project's, and what would kill it on purpose.
FOREIGN = (
    "FAULT",
    "NUMBA_CACHE_DIR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
)
ANSWER = ".again.json"


class Unmade(TradewindError):
    """A command failed; the message says which and how it ended."""


class Laid:
    """The project at `root`, laid out in `folder`."""

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root.resolve(), folder
        shutil.copytree(self.root / PACKAGE, folder / PACKAGE, ignore=CODE)
        shutil.copy(self.root / params.WHOLE, folder / params.WHOLE)
        declared = [file for pattern in DECLARED for file in sorted(self.root.glob(pattern))]
        for path in (*GROUND, *(file.relative_to(self.root).as_posix() for file in declared)):
            self.link(path)

    def link(self, path: str) -> None:
        """A link to a file or folder of the project, where it is there and nothing is here."""
        here, there = self.folder / path, self.root / path
        if there.exists() and not here.exists():
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(there.resolve())

    def link_all(self, paths: Iterable[str]) -> None:
        """Links to all of them, folders before what lies in them."""
        for path in sorted(paths, key=lambda path: (path.count("/"), path)):
            self.link(path)

    def add_threads(self, count: int) -> None:
        """Let every stage here compute with so many threads more."""
        for file in (self.folder / params.WHOLE, *(self.folder / params.PARTS).glob("*.yaml")):
            told = params.read_yaml(file)
            training = told.get("training") if isinstance(told, dict) else None
            if isinstance(training, dict) and isinstance(training.get("threads"), int):
                training["threads"] += count
                file.write_text(json.dumps(told, default=str), encoding="utf-8")  # JSON is YAML

    def run(self, command: Command, *more: str) -> None:
        """Run a stage's command here. Unmade with its last words where it fails."""
        environment = {key: value for key, value in os.environ.items() if key not in FOREIGN}
        done = subprocess.run(
            [sys.executable, "-m", command.module, *command.words, *more],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise Unmade(
                f"it ended with exit code {done.returncode}", where=str(command), found=last.strip()
            )

    def cell(self, command: Command, cell: str) -> Any:
        """A cell's entry as its evaluation writes it, computed again here. Unmade as for `run`."""
        (self.folder / ANSWER).unlink(missing_ok=True)
        self.run(command, "--cell", cell, "--out", ANSWER)
        return read_json(self.folder / ANSWER)
