"""What follows from other files of the commit, derived: a sweep's winner from its own trials, and
each promotion ledger from the one before it."""

import contextlib
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages.audit import history
from stages.audit.case import Case
from stages.audit.chain import SEED
from stages.audit.finding import Problem
from stages.audit.hashes import read_data
from stages.errors import DataError
from stages.files import read_json
from stages.page import promotions

BEST, TRIALS = "best.yaml", "trials.csv"
STATES = {"finished": "finished", "pruned": "pruned", "not_finite": "not finite"}


def sweeps(case: Case) -> Iterator[Problem]:
    """Each sweep's winner is the least of its own trials, and its counts are theirs."""
    for node in case.chain.nodes:
        best, trials = (case.root / node.homes[0] / name for name in (BEST, TRIALS))
        if node.stage != "sweep" or node.error or not (best.is_file() and trials.is_file()):
            continue
        try:
            texts = list(unlike(read_data(best), trials))
        except (DataError, OSError, KeyError, TypeError, ValueError, IndexError) as error:
            texts = [f"it is no sweep's winner ({' '.join(str(error).split())})"]
        for text in texts:
            yield case.fails(f"{node.homes[0]}/{BEST}", f"{text}: {TRIALS} beside it")


def unlike(best: dict[str, Any], trials: Path) -> Iterator[str]:
    """How a winner is not that of the trials, whose last columns are error and state."""
    with trials.open(encoding="utf-8", newline="") as stream:
        titles, *rows = csv.reader(stream)
    error = titles[-2]
    finished = [row for row in rows if row[-1] == STATES["finished"]]
    least = min((float(row[-2]) for row in finished), default=None)
    if best[error] != least:
        yield f"its {error} is {best[error]}, the least of its trials is {least}"
        return
    arguments = best["arguments"]
    winners = [dict(zip(titles, row, strict=True)) for row in finished if float(row[-2]) == least]
    if not any(all(same(row[name], arguments[name]) for name in arguments) for row in winners):
        yield "its arguments are those of no trial of that error"
    told = {"trials": len(rows)}
    told |= {name: sum(row[-1] == word for row in rows) for name, word in STATES.items()}
    for name, count in told.items():
        if best[name] != count:
            yield f"it says {name} {best[name]}, there are {count}"


def same(text: str, argument: Any) -> bool:
    """Whether a cell of the trials is an argument's value."""
    if isinstance(argument, (int, float)) and not isinstance(argument, bool):
        return text != "" and float(text) == float(argument)
    return text == str(argument)


def ledgers(case: Case) -> Iterator[Problem]:
    """The promotion ledger begins with each one that was committed before: lines are added, none
    is taken back or written anew. Who is champion follows from it."""
    path = promotions.LEDGER.as_posix()
    try:
        ends = history.cut(case.root)
    except DataError as error:
        yield Problem("FAIL", path, f"its history is damaged: {' '.join(str(error).split())}")
        return
    if ends:
        text = f"git's history is cut off here at {ends[0][:12]}, and may hold lines of it before"
        yield Problem("INCONCLUSIVE", path, f"{text}: `git fetch --unshallow`")
    listed = history.git(case.root, "log", "--first-parent", "--format=%H", "--", path)
    commits = (listed or "").split()
    now = (case.root / path).read_text(encoding="utf-8") if (case.root / path).is_file() else ""
    if not commits and not now:
        return
    commits.reverse()
    texts = list(zip(commits, history.at_commits(case.root, commits, path), strict=True))
    for (before, earlier), (after, later) in zip(
        texts, [*texts[1:], ("the working copy", now)], strict=False
    ):
        if not later.startswith(earlier):
            text = f"{after[:12]} does not begin with the ledger of commit {before[:12]}"
            yield Problem("FAIL", path, f"{text}: lines were taken back or written anew")
    with contextlib.chdir(case.root):
        entries, _ = promotions.entries()  # as far as they hold: `promoted` says where not
    yield from champions(case, [str(entry.get("after", "")) for entry in entries])


def champions(case: Case, promoted: list[str]) -> Iterator[Problem]:
    """Each champion that is kept was promoted, and has the bytes that were; the last one that was
    promoted is kept."""
    kept = sorted(case.root.glob("data/*/champions/*/weights.safetensors"))
    for file in kept:
        found = case.bytes.sha256(path := file.relative_to(case.root).as_posix())
        if found not in promoted or not found.startswith(file.parent.name):
            text = f"it was never promoted: the ledger names no champion {str(found)[:12]}"
            yield Problem("FAIL", path, text)
    last = promoted[-1] if promoted else ""
    if last and kept and last[:12] not in {file.parent.name for file in kept}:
        path = kept[0].parents[1].relative_to(case.root).as_posix()
        yield Problem("FAIL", path, f"the champion of the ledger, {last[:12]}, is not among them")


def phantoms(case: Case) -> Iterator[Problem]:
    """Each cell with a seed was trained: a record in its place says so."""
    for table in case.chain.tables:
        home = table.rpartition("/")[0]
        for cell in sorted(seeded(case, table)):
            dataset, _, name = cell.partition("/")
            owner = case.ledger.owner(f"{home}/runs/{dataset}/{name}")
            if owner is None or owner.stage != "train":
                yield case.fails(
                    table, f"{cell} has a seed, and no record says that it was trained"
                )


def seeded(case: Case, table: str) -> set[str]:
    """The cells of a table whose names end with a seed."""
    try:
        cells = read_json(case.root / table)["cells"]
        return {cell for cell in cells if SEED.search(cell)}
    except (DataError, KeyError, TypeError):
        return set()  # `tabulated` says so


ALL = (sweeps, phantoms)
