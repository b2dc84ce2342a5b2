"""The promotion ledger, reports/ledger.jsonl: one JSON object a line, appended and never changed.

Each line holds its `number` (1, 2, ...), the SHA-256 of the line before it (`previous`, "" for the
first) and of its own other fields (`digest`); the order is that of the numbers, never of the clock.
A line that was edited, removed, moved or put in between is an IntegrityError. What was cut from the
end no chain can know: git can (`check_committed`: the committed ledger must begin this one). The
champion now is `after` of the last line: the SHA-256 of its weights. Errors are RMSE per component,
kn.
"""

import datetime as dt
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stages import files
from stages.errors import DataError, IntegrityError

LEDGER = Path("reports/ledger.jsonl")
KINDS = ("promoted", "refused", "rollback")
REMEDY = "see `git log -p -- {path}`; `git checkout -- {path}` puts the committed one back"
WORD = re.compile(r"(?m)^run:[ \t]*\*\w+")
Entry = dict[str, Any]


def line_of(entry: Entry) -> str:
    """The one way to write an entry, without the line's end; DataError for a number that is not
    finite."""
    try:
        return json.dumps(entry, sort_keys=True, allow_nan=False, ensure_ascii=False)
    except ValueError as error:
        raise DataError(
            "a number that is not finite cannot stand in the ledger",
            where=str(LEDGER),
            found=str(error),
        ) from None


def hashed(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def digest(entry: Entry) -> str:
    """SHA-256 of an entry's fields without its own `digest`."""
    return hashed(line_of({key: value for key, value in entry.items() if key != "digest"}))


def read(path: Path | None = None) -> list[Entry]:
    """All entries in order; [] where there is no ledger yet. IntegrityError names the first line
    that breaks the chain."""
    path = path or LEDGER
    text = path.read_bytes().decode("utf-8", errors="replace") if path.exists() else ""
    found: list[Entry] = []
    previous = ""
    for number, line in enumerate(
        text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else [], 1
    ):
        problem = wrong(line, number, previous)
        if problem:
            raise IntegrityError(
                "the ledger's chain is broken",
                where=f"{path}, line {number}",
                expected=problem[0],
                found=problem[1],
                remedy=REMEDY.format(path=path),
            )
        found.append(json.loads(line))
        previous = hashed(line)
    if text and not text.endswith("\n"):
        raise IntegrityError(
            "the ledger's last line is cut off",
            where=f"{path}, line {len(found)}",
            expected="a line end",
            remedy=REMEDY.format(path=path),
        )
    return found


def wrong(line: str, number: int, previous: str) -> tuple[str, str] | None:
    """What was expected of a line and what it is instead; None for a sound one."""
    try:
        entry = json.loads(line)
        rewritten = line_of(entry)
        rewritten.encode("utf-8")  # a lone surrogate has no bytes
    except (ValueError, DataError) as error:
        return "a JSON object", str(error).splitlines()[0]
    if not isinstance(entry, dict):
        return "a JSON object", type(entry).__name__
    if entry.get("number") != number:
        return f"number {number}", f"number {entry.get('number')}"
    if entry.get("previous") != previous:
        return (
            f"previous {previous or '(none)'}",
            f"previous {entry.get('previous')}: a line before this one is not what it was",
        )
    if entry.get("digest") != digest(entry) or rewritten != line:
        return (
            f"digest {entry.get('digest')}",
            f"{digest(entry)}: this line is not what was written",
        )
    return (" | ".join(KINDS), str(entry.get("kind"))) if entry.get("kind") not in KINDS else None


def append(fields: Entry, path: Path | None = None) -> Entry:
    """Add a line, once for each `case`: the entry, or the one that already stands for the same
    case.

    BusyError while another process writes; IntegrityError for a ledger that is not what it was.
    """
    path = path or LEDGER
    with files.guard("ledger"):
        entries = read(path)
        check_committed(path)
        for entry in entries:
            if entry["case"] == fields["case"]:
                return entry
        entry = {
            **fields,
            "number": len(entries) + 1,
            "previous": hashed(line_of(entries[-1])) if entries else "",
            "time": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        entry["digest"] = digest(entry)
        with files.atomic_file(path, "w") as stream:
            stream.writelines(line_of(one) + "\n" for one in [*entries, entry])
        return entry


def after(entries: list[Entry]) -> str:
    """SHA-256 of the weights of the champion now; "" for none."""
    return entries[-1]["after"] if entries else ""


def of_raw(entries: list[Entry], raw: str) -> Entry | None:
    """The last judgement of this state of the raw data, if there is one."""
    return next((entry for entry in reversed(entries) if raw and entry["raw"] == raw), None)


def git(*arguments: str) -> str | None:
    """Output of a git command that only reads; None where it fails or git is not here."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, env=environment, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None


def check_committed(path: Path | None = None) -> None:
    """IntegrityError unless the ledger begins with the committed one, and where git cannot be
    asked about it: lines that were cut off the end are found here alone."""
    path = path or LEDGER
    if any((one / ".git").exists() for one in (Path.cwd(), *Path.cwd().parents)) and not git(
        "rev-parse", "--is-inside-work-tree"
    ):
        raise IntegrityError(
            "git cannot say what ledger was committed",
            where=str(path),
            expected="an answer of `git rev-parse --is-inside-work-tree`",
            found="none: git is not installed, or refuses this folder",
            remedy="run that command and do what it says; for a folder of another owner, "
            "`git config --global --add safe.directory FOLDER`",
        )
    committed = git("show", f"HEAD:./{path.as_posix()}") if not path.is_absolute() else None
    present = path.read_bytes().decode("utf-8", errors="replace") if path.exists() else ""
    if committed and not present.startswith(committed):
        raise IntegrityError(
            "the ledger does not continue the committed one",
            where=str(path),
            found=f"{present.count(chr(10))} lines",
            expected=f"the {committed.count(chr(10))} lines of HEAD, unchanged, and more",
            remedy=REMEDY.format(path=path),
        )


def tree(profile: str) -> tuple[str, list[str]]:
    """The commit (git HEAD, "" for none) and the tracked files that differ from it, sorted, as
    paths from the repository's root.

    Left out is what a retraining run itself changes: data/`profile`, dvc.lock and results under
    reports (declarations, *.yaml, count), and the word after `run:` in params.yaml, which names
    another profile while a flow runs.
    """
    commit = git("rev-parse", "HEAD")
    told = git("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", ".")
    if commit is None or told is None:
        return "", []
    changed = [line[3:] for line in told.split("\0") if line]
    prefix = (git("rev-parse", "--show-prefix") or "").strip()
    made = re.compile(rf"data/{re.escape(profile)}/|(.*/)?dvc\.lock$|reports/(?!.*\.yaml$)")
    ours = [path for path in changed if not made.match(path.removeprefix(prefix))]
    return commit.strip(), sorted(
        path for path in ours if path != f"{prefix}params.yaml" or not only_the_word()
    )


def only_the_word() -> bool:
    """Whether params.yaml differs from the committed one in the profile's name alone."""
    before, file = git("show", "HEAD:./params.yaml"), Path("params.yaml")
    return (
        before is not None
        and file.exists()
        and WORD.sub("", before) == WORD.sub("", file.read_text(encoding="utf-8"))
    )


def spread(value: dict[str, float] | None) -> str:
    """'-0.52 [-0.80, -0.21]' of a difference with its interval; '–' for none."""
    return f"{value['value']:+.2f} [{value['low']:+.2f}, {value['high']:+.2f}]" if value else "–"


def row(entry: Entry) -> tuple[str, ...]:
    """What a person is shown of an entry: number, time, verdict, cell, errors [kn], difference
    [kn], slices, drift, champion, first reason."""
    errors, chosen = entry.get("rmse_component_kn") or {}, entry.get("evaluation") or {}

    def kn(side):
        return f"{errors[side]:.2f}" if side in errors else "–"

    return (
        str(entry["number"]),
        entry["time"],
        entry["kind"],
        entry.get("cell") or "–",
        kn("challenger"),
        kn("against"),
        spread(entry.get("difference_kn")),
        str(chosen.get("slices", "–")),
        (entry.get("drift") or {}).get("state", "–"),
        entry["after"][:12] or "none",
        entry["reasons"][0] if entry["reasons"] else "",
    )


TITLES = (
    "no.",
    "time (UTC)",
    "verdict",
    "cell",
    "challenger kn",
    "against kn",
    "difference kn [90 %]",
    "slices",
    "drift",
    "champion after",
    "why",
)


def render(entries: Iterable[Entry]) -> str:
    """A table for a person: errors are RMSE per component in knots on the same slices; below
    zero the challenger is better."""
    rows = [row(entry) for entry in entries]
    if not rows:
        return "the ledger is empty: nothing was promoted or refused yet"
    widths = [max(len(line[i]) for line in [TITLES, *rows]) for i in range(len(TITLES) - 1)]
    lines = [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]
        )
        for line in [TITLES, *rows]
    ]
    return "\n".join(
        [
            (
                "RMSE per component in knots, challenger and champion (or first baseline) on the "
                "same slices; a difference below zero is the challenger's gain"
            ),
            *(line.rstrip() for line in lines),
        ]
    )
