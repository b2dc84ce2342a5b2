"""Every error a user can meet, as one small hierarchy.

A message answers five questions: what went wrong, where, what was expected, what was found, and
what mends it. `exit_code` is what the process ends with: 2 for the user's own mistake (raised
before any work starts), 1 for a failure of data or of a run, 75 (sysexits' EX_TEMPFAIL) when
another run holds the place.
"""

import errno
import os
import re
import sys
import traceback
from collections.abc import Callable

NUMPY_READS = {
    "numpy.lib._format_impl",
    "numpy.lib._npyio_impl",
    "numpy._core.memmap",
}  # modules inside which NumPy reads an array's file

# Where no byte goes any more, whosever path it is: full, over a quota, broken, a file too long.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
# The same as libraries say it that raise no OSError: Polars, SQLite.
FULL_TEXT = re.compile(r"No space left|disk is full|disk I/O error|Disk quota exceeded")

# What remedies say of `dvc pull`, and what is left of it where there is nothing to pull from.
PULLS = (
    (r" \(or `dvc pull`\)", ""),
    (r",? or `dvc pull`( for what [a-z ]+)?", ""),
    (r"`dvc pull ([^`]*)` \(or (`dvc checkout \1[^`]*`)\)", r"\2"),
    (r"`dvc pull` \(or (`dvc checkout`), or ", r"\1 (or "),
    (r"`python -m flows\.profiles [^`]* -- dvc pull` brings them, ", ""),
    (r"run `dvc pull`, or", "run `dvc repro`, or"),
)


class TradewindError(Exception):
    """Base of all. All five parts are plain text; empty ones are left out of the message."""

    exit_code = 1

    def __init__(
        self, what: str, *, where: str = "", expected: str = "", found: str = "", remedy: str = ""
    ):
        self.what, self.where, self.expected, self.found, self.remedy = (
            what,
            where,
            expected,
            found,
            remedy,
        )
        parts = [what]
        for label, text in (
            ("where", where),
            ("expected", expected),
            ("found", found),
            ("remedy", remedy),
        ):
            if text:
                parts.append(f"  {label}: {text}")
        super().__init__("\n".join(parts))


class InputError(TradewindError):
    """The user asked for something that cannot be done as asked."""

    exit_code = 2


class ParamsError(InputError):
    """params.yaml does not fit its schema."""


class DataError(TradewindError):
    """A file is not what it should be: format, columns, units, length."""


class KeyMissing(DataError, KeyError):
    """A JSON file lacks a key; a KeyError too, for those who ask whether it is there."""

    __str__ = DataError.__str__


class GateError(TradewindError):
    """A critical expectation failed: nothing downstream may use the data."""


class JudgeError(TradewindError):
    """The validation tool itself failed: the data were neither passed nor refused."""

    exit_code = 70


class DownloadError(TradewindError):
    """A file could not be had, or what came is not the pinned file."""


class IntegrityError(TradewindError):
    """Bytes on disk do not match what was recorded of them."""


class DivergedError(TradewindError):
    """A loss or a metric stopped being a finite number."""


class BusyError(TradewindError):
    """Another live run holds the same place."""

    exit_code = 75


def advice(text: str, root: "str | os.PathLike[str]" = ".") -> str:
    """The text as it is told to a person: without `dvc pull` where DVC has no remote to pull from
    (a section `remote` of .dvc/config or .dvc/config.local in `root`)."""
    for name in ("config", "config.local"):
        file = os.path.join(root, ".dvc", name)
        if os.path.isfile(file):
            with open(file, encoding="utf-8", errors="replace") as stream:
                if re.search(r"(?m)^\s*\['?remote\b", stream.read()):
                    return text
    for pattern, rest in PULLS:
        text = re.sub(pattern, rest, text)
    return text


def told_of(error: BaseException) -> TradewindError | None:
    """An error as a person is told it: ours as it is, a disk that takes no more, a path that
    somebody named; None for a bug."""
    if isinstance(error, TradewindError):
        return error
    if full := no_room(error):
        return full
    if isinstance(error, OSError) and error.filename is not None:
        return InputError(
            "a file or folder cannot be read or made",
            where=str(error.filename),
            found=error.strerror or str(error),
            remedy="name a place that you may write to, or an existing file",
        )
    return None


def no_room(error: BaseException) -> DataError | None:
    """A disk that takes no more as an error of ours, also one that a library tells in its own
    words, or that caused the library's; None where it is something else."""
    one: BaseException | None = error
    while one is not None:
        known = isinstance(one, OSError) and one.errno in FULL
        if known or FULL_TEXT.search(str(one)):
            file = getattr(one, "filename", None)
            said = known and getattr(one, "strerror", None)
            return DataError(
                "nothing more could be written",
                where="" if file is None else str(file),
                found=said or str(one).strip().splitlines()[0][:300],
                remedy="make room, or name a place on another disk",
            )
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return None


def typed(error: Exception) -> Exception:
    """What a library says of bytes that it cannot read or write, or of memory that it cannot have,
    as an error of ours; others as they are.

    A stage works inside `records.timed`, which asks here: Polars' and safetensors' errors are no
    OSErrors, not even for a full disk, and NumPy says ValueError or SyntaxError of an array's
    damaged header.
    """
    library = type(error).__module__.partition(".")[0]
    text = str(error).strip().splitlines() or [type(error).__name__]
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "memory" in str(error) and "alloc" in str(error)
    ):
        return DataError(
            "there is not enough memory for this",
            found=text[0][:300],
            expected="contexts, batches and slices that fit",
            remedy="lower the batch or the number of points in stages/params, or take a machine "
            "with more memory",
        )
    inside = {
        frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)
    }
    if (
        library in ("polars", "safetensors", "safetensors_rust", "_safetensors_rust")
        or inside & NUMPY_READS
    ):
        return DataError(
            "a file could not be read or written",
            found=f"{type(error).__name__}: {text[0][:300]}",
            remedy="see that the disk has room; `tradewind audit NUMBER --verify hash` names a "
            "damaged file, `dvc repro` makes it anew",
        )
    return error


def reported(work: Callable[[], object]) -> int:
    """Do the work of a command; its exit code. An error of ours, or a file's, is told on
    standard error; others are bugs and pass. Processes that work together meet an error of ours
    together: the first tells it."""
    try:
        work()
    except TradewindError as error:
        if os.environ.get("RANK", "0") == "0":
            print(f"error: {advice(str(error))}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(
            f"error: {DataError('a file could not be read or written', found=str(error))}",
            file=sys.stderr,
        )
        return 1
    return 0
