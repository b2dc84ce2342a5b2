"""What the records, the locks, params.yaml and git say of each other: the audit's default depth,
without reading large files.

Each check takes the Case and yields Problems. A check that needs bytes reads only the small files
kept in git (records, validation results, tables); disk.py reads the rest.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages import records
from stages.audit import arithmetics, commands
from stages.audit.case import CHECKOUT, PULL, REPRO, Case
from stages.audit.chain import SEED, SOURCES, Node, pick
from stages.audit.finding import Problem
from stages.audit.raws import counts, sources
from stages.audit.settings import parameters
from stages.code import PACKAGE
from stages.errors import DataError, InputError
from stages.files import json_text, read_json
from stages.tables.gather import over_seeds


def opened(case: Case) -> Iterator[Problem]:
    """What went wrong already while the table and params.yaml were read."""
    yield from case.early


def value(case: Case) -> Iterator[Problem]:
    """The number in git is the evaluation's, exactly."""
    file = f"{case.metric.folder}/evaluated/{case.metric.dataset}/metrics.json"
    if case.early or not (case.root / file).exists():
        return
    try:
        cells = read_json(case.root / file)["cells"]
        mine = {f"{case.metric.dataset}/{cell}": cells[cell] for cell in case.chain.cells}
        entry = mine.get(case.metric.key) or over_seeds(mine)[case.metric.key]
        evaluated = pick(entry, case.metric)
    except (DataError, InputError, KeyError, TypeError, AttributeError) as error:
        yield case.fails(
            file, f"the evaluation does not hold this number ({' '.join(str(error).split())})"
        )
        return
    if evaluated != case.value:
        told = ", ".join(
            f"{key} {evaluated.get(key)!r} in the evaluation, {case.value.get(key)!r} in the table"
            for key in sorted(evaluated.keys() | case.value.keys())
            if evaluated.get(key) != case.value.get(key)
        )
        yield case.fails(
            case.metric.table, f"the table does not say what the evaluation says: {told}"
        )


def links(case: Case) -> Iterator[Problem]:
    """Every record can be read, and what one stage read is what another wrote."""
    for node in case.chain.nodes:
        if node.error:
            yield Problem("FAIL", node.path, f"the record cannot be read: {node.error}")
    for table in case.chain.tables:
        if case.chain.files[table] is None:
            yield Problem("INCONCLUSIVE", table, f"no record says how it was made; {REPRO}")
    for path, readers in case.chain.inputs.items():
        owner = case.chain.files[path]
        if owner is None and SOURCES.fullmatch(path):
            continue
        if owner is None:
            yield Problem("INCONCLUSIVE", path, f"no record says how it was made; {REPRO}")
        elif not owner.error:
            made = owner.record["outputs"].get(path)
            for reader, described in readers:
                if made is None:
                    yield case.fails(
                        path,
                        f"{reader.producer} read it, but the record of {owner.producer} does not "
                        "name it",
                    )
                elif made != described:
                    if told := case.code.beside(reader, owner, path, described):
                        yield Problem("STALE", reader.path, told, case.producer(reader.path))
                        continue
                    yield case.fails(
                        path,
                        f"{reader.producer} read {described['sha256'][:12]}, but {owner.producer} "
                        f"wrote {made['sha256'][:12]}: {REPRO}",
                    )


def names(case: Case) -> Iterator[Problem]:
    """A record speaks of its own place and its own seed (none was copied from another cell or
    re-labelled)."""
    for node in case.chain.nodes:
        strays = [path for path in node.record.get("outputs", {}) if not node.owns(path)]
        if strays:
            yield case.fails(
                node.path,
                f"it names outputs of another place ({strays[0]}): a record copied from another "
                "cell?",
            )
        if not node.error and (other := misnamed(node)):
            yield case.fails(node.path, other)
        seed = SEED.search(Path(node.homes[0]).name) if node.stage == "train" else None
        if seed and node.record.get("seed") != int(seed[1]) and not node.error:
            yield case.fails(
                node.path,
                f"the cell is named for seed {seed[1]}, its record says seed "
                f"{node.record.get('seed')}",
            )


def misnamed(node: Node) -> str:
    """How a record's own stage or cell is not that of its file's name; "" where they are."""
    parts = {*node.path.removesuffix(".json").split("/"), *Path(node.path).stem.split(".")}
    if node.record["stage"] != node.stage:
        return f"it says that its stage is {node.record['stage']}"
    if not parts.issuperset(node.record["cell"].split("/")):
        return f"it says that its cell is {node.record['cell']}"
    return ""


def presence(case: Case) -> Iterator[Problem]:
    """Every file of the chain is here with the recorded size; the small ones kept in git have
    the recorded bytes."""
    for path in case.chain.files:
        file, described = case.root / path, case.file_record(path)
        if not file.is_file():
            remedy = CHECKOUT if SOURCES.fullmatch(path) else PULL
            yield Problem(
                "INCONCLUSIVE", path, f"the file is missing; {remedy}", case.producer(path)
            )
        elif described and file.stat().st_size != described["bytes"]:
            yield case.fails(
                path,
                f"it has {file.stat().st_size} bytes, recorded are {described['bytes']}",
                broken=True,
            )
        elif described and case.kept(path) and case.bytes.sha256(path) != described["sha256"]:
            found = case.bytes.sha256(path) or "unreadable"
            yield case.fails(
                path,
                f"its SHA-256 is {found[:12]}, recorded is {described['sha256'][:12]}: edited by "
                "hand?",
                broken=True,
            )


def code(case: Case) -> Iterator[Problem]:
    """The code that made the number means what the tree's means; of a profile that is not the
    chosen one it may be that of an earlier commit."""
    for node in case.chain.nodes:
        judged = case.code.judge(node)
        if judged.verdict != "PASS":
            remedy = f"; {REPRO}" if judged.verdict == "FAIL" else ""
            yield Problem(judged.verdict, node.path, judged.text + remedy, case.producer(node.path))


def rested_on(case: Case, node: Node) -> set[str]:
    """The modules on whose closures a stage rests: its command's, those whose lists of code are
    among its deps, and the models of the trained cells that it read, whose lists are among the
    deps of their training. Undeclared as `commands.command` has it."""
    found = commands.modules(case.locks, node.homes[0])
    read = filter(None, map(case.ledger.owner, node.record["inputs"]))
    for home in sorted({owner.homes[0] for owner in read if owner.stage == "train"}):
        trainer = commands.command(case.locks, home).module
        found |= commands.modules(case.locks, home) - {trainer}
    return found


def declared(case: Case) -> Iterator[Problem]:
    """The lock's command is of the kind that dvc.yaml declares; the record's modules are those
    that its stage rests on."""
    for node in case.chain.nodes:
        entry = case.locks.producer(node.homes[0])
        if node.error or entry is None or entry.lock.endswith(".dvc") or case.earlier(node):
            continue
        try:
            wanted = rested_on(case, node)
        except commands.Undeclared as error:
            yield Problem("FAIL", entry.lock, " ".join(str(error).split()), node.producer)
            continue
        told = node.record["code"].get("modules") or ()
        for name in sorted({*told} ^ wanted):
            text = "lacks" if name in wanted else "names, where its stage does not declare it,"
            yield case.fails(node.path, f"the record of {node.producer} {text} the module {name}")
        for dep in commands.unread(case.locks, node.homes[0]):
            text = f"its entry {entry.name} does not have the declared {dep}"
            yield Problem("FAIL", entry.lock, text, node.producer)


def lists(case: Case) -> Iterator[Problem]:
    """The lists of code in git (data/code) are those of the sources: each is derived again."""
    entries = [
        case.locks.producer(node.homes[0]) for node in case.chain.nodes if not case.earlier(node)
    ]
    names = {dep for entry in entries if entry for dep in entry.deps}
    names |= {path for path in case.chain.files if case.chain.files[path] is None}
    for path in sorted(names):
        listed = commands.LISTED.fullmatch(path)
        if not listed or not (case.root / path).is_file():
            continue
        found = case.code.closure(f"{PACKAGE}.{listed['name']}")
        text = found and json_text(found)
        if text != (case.root / path).read_text(encoding="utf-8", errors="replace"):
            why = "it is not the list of its module's code" if found else "there is no such module"
            yield Problem("FAIL", path, f"{why}; {REPRO}", "python -m stages.code")


def environments(case: Case) -> Iterator[Problem]:
    """The libraries of this environment are those the stages ran with; another arithmetic is
    told in one note."""
    now = records.environment() | {"constraints": case.bytes.sha256("constraints.txt")}
    others: Counter[Any]
    own, others = arithmetics.line_of(now), Counter()
    for node in case.chain.nodes:
        if node.error or case.earlier(node):
            continue
        differing = moved(node.record["environment"], now)
        if differing:
            yield Problem(
                "INCONCLUSIVE",
                node.path,
                f"the stage ran in another environment: {', '.join(differing)}",
                node.producer,
            )
        line = arithmetics.line_of(node.record["environment"])
        others.update([] if arithmetics.alike(line, own) else [line])
    if others:
        text = f"{others.total():,} of its stages ran on another than this process' `{own}`: "
        yield Problem("NOTE", "arithmetic", text + arithmetics.quoted(set(others)))


def moved(environment: dict[Any, Any], today: dict[Any, Any]) -> list[str]:
    """What of a stage's environment is another today, in words."""
    then, now = arithmetics.comparable(environment), arithmetics.comparable(today)
    differing = [
        f"{key} {then.get(key)} -> {now.get(key)}"
        for key in ("python", "machine", "system")
        if then.get(key) != now.get(key)
    ]
    before, after = then["libraries"], now["libraries"]
    differing += [
        f"{name} {before.get(name)} -> {after.get(name)}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    return differing + (
        ["constraints.txt has changed"] if then.get("constraints") != now["constraints"] else []
    )


def locked(case: Case) -> Iterator[Problem]:
    """dvc.lock knows every stage of the chain, its entries meet, and the files kept in git have
    the bytes it names."""
    for error in case.locks.errors:
        yield Problem("FAIL", error.where or "dvc.lock", " ".join(str(error).split()))
    for node in case.chain.nodes:
        entry = case.locks.producer(node.homes[0])
        if entry is None and case.earlier(node):
            continue
        if entry is None:
            yield Problem(
                "INCONCLUSIVE",
                node.homes[0],
                f"no dvc.lock names the stage that made it; {REPRO}",
                node.producer,
            )
            continue
        for path, md5 in entry.deps.items():
            source = case.locks.producer(path)
            if source and source.outs.get(path, md5) != md5 and case.chain.wanted(path, node.stage):
                yield case.fails(
                    path,
                    f"stale: {entry.name} read {md5[:12]}, {source.name} has since made "
                    f"{source.outs[path][:12]}; {REPRO}",
                )
        for path in (node.path, *node.homes):
            found = case.bytes.md5(path) if path in case.chain.files else None
            if found and found != entry.outs.get(path, found):
                yield case.fails(
                    path,
                    f"its MD5 is {found[:12]}, {entry.lock} says {entry.outs[path][:12]}: edited "
                    "by hand?",
                    broken=True,
                )


ALL = (
    opened,
    value,
    links,
    names,
    presence,
    parameters,
    code,
    declared,
    lists,
    environments,
    locked,
    sources,
    counts,
)
