"""The audit of one number, to the depth asked for.

record  the records, locks, parameters, code, environment and commit agree with each other and with
        the small files (seconds)
hash    and every byte of the chain, on disk and in DVC's cache, is the recorded one; what stands in
        two places (data and what was prepared of them, errors and metrics) agrees
eval    and the number comes out again when the checkpoint is evaluated
train   and the checkpoint comes out again when the cell is trained
raw     and the data come out again when they are acquired or simulated, decoded and prepared
"""

from pathlib import Path
from typing import Any

from stages.audit import (
    checks,
    committed,
    declarations,
    derivable,
    disk,
    gates,
    remade,
    rerun,
    settings,
    twice,
)
from stages.audit.case import Case
from stages.audit.chain import SOURCES, Ledger, Metric, file_of, published, walk
from stages.audit.finding import Finding, Problem, Step, worst
from stages.audit.hashes import Bytes, Locks
from stages.audit.impact import all_chains, resting
from stages.audit.telling import unit
from stages.errors import DataError, InputError, ParamsError
from stages.files import read_json
from stages.params import nearest

RECORD = (*checks.ALL, *declarations.ALL, *gates.ALL, *derivable.ALL, *committed.ALL)
DEPTHS = ("record", "hash", "eval", "train", "raw")


def audit(path: str, depth: str = "record", root: str | Path = Path(".")) -> Finding:
    """Audit the number at `experiment/profile/dataset/cell/metric`. InputError for an unknown
    depth or number."""
    if depth not in DEPTHS:
        raise InputError("unknown depth of verification", found=depth + nearest(depth, DEPTHS))
    root, metric = Path(root), Metric.parse(path)
    case, found = open_case(root, metric), Finding(str(metric), depth)
    found.value, found.files = case.value, sorted(case.chain.files)
    found.problems = [problem for check in RECORD for problem in check(case)]
    for name, verify in (
        ("hash", lambda: [p for check in (*disk.ALL, twice.chain) for p in check(case)]),
        ("eval", lambda: rerun.evaluation(case, found)),
        ("train", lambda: rerun.training(case, found)),
        ("raw", lambda: remade.remade(case, found)),
    ):
        if DEPTHS.index(depth) < DEPTHS.index(name):
            break
        if name != "hash" and name != depth:
            continue  # what a deeper one makes again is evaluated, and trained, there
        if name != "hash" and (text := earlier(found)):
            found.notes.append(f"{name} was not run: {text}")
            break
        if name != "hash" and worst(found.problems) == "FAIL":
            found.notes.append(f"{name} was not run: the chain is already broken")
            break
        found.problems += list(verify())
    found.problems = unique(found.problems)
    found.steps = steps(case, found)
    places = {problem.path for problem in found.problems if problem.broken}
    broken = {
        file
        for file in found.files
        if any(file == place or file.startswith(place + "/") for place in places)
    }
    found.resting = resting(broken, all_chains(case.ledger)) if broken else []
    return found


def earlier(found: Finding) -> str:
    """By which earlier code the number was made; "" where that of today means the same."""
    if worst(found.problems) != "STALE":
        return ""
    text = next(problem.text for problem in found.problems if problem.verdict == "STALE")
    return f"{text}; it is made again from a clone of that commit"


def open_case(root: Path, metric: Metric) -> Case:
    """Everything an audit looks at. A table or params.yaml that cannot be read is a problem of
    the finding, not an error."""
    ledger, locks, contents = Ledger(root), Locks(root, metric.experiment), Bytes(root)
    cells: tuple[str, ...]
    value: dict[Any, Any]
    value, cells, early = {}, (metric.cell,), []
    entry = locks.producer(metric.table)
    try:
        value, cells = published(ledger, metric)
    except DataError as error:
        early.append(
            Problem(
                "FAIL",
                metric.table,
                " ".join(str(error).split()),
                entry.cmd if entry else "",
                broken=True,
            )
        )
    except InputError as error:
        if entry is None or contents.md5(metric.table) in (None, entry.outs.get(metric.table)):
            raise
        early.append(
            Problem("FAIL", metric.table, " ".join(str(error).split()), entry.cmd, broken=True)
        )
    try:
        params = settings.read_params(root)
    except ParamsError as error:
        params = {}
        early.append(Problem("FAIL", "params.yaml", " ".join(str(error).split())))
    return Case(
        root, metric, ledger, walk(ledger, metric, cells), locks, contents, value, params, early
    )


def unique(problems: list[Problem]) -> list[Problem]:
    """Each file's problem once per text, the worst first, in the order of the checks."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.verdict != "FAIL")


def steps(case: Case, found: Finding) -> list[Step]:
    """The chain as lines: the number, each stage with its files, the commit."""
    file, keeper = file_of(case.root, case.metric)
    lines = [Step("value", f"{file} ({keeper})", status(found, {file}), metric_text(case.value))]
    for node in case.chain.nodes:
        own = sorted(path for path in case.chain.files if node.owns(path))
        bad = status(found, {node.path, *own, *node.homes}, node.producer)
        lines.append(
            Step(node.stage, node.homes[0], bad, f"record {node.path}" + seeded(node.record))
        )
        listed = licences(case, node.homes[0])
        lines += [
            Step("", path, status(found, {path}), file_detail(case, path, listed))
            for path in own
            if path != file
        ]
    sources = {path for path in case.chain.inputs if SOURCES.fullmatch(path)}
    if sources:
        lines.append(
            Step(
                "",
                "sources (git)",
                status(found, sources),
                f"{len(sources)} files written by hand: printed numbers",
            )
        )
    commit = case.commit
    foreign = set(commit.dirty if commit else ()) - case.own
    tree = "dirty" if foreign else "an own run in this cone" if case.own else "clean in this cone"
    detail = (
        f"{commit.head[:12]}, {tree}, table last touched by {commit.touched or '-'}"
        if commit
        else "none"
    )
    return [*lines, Step("commit", "git", status(found, {"."} | foreign), detail)]


def status(found: Finding, paths: set[str], producer: str = "") -> str:
    """ok, or the worst verdict among the problems of these files (or of this producer's
    parameters)."""
    mine = [
        p
        for p in found.problems
        if p.path in paths or (producer and p.path == "params.yaml" and p.producer == producer)
    ]
    return worst(mine).replace("PASS", "ok")


def seeded(record: dict[Any, Any]) -> str:
    """The seed, where a stage has one."""
    return "" if record.get("seed") is None else f", seed {record['seed']}"


def licences(case: Case, home: str) -> dict[Any, Any]:
    """What the manifest of a raw folder says of each file; empty for other folders."""
    try:
        return read_json(case.root / home / "manifest.json")["files"] if "/raw/" in home else {}
    except (DataError, KeyError, TypeError):
        return {}


def file_detail(case: Case, path: str, listed: dict[Any, Any]) -> str:
    """SHA-256 and size as recorded; licence and source of a raw file."""
    described, about = case.file_record(path) or {}, listed.get(Path(path).name)
    text = (
        f"sha256 {described['sha256']}, {described['bytes']:,} bytes"
        if described
        else "not in a record"
    )
    return text + (
        f", licence {about.get('licence')}, source {about.get('source')}"
        if isinstance(about, dict)
        else ""
    )


def metric_text(value: dict[Any, Any]) -> str:
    """'7.42 kn [7.0, 7.9], n = 3,000'."""
    if not value:
        return "-"
    number = value.get("value", value.get("mean"))
    text = f"{number!r} {unit(value)}".strip()
    if "low" in value and "high" in value:
        text += f" [{value['low']:.4g}, {value['high']:.4g}]"
    return text + (f", n = {value['n']:,}" if isinstance(value.get("n"), int) else "")
