"""The command that makes a place: as dvc.lock says it was run, held to what dvc.yaml declares.

dvc.yaml is the table that says which module a stage runs, so the audit needs no other. A declared
command is a template, `exec python -m stages.MODULE ${item.profile} ...`; DVC fills it, and the
lock keeps what it ran. A lock whose command or lists of code are not of their template was edited.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from stages import code
from stages.audit.hashes import Entry, Locks
from stages.errors import TradewindError

FILLED = re.compile(r"\$\{[^}]*\}")
LISTED = re.compile(rf"{code.HOME.as_posix()}/(?P<name>[^/]+)\.json")
RUN = ("exec", "python", "-m")


class Undeclared(TradewindError):
    """No command of the project makes a place; the message says why."""


@dataclass(frozen=True)
class Command:
    """A stage's module and the words that it is called with."""

    module: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(("python", "-m", self.module, *self.words))


def fits(template: str, text: str) -> bool:
    """Whether a text is the template with one word in each of its places."""
    return pattern(template).fullmatch(" ".join(text.split())) is not None


@cache
def pattern(template: str) -> re.Pattern[str]:
    """What fits a template; thousands are asked for again and again."""
    parts = map(re.escape, FILLED.split(" ".join(template.split())))
    return re.compile(r"[^\s]+".join(parts))


def bound(template: str, text: str) -> dict[str, str]:
    """What stands in a template's places in a text that fits it: place -> word."""
    found: dict[str, str] = {}
    words = " ".join(template.split())
    parts = map(re.escape, FILLED.split(words))
    match = re.fullmatch(r"([^\s]+)".join(parts), " ".join(text.split()))
    for place, word in zip(FILLED.findall(words), match.groups() if match else (), strict=False):
        found.setdefault(place, word)
    return found


def filled(template: str, words: dict[str, str]) -> str:
    """A template with those of its places filled that are known."""
    return FILLED.sub(lambda place: words.get(place[0], place[0]), template)


def definition(locks: Locks, entry: Entry) -> dict[Any, Any]:
    """What dvc.yaml declares of a lock's entry; {} where it declares no such stage."""
    stages = locks.declared.get(entry.lock, {}).get("stages") or {}
    found = stages.get(entry.name.split("@")[0]) or {}
    return found.get("do") or found if isinstance(found, dict) else {}


def command(locks: Locks, home: str) -> Command:
    """The command that makes `home`. Undeclared where there is none, or dvc.yaml declares
    another."""
    entry = locks.producer(home)
    words = shlex.split(entry.cmd) if entry else []
    if tuple(words[:3]) != RUN or not words[3:] or not words[3].startswith(f"{code.PACKAGE}."):
        raise Undeclared(
            "no dvc.lock names a command of ours for it",
            where=home,
            found=entry.cmd if entry else "nothing",
        )
    if why := other(locks, entry):
        raise Undeclared(why, where=home, found=entry.cmd)
    return Command(words[3], tuple(words[4:]))


def other(locks: Locks, entry: Entry) -> str:
    """How a lock's command differs from the declared one; "" where it does not."""
    told = template_of(locks, entry)
    if told is None:
        return "dvc.yaml declares no such stage"
    return "" if fits(told, entry.cmd) else f"dvc.yaml declares `{' '.join(told.split())}`"


def template_of(locks: Locks, entry: Entry) -> str | None:
    """The command that dvc.yaml declares for a lock's entry, with its places; None for none."""
    told = definition(locks, entry).get("cmd")
    told = " && ".join(map(str, told)) if isinstance(told, list) else told
    return told if isinstance(told, str) else None


def modules(locks: Locks, home: str) -> set[str]:
    """The modules on whose closures the stage that made `home` rests: its command's, and those
    whose lists stand among its lock's deps. Undeclared as for `command`."""
    entry = locks.producer(home)
    named = {command(locks, home).module}
    for path in entry.deps:
        if listed := LISTED.fullmatch(path):
            named.add(f"{code.PACKAGE}.{listed['name']}")
    return named


def unread(locks: Locks, home: str) -> Iterator[str]:
    """The lists of code that dvc.yaml has among a stage's deps and the lock's entry has not."""
    entry = locks.producer(home)
    for dep in definition(locks, entry).get("deps") or () if entry else ():
        listed = isinstance(dep, str) and LISTED.fullmatch(FILLED.sub("x", dep))
        if listed and not any(fits(dep, path) for path in entry.deps):
            yield dep
