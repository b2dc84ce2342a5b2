"""Child processes of the flows: their environment, a leash, and one lock for all who would drive
the DAG.

A killed parent must leave nothing behind that writes, so every child is started through this file:
it asks Linux for SIGKILL when its parent dies, then becomes the command. Telemetry of every tool is
off, Prefect's home is `.work/prefect` (nothing goes to the user's home), and the interpreter's own
folder leads PATH, so that `python` in a stage is this one. Run as a program (`process.py PARENT
COMMAND ...`) this file is the leash, and needs nothing but the standard library.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

WORK = Path(".work")
DVC = (sys.executable, "-m", "dvc")
# set for children of the lock's holder, so that one flow command may stand inside another
HELD = "TRADEWIND_FLOW"
ARITHMETIC = "TRADEWIND_ARITHMETIC"  # what the stages compute in; every child inherits it
JOBS = "TRADEWIND_JOBS"  # how many stages share this machine's cores
QUIET = {
    "DVC_NO_ANALYTICS": "1",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
}
UNLESS_SAID = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    # Prefect waits 20 s for its server to start: a slow machine that also trains takes longer
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
}


class FlowError(Exception):
    """A flow cannot go on; `exit_code` is 1 for a failed run, 2 for the user's mistake, 75 when
    another run holds the place."""

    def __init__(self, message: str, exit_code: int = 1):
        super().__init__(message)
        self.exit_code = exit_code


def ended_by(handler: Callable[[int, FrameType | None], Any]) -> None:
    """Let the handler end this process on SIGTERM, and on SIGHUP, a terminal's end, unless that
    is ignored (nohup)."""
    signal.signal(signal.SIGTERM, handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, handler)


def environment() -> dict[str, str]:
    """This process' environment with telemetry off, Prefect at home in the work folder, and this
    interpreter first on PATH."""
    paths = [
        str(Path(sys.executable).parent),
        *os.environ.get("PATH", os.defpath).split(os.pathsep),
    ]
    return (
        UNLESS_SAID
        | dict(os.environ)
        | QUIET
        | {
            "PREFECT_HOME": str((WORK / "prefect").absolute()),
            "PATH": os.pathsep.join(dict.fromkeys(paths)),
        }
    )


@contextlib.contextmanager
def telling(name: str, value: str) -> Iterator[None]:
    """Have children find the value in their environment, for a while: ARITHMETIC, what they compute
    in ("": the common one); JOBS, how many stages run at once on this machine."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def leashed(command: list[str]) -> list[str]:
    """The command line that runs `command` as a child which does not outlive this process (nor
    the thread that starts it)."""
    return [sys.executable, "-IS", str(Path(__file__).absolute()), str(os.getpid()), *command]


@contextlib.contextmanager
def locked(name: str, taken: str) -> Iterator[None]:
    """Hold the lock of that name. FlowError 75 in the words of `taken` where another holds it, 2
    where the work folder cannot be written."""
    place = WORK / "locks" / name
    with contextlib.ExitStack() as held:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(held.enter_context(place.open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FlowError(taken, 75) from None
        except OSError as error:
            raise FlowError(
                f"{place} cannot be written: {error.strerror}\n"
                f"  remedy: let your user write into {WORK}/, or work in a clone of your own",
                2,
            ) from None
        yield


@contextlib.contextmanager
def only_one() -> Iterator[bool]:
    """Hold the flows' lock; yields False inside a holder's child, where there is nothing to do.
    FlowError as `locked`."""
    if os.environ.get(HELD):
        yield False
        return
    with locked("flow", "already running: another flow drives this project; wait for it to end"):
        os.environ[HELD] = "1"
        try:
            yield True
        finally:
            del os.environ[HELD]


def die_with(parent: int) -> None:
    """End this process by SIGKILL when its parent dies or has died."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, Linux only; kept over exec
    if os.getppid() != parent:  # it died before the line above
        os.kill(os.getpid(), signal.SIGKILL)


def become(parent: int, command: list[str]) -> None:
    """Ask for SIGKILL at the parent's death, then run the command in this process."""
    die_with(parent)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"error: {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)  # a shell's codes


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
