"""What a person types, one file a kind of question: parse, call, print.

A module adds its verbs to a parser (`register`) and runs them; what a verb needs is imported when
it runs, so that help costs nothing.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from stages.errors import InputError

Verbs = Any  # what argparse.ArgumentParser.add_subparsers returns; its class has no public name


def added(verbs: Verbs, name: str, short: str, long: str, example: str) -> argparse.ArgumentParser:
    """A verb whose help ends with an example."""
    return verbs.add_parser(
        name,
        help=short,
        description=f"{long}\n\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def drawable(path: Path, *suffixes: str) -> None:
    """InputError for a picture whose name tells another form than those that are drawn."""
    if path.suffix.lower() not in suffixes:
        raise InputError(
            "a picture is drawn in another form than that name tells",
            where=str(path),
            found=path.suffix or "no suffix",
            expected=" | ".join(suffixes),
        )


def writable(path: Path) -> None:
    """InputError where a file cannot be put."""
    if not path.parent.is_dir():
        raise InputError(
            "there is no such folder",
            where=str(path.parent),
            remedy="make it, or name another file",
        )
    if path.is_dir():
        raise InputError("that is a folder", where=str(path), remedy="name a file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            "nothing can be written there",
            where=str(path.parent),
            found=error.strerror or str(error),
            remedy="make room, let your user write there, or name another folder",
        ) from None


def only_in_clone(what: str) -> None:
    """InputError in a folder that has no parameters of its own; `what` is not there."""
    from stages.winds.nowcast import anywhere

    if not anywhere.in_clone():
        raise InputError(
            what,
            where=str(Path.cwd()),
            found="no params.yaml: this folder is no clone of a project",
            remedy="run it at the root of a clone",
        )
