"""Ctrl-C, told in one line. `cli.py` imports this before anything else, so that it holds while the
rest is imported, too."""

import os
import sys
from types import TracebackType

EXIT_CODE = 130  # a shell's for a command that SIGINT ended


def tell() -> int:
    """Say so on standard error; the exit code."""
    print("stopped", file=sys.stderr, flush=True)
    return EXIT_CODE


def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What nobody caught: Ctrl-C in one line, all else as ever."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    os._exit(tell())  # Python would end by the signal, and nothing was printed yet that could wait


sys.excepthook = hook
