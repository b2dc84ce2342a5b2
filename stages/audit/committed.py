"""The cone's files and its locks' entries held against the commit.

An edit fails. An honest run of the commit on another arithmetic (ownrun.py) differs from it in
many files, which is told in one note: whether its numbers agree with the published ones is not a
matter of bytes, and `tradewind compare` judges it.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace

from stages import records
from stages.audit import arithmetics, history, loading
from stages.audit.case import Case
from stages.audit.finding import Problem
from stages.audit.hashes import Entry, read_lock, read_text
from stages.audit.ownrun import OwnRun
from stages.code import PACKAGE
from stages.params import PARTS

INSIDE = re.compile(r"(data|reports|stages)/")  # where results and code lie


def committed(case: Case) -> Iterator[Problem]:
    """The cone's files are those of the commit, or of an own run of it."""
    chain = case.chain
    small = {*chain.tables, *(node.path for node in chain.nodes), *filter(case.kept, chain.files)}
    today = [node for node in chain.nodes if not case.earlier(node)]
    small |= {path for node in today for path in node.record.get("code", {}).get("files", {})}
    table = chain.tables[0] if chain.tables else "reports"
    case.commit = history.look(case.root, table, sorted(filter(INSIDE.match, small)))
    if case.commit is None:
        text = "git names no commit here: the number cannot be tied to one"
        yield Problem("INCONCLUSIVE", ".", text)
        return
    made = entries_of(case)
    locks = dict.fromkeys(entry.lock for entry in made)
    texts = {lock: history.at_head(case.root, lock) for lock in locks}
    for lock in (lock for lock, text in texts.items() if text is None):
        yield Problem("FAIL", lock, "it is not committed")
    before = {
        lock: earlier(case, lock, text)
        for lock, text in texts.items()
        if text is not None and text != (case.root / lock).read_text(encoding="utf-8")
    }
    entries = [
        entry
        for entry in made
        if entry.lock in before and entry != before[entry.lock].get(entry.name)
    ]
    if not case.commit.dirty and not entries:
        return
    own = OwnRun(case)
    reasons, honest = run_again(own, entries, before), set()
    told = {(entry.lock, entry.name): reason for entry, reason in reasons if recordless(entry, own)}
    for path in case.commit.dirty:
        owner = chain.files.get(path)
        entry = None if owner else case.locks.producer(path)
        key = (entry.lock, entry.name) if entry else ("", "")
        reason = told[key] if key in told else own.explains(path, owner)
        if reason:
            text = f"it differs from the commit (git: edited or not committed): {reason}"
            yield case.fails(path, text)
        else:
            honest.add(path)
    for entry, reason in reasons:
        if reason:
            text = f"its entry {entry.name} differs from the commit: {reason}"
            yield Problem("FAIL", entry.lock, text, entry.cmd)
    case.own = frozenset(honest | {entry.lock for entry, reason in reasons if not reason})
    if case.own:
        yield note(case, own)


def note(case: Case, own: OwnRun) -> Problem:
    """What is said of an own run."""
    here = arithmetics.line_of(records.environment())
    mine, theirs = own.lines
    text = f"{len(case.own):,} files differ from commit {case.commit.head[:12]}: an own run "
    if mine == theirs:
        text += "of code that means the same, of which comments or layout were edited since"
    else:
        text += f"on {arithmetics.quoted(mine)}, the commit's on {arithmetics.quoted(theirs)}"
    text += "; `tradewind compare` judges the numbers"
    if not all(arithmetics.alike(line, here) for line in mine):
        text += f"; this process computes in `{here}`, so that the run cannot be checked here"
    return Problem("NOTE", "commit", text)


def entries_of(case: Case) -> list[Entry]:
    """The entries that made the chain's files, each once, by lock and name."""
    made = filter(None, map(case.locks.producer, case.chain.files))
    named = {(entry.lock, entry.name): entry for entry in made}
    return [named[key] for key in sorted(named)]


def earlier(case: Case, lock: str, text: str) -> dict[str, Entry]:
    """A lock's entries at the commit, by name."""
    entries = read_lock(lock, read_text(text, lock), case.locks.declared[lock])
    return {entry.name: entry for entry in entries}


def run_again(
    own: OwnRun, entries: list[Entry], before: dict[str, dict[str, Entry]]
) -> list[tuple[Entry, str]]:
    """Each differing entry, and why no honest run explains it ("" where one does).

    Stages without a record (pages, summaries) pass on what they read, so all are asked until
    nothing more is explained.
    """
    places = {place for path in own.moved for place in upwards(path)}
    reasons: dict[tuple[str, str], str] = {}
    waiting = entries
    while waiting:
        for entry in waiting:
            earlier_one = before[entry.lock].get(entry.name)
            reasons[entry.lock, entry.name] = unexplained(entry, earlier_one, places, own)
        explained = [entry for entry in waiting if not reasons[entry.lock, entry.name]]
        left = [entry for entry in waiting if reasons[entry.lock, entry.name]]
        waiting = left if explained else []
        places |= {
            place
            for entry in explained
            for out in entry.outs
            for place in upwards(out)
            if recordless(entry, own)
        }
    return [(entry, reasons[entry.lock, entry.name]) for entry in entries]


def unexplained(entry: Entry, before: Entry | None, places: set[str], own: OwnRun) -> str:
    """Why a lock's entry is not that of an honest run; "" where it is. `places` hold what moved."""
    if before is None:
        return "the commit has no such entry"
    if replace(entry, deps=before.deps, outs=before.outs) != before:
        return "its command or its parameters are others"
    if entry.deps.keys() != before.deps.keys() or entry.outs.keys() != before.outs.keys():
        return "it names other files"
    if own.code:
        return own.code
    read = [path for path in entry.deps if entry.deps[path] != before.deps[path]]
    made = [path for path in entry.outs if entry.outs[path] != before.outs[path]]
    other = [path for path in read if path not in places]
    if not recordless(entry, own):
        other += [path for path in made if path not in places]
    elif made and not read:
        other += made
    return f"no run of the commit gives another {other[0]}" if other else ""


def recordless(entry: Entry, own: OwnRun) -> bool:
    """Whether no record speaks of what an entry makes."""
    return not any(own.case.ledger.owner(out) for out in entry.outs)


def upwards(path: str) -> Iterator[str]:
    """A path and the folders that it lies in."""
    while path:
        yield path
        path = posixpath.dirname(path)


def working(case: Case) -> Iterator[Problem]:
    """The working copy's code and declarations are the commit's, whether or not a record names
    them: what runs here is what the commit says. Parameters are held to the locks."""
    if history.git(case.root, "rev-parse", "HEAD") is None:
        return  # `committed` says so
    declared = [
        file.relative_to(case.root).as_posix()
        for pattern in ("dvc.yaml", "*/*/dvc.yaml")
        for file in case.root.glob(pattern)
    ]
    dirty = [*history.changed_below(case.root, PACKAGE), *history.changed(case.root, declared)]
    for path in dirty:
        if not path.startswith(f"{PARTS}/"):
            text = "it differs from the commit (git: edited or not committed): commit or undo it"
            yield Problem("FAIL", path, text)


def loaded(case: Case) -> Iterator[Problem]:
    """Nothing in the commit or in the working copy is loaded by Python in place of the project's
    sources or of its libraries."""
    here = {
        file.relative_to(case.root).as_posix()
        for pattern in ("*", "*/__init__.*", f"{PACKAGE}/**/*")
        for file in case.root.glob(pattern)
        if file.is_file() and "__pycache__" not in file.parts
    }
    for path, why in loading.shadows(here | (history.modes(case.root) or {}).keys()):
        yield Problem("FAIL", path, why)


ALL = (committed, loaded)
