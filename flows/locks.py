"""A stage's entry put into its lock, the others left as they stand.

DVC reads a lock's YAML, every entry of it, with its comments and marks, and writes all of it again:
one to two seconds for an experiment's lock, after each of its stages. Here one entry is made YAML
by DVC's own means and takes its place in the text; the bytes are those that DVC would have written.
A lock that is not as DVC writes it is left to DVC.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flows.profiles import write

HEAD = "schema: '2.0'\nstages:\n"
ENTRY = r"  \S.*:\n(?:    .*\n)+"
PLAIN = re.compile(re.escape(HEAD) + f"(?:{ENTRY})+")


def put(text: str, entry: str) -> str | None:
    """The lock's text with this entry (both with their head) in the place of the one of its name,
    or at the end; None where either is of another form."""
    if not PLAIN.fullmatch(text) or not PLAIN.fullmatch(entry) or re.search(r"[&*]id\d", text):
        return None
    body = entry.removeprefix(HEAD)
    name = re.escape(body.partition("\n")[0])
    old = re.compile(rf"(?m)^{name}\n(?:    .*\n)+")
    found = old.search(text)
    return text[: found.start()] + body + text[found.end() :] if found else text + body


def instead(
    original: Callable[..., None], data_of: Callable[..., Any], dumped: Callable[[Any], str]
) -> Any:
    """What stands for DVC's `original(lockfile, stages, **options)`: it writes the stages' entries
    into the lock. data_of(stage, **options) is an entry's data, dumped(data) a lock's YAML."""

    def dump_stages(lockfile: Any, stages: Sequence[Any], **options: Any) -> None:
        place = Path(lockfile.path)
        before = text = place.read_text(encoding="utf-8") if place.exists() else ""
        for stage in stages:
            data = {"schema": "2.0", "stages": data_of(stage, **options)}
            made = put(text, dumped(data))
            if made is None:
                original(lockfile, stages, **options)
                return
            text = made
        if text != before:
            write(place, text)
            lockfile.repo.scm_context.track_file(lockfile.relpath)

    return dump_stages
