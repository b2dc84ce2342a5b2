"""What the records, the locks, params.yaml and git say of each other: the audit's default depth,
without reading large files.

Each check takes the Case and yields Problems. A check that needs bytes reads only the small files
kept in git (records, validation results, tables); disk.py reads the rest.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages import params, records
from stages.audit import arithmetics, history
from stages.audit.chain import SEED, SOURCES, Chain, Ledger, Metric, pick
from stages.audit.finding import Problem
from stages.audit.hashes import Bytes, Locks
from stages.errors import DataError, InputError, TradewindError
from stages.files import read_json
from stages.winds import tabulate

REPRO, PULL = (
    "run `dvc repro`",
    "run `dvc pull` (or `dvc checkout`, or `dvc repro` to make it anew)",
)
CHECKOUT = "`git checkout` it"
COUNTS = re.compile(r"data/[^/]+/decoded/[^/]+/counts\.json")


@dataclass
class Case:
    """One audit's materials."""

    root: Path
    metric: Metric
    ledger: Ledger
    chain: Chain
    locks: Locks
    bytes: Bytes
    value: dict
    params: dict = field(default_factory=dict)
    early: list[Problem] = field(default_factory=list)  # found while opening
    commit: history.Commit | None = None
    own: frozenset[str] = frozenset()  # what differs from the commit by an honest run of it

    def described(self, path: str) -> dict | None:
        """What the records say of a file: its producer's word, else its first reader's."""
        owner = self.chain.files.get(path)
        made = owner.record.get("outputs", {}).get(path) if owner else None
        readers = self.chain.inputs.get(path, ())
        return made or (readers[0][1] if readers else None)

    def kept(self, path: str) -> bool:
        """Whether a file is one of the small ones in git: a result, or a source."""
        owner = self.chain.files.get(path)
        return (
            path in owner.homes or owner.stage in ("sweep", "tabulate")
            if owner
            else bool(SOURCES.fullmatch(path))
        )

    def fails(self, path: str, text: str, broken: bool = False) -> Problem:
        """FAIL for a file, with the command that makes it."""
        return Problem("FAIL", path, text, self.producer(path), broken)

    def producer(self, path: str) -> str:
        """The command that makes a file, as the lock has it; else the record's stage and cell."""
        entry, owner = self.locks.producer(path), self.chain.files.get(path)
        return entry.cmd.removeprefix("exec ") if entry else owner.producer if owner else ""


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
        entry = mine.get(case.metric.key) or tabulate.over_seeds(mine)[case.metric.key]
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
        seed = SEED.search(Path(node.homes[0]).name) if node.stage == "train" else None
        if seed and node.record.get("seed") != int(seed[1]) and not node.error:
            yield case.fails(
                node.path,
                f"the cell is named for seed {seed[1]}, its record says seed "
                f"{node.record.get('seed')}",
            )


def presence(case: Case) -> Iterator[Problem]:
    """Every file of the chain is here with the recorded size; the small ones kept in git have
    the recorded bytes."""
    for path in case.chain.files:
        file, described = case.root / path, case.described(path)
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


def parameters(case: Case) -> Iterator[Problem]:
    """The parameters that made the number are those of params.yaml today: by the lock's keys,
    and by each value the record names."""
    whole = completed(case.root)
    for node in case.chain.nodes:
        entry = case.locks.producer(node.homes[0])
        told = whole_keys(entry.params) if entry else {}
        for key, (file, then) in told.items():
            now = dig(case.params, key)
            if now != then:
                yield Problem(
                    "FAIL",
                    "params.yaml",
                    f"stale: {node.producer} was run with {key} = {short(then)}, {file} now says "
                    f"{short(now)}; {REPRO}",
                    node.producer,
                )
        known: dict[str, list] = {}
        for name, content in (*sections(case.params, told), *sections(whole, told)):
            known.setdefault(name, []).append(content)
        for name, content in leaves(node.record.get("params", {})):
            alike = [
                value for value in known.get(name, ()) if kind(value) is kind(content)
            ]  # another kind: derived, not copied
            if alike and content not in alike:
                yield Problem(
                    "FAIL",
                    node.path,
                    f"stale: the record of {node.producer} says {name} = {short(content)}, the "
                    f"parameters say {' or '.join(sorted({short(value) for value in alike}))}; "
                    f"{REPRO}",
                    node.producer,
                )


def whole_keys(told: dict[str, dict]) -> dict[str, tuple[str, Any]]:
    """A lock's parameters by their place in the whole: the file that they stand in, and the
    value."""
    placed = {file: params.prefix(file) for file in told}
    return {
        ".".join(filter(None, (placed[file], key))): (file, content)
        for file, keys in told.items()
        if placed[file] is not None
        for key, content in keys.items()
    }


def completed(root: Path) -> dict:
    """params.yaml with what it leaves to the schema's defaults, as stages are handed it; {}
    where it is not valid (`opened` says so)."""
    try:
        return params.load(root / "params.yaml").model_dump(mode="json")
    except TradewindError:
        return {}


def kind(content: Any) -> type:
    """The JSON type of a value, whole numbers and others being one."""
    return float if type(content) is int else type(content)


def sections(params: dict, keys: dict) -> Iterator[tuple[str, Any]]:
    """The leaves of those parts of params.yaml that a stage declares; of all of it where no lock
    says."""
    for key in keys:
        yield from leaves({key.rpartition(".")[2]: dig(params, key)})
    yield from () if keys else leaves(params)


def leaves(content: dict) -> Iterator[tuple[str, Any]]:
    """(name, value) of everything in nested mappings that is no mapping."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield str(name), value


def dig(params: Any, key: str) -> Any:
    """The value at a dotted key, None where there is none."""
    for part in key.split("."):
        params = params.get(part) if isinstance(params, dict) else None
    return params


def short(content: Any) -> str:
    """A value in at most 80 characters."""
    text = json.dumps(content, sort_keys=True, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def code(case: Case) -> Iterator[Problem]:
    """The code that made the number is the tree's: no declared file changed, gone or new; the
    digest is that of its list."""
    for node in case.chain.nodes:
        then = node.record.get("code", {}).get("files", {})
        now = {path: case.bytes.sha256(path) for path in then}
        differing = [
            f"{path} ({'changed' if now[path] else 'gone'})"
            for path in sorted(then)
            if now[path] != then[path]
        ]
        declared = [case.root / path for path in case.locks.code(node.homes[0])]
        present = {
            path.relative_to(case.root).as_posix()
            for path in records.files_in(path for path in declared if path.exists())
        }
        differing += [f"{path} (new)" for path in sorted(present - then.keys())] if then else []
        if differing:
            yield case.fails(
                node.path,
                f"the code of {node.producer} is not what it ran with: {', '.join(differing)}; "
                f"{REPRO}",
            )
        if then and records.digest_of(then) != node.record["code"].get("digest"):
            yield case.fails(node.path, "the record's code digest is not that of its list of files")


def environments(case: Case) -> Iterator[Problem]:
    """The libraries of this environment are those the stages ran with; another arithmetic is
    told in one note."""
    now = records.environment() | {"constraints": case.bytes.sha256("constraints.txt")}
    own, others = arithmetics.line_of(now), Counter()
    for node in case.chain.nodes:
        if node.error:
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


def moved(environment: dict, today: dict) -> list[str]:
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


def sources(case: Case) -> Iterator[Problem]:
    """The raw files are those that the manifest lists and that params.yaml pins."""
    for node in case.chain.nodes:
        if node.stage != "acquire" or node.error:
            continue
        manifest, dataset = f"{node.homes[0]}/manifest.json", Path(node.homes[0]).name
        listed = manifest_of(case.root / manifest)
        pinned = pins(case, dataset)
        for path in sorted(
            path for path in case.chain.files if node.owns(path) and path != manifest
        ):
            name, described = path.removeprefix(node.homes[0] + "/"), case.described(path) or {}
            pin = pinned.get(name)
            if listed is not None and (listed.get(name) or {}).get("sha256") != described.get(
                "sha256"
            ):
                yield Problem(
                    "FAIL",
                    manifest,
                    f"it does not list {name} with the recorded SHA-256",
                    node.producer,
                )
            if pin and pin != described.get("sha256"):
                place = listing(case, dataset) or f"datasets.{dataset}"
                yield Problem(
                    "FAIL",
                    path,
                    f"{place} pins {pin[:12]}, recorded is {str(described.get('sha256'))[:12]}",
                    node.producer,
                )


def counts(case: Case) -> Iterator[Problem]:
    """Every row that was read was kept or dropped for a reason: the decoder's counts add up."""
    for path in sorted(
        path for path in case.chain.files if COUNTS.fullmatch(path) and (case.root / path).is_file()
    ):
        try:
            for level in levels(read_json(case.root / path)):
                if level["read"] != level["kept"] + sum(level["dropped"].values()):
                    yield case.fails(
                        path,
                        f"its counts do not add up: {level['read']:,} read, {level['kept']:,} "
                        f"kept, {sum(level['dropped'].values()):,} dropped",
                    )
        except (DataError, KeyError, TypeError, ValueError, AttributeError) as error:
            yield case.fails(
                path, f"it does not hold counts of rows ({' '.join(str(error).split())})"
            )


def levels(content: dict) -> Iterator[dict]:
    """Each mapping with a count of what was read, at whatever depth."""
    if "read" in content:
        yield content
    for part in content.values():
        if isinstance(part, dict):
            yield from levels(part)


def listing(case: Case, dataset: str) -> str | None:
    """The file that pins a data set of many files, None where the parameters do it themselves."""
    return dig(case.params, f"datasets.{dataset}.listed.listing")


def pins(case: Case, dataset: str) -> dict[str, str | None]:
    """Name -> SHA-256 of a data set's pinned files; a listing that is not here pins nothing
    (`presence` and acquisition say so)."""
    if place := listing(case, dataset):
        file = case.root / str(place)
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        return {
            parts[2]: parts[0]
            for parts in (line.split(" ", 2) for line in lines)
            if len(parts) == 3
        }
    return {
        name: (source or {}).get("sha256")
        for name, source in (dig(case.params, f"datasets.{dataset}.files") or {}).items()
    }


def manifest_of(file: Path) -> dict | None:
    """The files a raw manifest lists; None where it is missing or no manifest (presence and disk
    say so)."""
    try:
        return read_json(file)["files"]
    except (DataError, KeyError, TypeError):
        return None


def read_params(root: Path) -> dict:
    """params.yaml and its parts as plain data. ParamsError where they cannot be read."""
    whole = params.gathered(root / "params.yaml")
    return whole if isinstance(whole, dict) else {}


ALL = (
    opened,
    value,
    links,
    names,
    presence,
    parameters,
    code,
    environments,
    locked,
    sources,
    counts,
)
