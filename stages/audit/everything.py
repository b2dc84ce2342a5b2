"""The whole repository verified at once: `tradewind verify --all`.

All records, all outputs of all dvc.lock files and all objects of DVC's cache make one chain, on
which the checks of a single number run (checks.py, disk.py); then every table, claim and figure is
derived or accounted for, and what no record speaks of is held to its lock. A byte that is not the
recorded one fails, with the published numbers that rest on it. What is neither on disk nor in the
cache is counted and inconclusive.
"""

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from stages import records
from stages.audit import (
    again,
    checks,
    committed,
    covered,
    declarations,
    derivable,
    disk,
    gates,
    settings,
    trusted,
)
from stages.audit.absent import missing
from stages.audit.case import REPRO, Case
from stages.audit.chain import RECORDS, Chain, Ledger, Metric
from stages.audit.finding import EXIT_CODES, Problem, worst
from stages.audit.hashes import Bytes, Cache, Entry, Locks, manifest_md5
from stages.audit.impact import all_chains
from stages.audit.render import grouped, one_line, redact
from stages.audit.render import problem_lines as lines_of
from stages.audit.sweep import Swept, sweep
from stages.errors import DataError, ParamsError
from stages.files import read_json


@dataclass
class Whole(Chain):
    """Every record and every file, as the chain of no number in particular."""

    heads: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """Every published table."""
        return self.heads

    def wanted(self, path: str, stage: str) -> bool:
        """All of it."""
        return True


@dataclass
class Verified:
    """The result: what is wrong, the numbers that rest on each failing file, and how much was
    looked at in how long."""

    problems: list[Problem] = field(default_factory=list)
    resting: dict[str, list[str]] = field(default_factory=dict)  # path of a failing file -> metrics
    swept: Swept = field(default_factory=lambda: Swept(0, 0, 0))
    covers: list[covered.Cover] = field(default_factory=list)
    hashing: float = 0.0  # s
    seconds: float = 0.0
    records: int = 0
    tables: int = 0
    trusted: list[str] = field(default_factory=list)  # what no audit judges, and when it changed

    @property
    def verdict(self) -> str:
        """PASS, FAIL or INCONCLUSIVE."""
        return worst(self.problems)

    @property
    def exit_code(self) -> int:
        """0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE."""
        return EXIT_CODES[self.verdict]


def everything(root: str | Path = Path("."), threads: int | None = None) -> Verified:
    """Verify all of a project on so many threads (None: one a core). DataError where it holds no
    record at all, or a file cannot be read."""
    gc.set_threshold(100_000, 50, 50)  # what is read stays: to search it for circles finds none
    start, root = time.monotonic(), Path(root)
    if not any(file for pattern in RECORDS for file in root.glob(pattern)):
        raise nothing_in(root)
    with again.laid_out(root) as laid:
        case, cache = opened(root), Cache(root)
        if not case.ledger.nodes:
            raise nothing_in(root)
        found = Verified(records=len(case.ledger.nodes), tables=len(case.chain.tables))
        shelved(case, cache)
        with again.begun(case, laid) as written:
            before = time.monotonic()
            found.swept = sweep(case.bytes, cache, sorted(case.chain.files), cache.names(), threads)
            found.hashing = time.monotonic() - before
            steps = (*every(cache), written)
            problems = list(dict.fromkeys(problem for step in steps for problem in step(case)))
    failing = [problem for problem in problems if problem.verdict == "FAIL"]
    found.problems = failing + missing(
        case, [problem for problem in problems if problem.verdict != "FAIL"]
    )
    found.covers = covered.covers(case)
    found.trusted = trusted.lines(root)
    if found.verdict == "PASS":
        found.problems += covered.nothing(found.covers)
    found.resting = (
        below(sorted({problem.path for problem in failing}), all_chains(case.ledger))
        if failing
        else {}
    )
    found.seconds = time.monotonic() - start
    return found


def nothing_in(root: Path) -> DataError:
    """What is said of a place without a record of ours."""
    return DataError(
        "there is nothing to verify: no run record is here",
        where=str(root.resolve()),
        remedy="run from the project's root",
    )


def every(cache: Cache) -> tuple[Any, ...]:
    """The checks, but for what is made again."""
    return (
        *(check for check in checks.ALL if check is not checks.value),
        *declarations.ALL,
        *gates.ALL,
        *derivable.ALL,
        derivable.ledgers,
        *committed.ALL,
        committed.working,
        disk.contents,
        partial(disk.objects, cache=cache),
        disk.strays,
        disk.astray,
        partial(spare, cache=cache),
        pictures,
        unrecorded,
        *again.ALL,
    )


def opened(root: Path) -> Case:
    """The materials: every record, every lock, and every file that either names or that lies
    among them."""
    ledger, contents = Ledger(root), Bytes(root)
    locks = Locks(root, *sorted(file.parent.name for file in root.glob("reports/*/dvc.lock")))
    chain = Whole(Metric("*", "*", "*", "*", ()), (), heads=tuple(ledger.tables()))
    chain.nodes, early, params = ledger.nodes, [], {}
    for node in ledger.nodes:
        chain.files[node.path] = node
        for path, described in node.record.get("inputs", {}).items():
            chain.inputs.setdefault(path, []).append((node, described))
        named = (
            *node.record.get("inputs", ()),
            *node.record.get("outputs", ()),
            *present(root, node.homes),
        )
        chain.files.update({path: ledger.owner(path) for path in named})
    outs = [out for entry in locks.entries for out in entry.outs]
    chain.files.update(
        {
            path: chain.files.get(path) or ledger.owner(path)
            for path in (*present(root, outs), *chain.tables)
        }
    )
    try:
        params = settings.read_params(root)
    except ParamsError as error:
        early.append(Problem("FAIL", "params.yaml", " ".join(str(error).split())))
    return Case(root, chain.metric, ledger, chain, locks, contents, {}, params, early)


def present(root: Path, places: tuple[str, ...] | list[str]) -> list[str]:
    """The files at these places."""
    return [
        file.relative_to(root).as_posix()
        for file in records.files_in(root / place for place in places if (root / place).exists())
    ]


def shelved(case: Case, cache: Cache) -> None:
    """Outputs that lie in the cache and not on disk: they are read there."""
    for entry in case.locks.entries:
        for out, md5 in entry.outs.items():
            named = (
                {f"{out}/{name}": one for name, one in (cache.manifest(md5) or {}).items()}
                if md5.endswith(".dir")
                else {out: md5}
            )
            for path, name in named.items():
                case.chain.files.setdefault(path, case.ledger.owner(path))
                if not (case.root / path).exists() and cache.path(name).exists():
                    case.bytes.stead[path] = cache.path(name)


def spare(case: Case, cache: Cache) -> Iterator[Problem]:
    """Objects that no lock of this commit names (earlier results) are what their names say, too."""
    known = {md5 for entry in case.locks.entries for md5 in entry.outs.values()}
    known |= {
        name
        for md5 in sorted(known)
        if md5.endswith(".dir")
        for name in (cache.manifest(md5) or {}).values()
    }
    for name in cache.names():
        if name not in known and cache.whole(name) is False:
            path = cache.path(name)
            yield Problem(
                "FAIL",
                (
                    path.relative_to(case.root) if path.is_relative_to(case.root) else path
                ).as_posix(),
                "the object in DVC's cache is damaged; no output of this commit is read from it",
                broken=True,
            )


def pictures(case: Case) -> Iterator[Problem]:
    """What each table, claim and figure was made from is named: its record's inputs hold the
    evaluation of every data set it tells of."""
    for table in case.chain.tables:
        node = case.chain.files[table]
        try:
            datasets = {key.partition("/")[0] for key in read_json(case.root / table)["cells"]}
        except (DataError, KeyError, TypeError):
            continue  # `tabulated` says so
        for dataset in sorted(datasets) if node and not node.error else ():
            source = f"{table.rpartition('/')[0]}/evaluated/{dataset}/metrics.json"
            if source not in node.record["inputs"]:
                made = [path for path in node.record["outputs"] if "/figures/" in path]
                yield case.fails(
                    node.path,
                    f"it does not name {source}, which the table and {len(made)} figures tell of",
                )


def unrecorded(case: Case) -> Iterator[Problem]:
    """Outputs that no record speaks of (pages, summaries, lists of code) were made from what is
    here: each dependency has the MD5 of the lock."""
    recorded = {home for node in case.chain.nodes for home in (*node.homes, node.path)}
    for entry in case.locks.entries:
        if recorded.isdisjoint(entry.outs):
            for path, md5 in entry.deps.items():
                if case.foreign(entry) and path.startswith(("stages/", "data/code/")):
                    continue  # the code of an earlier commit
                if case.away(path):
                    continue  # the checks of presence say so
                now = (
                    manifest_md5(case.bytes.manifest(path))
                    if (case.root / path).is_dir()
                    else case.bytes.md5(path)
                )
                if now != md5:
                    out = next(iter(entry.outs), entry.lock)
                    if earlier := beside(case, entry, path, md5):
                        yield Problem("STALE", out, earlier, entry.cmd)
                        continue
                    yield Problem(
                        "FAIL",
                        out,
                        f"stale: {entry.name} read {path} as {md5[:12]}, it now is "
                        f"{str(now)[:12]}; {REPRO}",
                        entry.cmd,
                    )


def beside(case: Case, entry: Entry, path: str, md5: str) -> str:
    """That a page of another profile was made beside an earlier README or earlier records of its
    profile's data, or its summary beside earlier numbers of an experiment, which git's history
    holds; "" of anything else."""
    place = PurePosixPath(path)
    told = place.name == "README.md" or place.match("data/*/records")
    if entry.name.startswith("summary@"):
        told = place.name in ("metrics.json", "page.json")
    if not (case.foreign(entry) and told):
        return ""
    commit = case.code.history.commit_of(path, md5)
    return f"made beside an earlier {path}: that of commit {commit[:12]}" if commit else ""


def below(paths: list[str], chains: list[tuple[frozenset[str], list[str]]]) -> dict[str, list[str]]:
    """For each failing file or folder: the metrics whose chain meets it."""
    return {
        path: sorted(
            metric
            for files, metrics in chains
            if path in files or any(file.startswith(path + "/") for file in files)
            for metric in metrics
        )
        for path in paths
    }


def report_text(found: Verified) -> str:
    """The result as text, the verdict last."""
    size = found.swept.bytes / 1e6
    rate, alone = (size / max(one, 1e-9) for one in (found.hashing, found.swept.seconds))
    lines = [
        (
            f"{found.records:,} run records, {found.tables:,} tables, {found.swept.files:,} files, "
            f"{found.swept.objects:,} objects of DVC's cache"
        ),
        (
            f"{size:,.0f} MB hashed in {found.hashing:.1f} s ({rate:,.0f} MB/s beside other work, "
            f"{alone:,.0f} MB a second of a core), {found.seconds:.1f} s in all"
        ),
    ]
    last = {problem.path: problem for problem in found.problems}
    for problem in found.problems:
        lines += ["", *lines_of(problem)]
        metrics = found.resting.get(problem.path, [])
        if metrics and last[problem.path] is problem:
            rest = f"  {len(metrics):,} published numbers rest on {problem.path}:"
            lines.append(one_line(rest))
            lines += [f"    {cell}: {', '.join(names)}" for cell, names in grouped(metrics).items()]
    taken = ["", "taken on trust, as the commit has it:", *(f"  {one}" for one in found.trusted)]
    lines += taken if found.trusted else []
    return redact("\n".join([*lines, "", covered.coverage_line(found.covers), found.verdict]))
