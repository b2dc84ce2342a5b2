"""All that is written from results, written again and compared: `tradewind verify --all`.

Tables, claims, metrics and figures are derived by their own commands (derive.py), pages, summaries
and the blocks of reports/FINDINGS.md rendered by theirs. Each kind has a copy of the project to
itself; in one copy commands run side by side, the long ones first.
"""

import contextlib
import itertools
import os
import posixpath
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from stages import code
from stages.audit import commands, derive, history, twice
from stages.audit.case import PULL, REPRO, Case
from stages.audit.chain import Node
from stages.audit.finding import Problem
from stages.audit.hashes import Entry
from stages.audit.laid import Laid
from stages.audit.served import Server
from stages.errors import TradewindError
from stages.page import findings, promotions
from stages.page.experiment import DATA as PAGE

Job = Callable[[], list[Problem]]
Check = Callable[[Case], Iterator[Problem]]
EXAMPLE = "example"  # the one stage with a record whose outputs are made again whole
FINDINGS = findings.FINDINGS.as_posix()


@contextlib.contextmanager
def laid_out(root: Path) -> Iterator[tuple[Laid, Laid]]:
    """The project laid out twice, for tables and for pages, and the process that will run their
    commands, which loads libraries from now on, whatever else is read meanwhile."""
    with tempfile.TemporaryDirectory(prefix="verify-") as folder, contextlib.ExitStack() as ends:
        tables, pages = (Laid(root, Path(folder, name)) for name in ("tables", "pages"))
        tables.server = pages.server = Server(tables.folder)  # both hold the commit's sources
        ends.callback(tables.server.close)
        tables.server.begin()
        yield tables, pages


@contextlib.contextmanager
def begun(case: Case, laid: tuple[Laid, Laid]) -> Iterator[Check]:
    """Every table, claim, figure, page and summary is being made again, but of what earlier code
    made; gives the check that waits for them and tells what differs. Processes of their own do
    it, so that it begins before all else is checked."""
    waiting: list[Future[list[Problem]]] = []

    def written(_: Case) -> Iterator[Problem]:
        for one in waiting:
            yield from one.result()

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            for job in itertools.chain(tables(case, laid[0]), pages(case, laid[1])):
                waiting.append(pool.submit(job))  # it begins while the next ones are looked for
            yield written
        finally:
            pool.shutdown(cancel_futures=True)


def tables(case: Case, laid: Laid) -> Iterator[Job]:
    """What derives each published table, the evaluations used where all are here; after the long
    ones, what judges data and evaluations."""
    deps = set[str]()
    long: list[tuple[int, Job]] = []
    short: list[Job] = []
    for table in case.chain.tables:
        node = case.chain.files[table]
        if node and case.earlier(node):
            continue
        home = f"{table.rpartition('/')[0]}/evaluated/"
        inputs = node.record.get("inputs", ()) if node else ()
        wanted = [path for path in inputs if path.startswith(home)]
        here = bool(wanted) and all((case.root / path).is_file() for path in wanted)
        entry = case.locks.producer(table)
        deps |= {dep for dep in (entry.deps if entry else ()) if here or home[:-1] not in dep}
        deps |= set() if here else {table}
        job = partial(derived, case, laid, table, here)
        if here:
            long.append((drawn(node), job))
        else:
            short.append(job)
    laid.link_all(deps)
    yield from (job for _, job in sorted(long, key=lambda one: -one[0]))
    found = twice.places(case)
    twice.link(case, laid, found)
    most = sorted(found.items(), key=lambda one: -len(one[1]))
    yield from (partial(agreeing, case, laid, module, homes) for module, homes in most)
    yield from short


def drawn(node: Node | None) -> int:
    """The bytes of the figures that a record names: they take longest."""
    outputs = node.record.get("outputs", {}) if node else {}
    return sum(one["bytes"] for path, one in outputs.items() if path.endswith(".png"))


def agreeing(case: Case, laid: Laid, module: str, homes: list[str]) -> list[Problem]:
    """What contradicts in the places that a module judges."""
    return list(twice.agreement(case, laid, module, homes))


def derived(case: Case, laid: Laid, table: str, here: bool) -> list[Problem]:
    """What of a table is not what is derived again."""
    return list(derive.derived(case.locks, laid, table, here))


def pages(case: Case, laid: Laid) -> list[Job]:
    """What renders each output that no record speaks of, and the example, which takes no time."""
    recorded = {
        path
        for node in case.chain.nodes
        if node.stage != EXAMPLE
        for path in (*node.homes, node.path)
    }
    entries = [
        entry
        for entry in case.locks.entries
        if recorded.isdisjoint(entry.outs)
        and not entry.lock.endswith(".dvc")
        and not case.foreign(entry)
        and code.HOME.as_posix() not in entry.outs  # `lists` derives these
    ]
    found = [file for part in ("*.json", "*.md") for file in case.root.glob(f"reports/*/*/{part}")]
    shown = {file.relative_to(case.root).as_posix() for file in found}
    laid.link_all(shown | {dep for entry in entries for dep in entry.deps})
    return [partial(rendered, case, laid, entry) for entry in entries]


def rendered(case: Case, laid: Laid, entry: Entry) -> list[Problem]:
    """What of an entry's outputs is not what its command writes."""
    first = next(iter(entry.outs), entry.lock)
    if gone := next(filter(case.away, entry.deps), ""):
        text = f"it cannot be made again: {gone} is not here; {PULL}"
        return [Problem("INCONCLUSIVE", first, text, entry.cmd)]
    try:
        laid.run(commands.command(case.locks, first))
    except TradewindError as error:
        text = f"it cannot be made again: {' '.join(str(error).split())}"
        return [Problem("FAIL", first, text, entry.cmd)]
    source = f"what {entry.name} reads"
    made = [out for out in entry.outs if "/records/" not in out]  # that tells of a process, too
    return [problem for out in made for problem in derive.same(laid, out, source)]


def block(case: Case) -> Iterator[Problem]:
    """The blocks of reports/FINDINGS.md are those of the results that the commit holds: of others
    that stand here (a run of one's own), or where there are none, they say nothing."""
    if not (case.root / FINDINGS).is_file():
        return
    text = (case.root / FINDINGS).read_text(encoding="utf-8", errors="replace")
    for found in findings.BLOCK.finditer(text):
        profile, experiments = found[1], found[2].split()
        read = [posixpath.join("reports", name, profile, PAGE) for name in experiments]
        here = [path for path in read if (case.root / path).exists()]
        of_commit = history.modes(case.root) is not None
        if read[0] not in here or (of_commit and history.changed(case.root, here)):
            continue
        try:
            with contextlib.chdir(case.root):
                again = findings.block(profile, experiments)
        except TradewindError as error:
            again = " ".join(str(error).split())
        if again != found[0]:
            why = derive.differing(found[0], again)
            where = f"its results of {profile}, {' '.join(experiments)}"
            told = f"{where} are not those of {read[0]}: {why}; {REPRO}"
            yield Problem("FAIL", FINDINGS, told, "python -m stages.page.findings")


def promoted(case: Case) -> Iterator[Problem]:
    """The promotion ledger is the one that was written, line upon line."""
    with contextlib.chdir(case.root):
        _, broken = promotions.entries()
    if broken:
        yield Problem("FAIL", promotions.LEDGER.as_posix(), broken)


ALL = (block, promoted)
