"""Writing, hashing and locking files so that a kill at any moment leaves the old state or the new
one.

Every output appears by temp file, fsync, rename, fsync of the folder. `fault(point)` is the hook
the kill tests use:
with FAULT=point:n in the environment the process sends itself SIGKILL at the n-th passage of that
point.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from stages.errors import BusyError, DataError, KeyMissing

WORK = Path(".work")  # git-ignored: locks, resume checkpoints, durations
DIGITS = 300  # of a whole number in JSON: what has more is no number that a float can be near
_passages: Counter[str] = Counter()


def fault(point: str) -> None:
    """Die by SIGKILL if the environment says FAULT=point:n and this is the n-th passage of
    `point`."""
    wanted = os.environ.get("FAULT")
    if not wanted:
        return
    name, _, n = wanted.partition(":")
    _passages[point] += name == point
    if name == point and _passages[point] == int(n or 1):
        os.kill(os.getpid(), signal.SIGKILL)


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sweep(path: Path) -> None:
    """Remove the temporary files and folders that a killed writer of `path` left beside it
    (there is one writer: see `guard`)."""
    left = re.compile(re.escape(f".{path.name}.") + r"[a-z0-9_]{8}\.tmp")
    for entry in path.parent.iterdir():
        if left.fullmatch(entry.name):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)


def _exchange(new: Path, old: Path) -> None:
    """Swap two names in one step (Linux' renameat2 with RENAME_EXCHANGE), so that no moment is
    without `old`.

    Where the file system or the system cannot, by two renames: a kill between them leaves `old`
    absent and the stage to be run again. A folder of an overlay's lower layer (a container's image)
    cannot be renamed at all (EXDEV): it is removed, and `new` takes its name.
    """
    try:
        done = (
            ctypes.CDLL(None, use_errno=True).renameat2(
                -100, os.fsencode(new), -100, os.fsencode(old), 2
            )
            == 0
        )  # AT_FDCWD
    except AttributeError:
        done = False
    if not done:
        aside = new.with_name(new.name[:-12] + "aside___.tmp")
        try:
            os.replace(old, aside)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.rmtree(old)
            os.replace(new, old)
            return
        os.replace(new, old)
        os.replace(aside, new)


@contextlib.contextmanager
def atomic_file(path: str | Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file that becomes `path` only when the block ends well. Text is UTF-8
    with LF line ends."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(fd, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)
        fault("before_rename")
        os.replace(name, path)
        fault("after_rename")
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Fill a temporary folder that becomes `path` only when the block ends well; an earlier
    `path` is replaced whole."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
    try:
        yield temporary
        for file in sorted(p for p in temporary.rglob("*") if p.is_file()):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        os.chmod(temporary, 0o755)
        fault("before_rename")
        if path.exists():
            _exchange(temporary, path)
            fault("after_rename")
            sync_folder(path.parent)
            shutil.rmtree(temporary, ignore_errors=not temporary.exists())
        else:
            os.replace(temporary, path)
            fault("after_rename")
            sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def json_text(value: Any, where: str = "") -> str:
    """Strict JSON, sorted keys, two-space indent, one trailing newline. A non-finite number is a
    DataError."""
    try:
        return (
            json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"
        )
    except ValueError as error:
        raise DataError(
            "a number that is not finite cannot be written as a metric",
            where=where,
            found=str(error),
            remedy="find the stage that produced it; give the case a name instead",
        ) from None


def write_json(path: str | Path, value: Any) -> None:
    """A file of `json_text`, whole or not at all."""
    text = json_text(value, str(path))
    with atomic_file(path, "w") as stream:
        stream.write(text)


class JsonObject(dict):  # type: ignore[type-arg]  # bare, as it stands when it runs
    """A JSON object that names its file when a key is asked for that it does not have; made and
    copied like any dict."""

    path = ""

    def __missing__(self, key: Any) -> Any:
        raise KeyMissing(
            "a key is missing in a file",
            where=self.path,
            expected=repr(key),
            found=", ".join(map(repr, list(self)[:8])) or "no key at all",
            remedy="`tradewind audit NUMBER --verify hash` says whether the file is what was "
            "written; `dvc repro` makes it anew",
        )


def json_of(text: bytes, where: str) -> Any:
    """Parsed JSON of a file `where`; NaN and Infinity, numbers of more than DIGITS digits and keys
    that stand twice are refused. DataError names the file and the line, or a key that is asked for
    in vain."""

    def refuse(constant: str) -> None:
        raise DataError(f"{constant} is not JSON", where=where)

    def json_object(pairs: list[tuple[str, Any]]) -> JsonObject:
        found = JsonObject(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
            raise DataError("a key stands twice in a JSON object", where=where, found=repr(twice))
        found.path = where
        return found

    def whole(digits: str) -> int:
        if len(digits) > DIGITS:
            text = f"one of {len(digits):,} digits"
            raise DataError("a number in JSON is none", where=where, found=text)
        return int(digits)

    try:
        return json.loads(
            text.decode("utf-8"),
            parse_constant=refuse,
            parse_int=whole,
            object_pairs_hook=json_object,
        )
    except (ValueError, RecursionError) as error:
        raise DataError("a file is not JSON", where=where, found=str(error)[:200]) from None


def read_json(path: str | Path, kind: type = dict) -> Any:
    """`json_of` a file's bytes; DataError where there is none, or where it is no object (or no
    list, as `kind` says)."""
    remedy = "run `dvc repro` (or `dvc pull`)"
    try:
        content = json_of(Path(path).read_bytes(), str(path))
    except FileNotFoundError:
        raise DataError("a file is missing", where=str(path), remedy=remedy) from None
    if not isinstance(content, kind):
        raise DataError(
            "a file holds other JSON than it should",
            where=str(path),
            expected="an object" if kind is dict else f"a {kind.__name__}",
            found=f"{type(content).__name__} {str(content)[:40]}",
            remedy=remedy,
        )
    return content


def sha256(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes, read from disk."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def die_with(parent: int) -> None:
    """Ask Linux for SIGKILL when the parent process, of that number, dies."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, Linux only
    if os.getppid() != parent:  # it died before the line above
        os.kill(os.getpid(), signal.SIGKILL)


def guard(name: str) -> IO[str]:
    """First line of a long stage: one writer at a time, and none that outlives its parent.

    A killed dvc leaves its stage running; the next repro would then start a second writer on the
    same files. So the stage dies with its parent, and holds a lock for as long as the returned file
    is open.
    BusyError when another live process holds the lock.
    """
    import fcntl  # which Windows lacks; what no stage needs imports this module there, too

    die_with(os.getppid())
    locks = WORK / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    stream = (locks / name.replace("/", "-")).open("w")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(
            "another run is still writing this output",
            where=name,
            remedy="wait for it to end, or stop that process",
        ) from None
    return stream
