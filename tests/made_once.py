"""What many tests need and what is the same each time: made once, copied from then on.

An empty DVC project as `dvc init` leaves it (a second of work each time), and the SQLite database
of a Prefect server as its first start leaves it (every migration from the first on, eight
seconds).
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

QUIET = {
    "DVC_NO_ANALYTICS": "1",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
}


def run(*words: str, cwd: Path, **more: str) -> None:
    """A module's command with what a test's process sets for Prefect left out."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT")}
    subprocess.run(
        [sys.executable, "-m", *words],
        cwd=cwd,
        env=clean | QUIET | more,
        check=True,
        capture_output=True,
    )


@cache
def _initialised(scm: bool) -> dict[str, bytes]:
    """What `dvc init` writes, but git's index."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if scm:
            subprocess.run(["git", "init", "-q"], cwd=place, check=True)
        run("dvc", "init", "-q", *([] if scm else ["--no-scm"]), cwd=place)
        return {
            name.relative_to(place).as_posix(): name.read_bytes()
            for name in place.rglob("*")
            if name.is_file() and name.relative_to(place).parts[0] in (".dvc", ".dvcignore")
        }


def dvc_init(folder: Path, scm: bool = True) -> None:
    """As `dvc init` (`--no-scm`) in a folder, which leaves a .dvcignore as it is; with git, what it
    makes is staged."""
    for name, content in _initialised(scm).items():
        if not (folder / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    if scm:
        kept = [".dvc/.gitignore", ".dvc/config", ".dvcignore"]
        subprocess.run(["git", "add", *kept], cwd=folder, check=True)


def shared(base: Path, name: str, make: Callable[[Path], None]) -> Path:
    """What `make` writes to the path that it is given: once for all workers of a test session,
    whose temporary folder is `base`; not to be changed."""
    base = base.parent if base.name.startswith("popen-") else base
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / f"{name}-ready").exists():
            shutil.rmtree(base / name, ignore_errors=True)
            make(base / name)
            (base / f"{name}-ready").touch()
    return base / name


def prefect_home(folder: Path) -> None:
    """A Prefect home whose database is migrated."""
    folder.mkdir()
    run("prefect", "server", "database", "upgrade", "-y", cwd=folder, PREFECT_HOME=str(folder))
    assert (folder / "prefect.db").is_file()
