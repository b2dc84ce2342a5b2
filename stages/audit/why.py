"""Why a published number is another one at another commit: the causes, each with the stage where it
enters (`tradewind why`).

Both commits are read from git's objects. From the table the walk follows only files whose SHA-256
differs, so a change above a file that came out the same bytes is told apart as one without effect,
and a changed file that a record explains by other changed files is a consequence, not a cause.
Causes: data (raw files, sources in git), parameters, code (of the records' own lists), environment,
arithmetic, seed, and a step that one commit lacks. A stage that made other bytes of the same
everything, and a table that is not its record's, are no causes: FAIL.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.audit.amiss import stale
from stages.audit.causes import PROOFLESS, Change, differences, merged, same, unpinned
from stages.audit.chain import PLACES, SEED, Metric, Node, pick
from stages.audit.counting import rows
from stages.audit.earlier import History
from stages.audit.snapshot import Snapshot, resolve
from stages.errors import InputError, TradewindError
from stages.files import read_json
from stages.tables.gather import over_seeds

PINNED = (
    "files",
    "listed",
    "archive",
    "captures",
)  # data sets whose bytes the parameters or the captures name, not our code
UNSET = ("absent → null", "null → absent")  # a setting that was never given got a name, or lost it
NOTES = ("manifest.json", "meta.json")  # they describe the raw files beside them


@dataclass
class Why:
    """The answer: both entries of the number, its causes, what changed in its cone without
    effect on it, and what is stale at a commit."""

    metric: Metric
    commits: tuple[str, str]
    old: dict[Any, Any]
    new: dict[Any, Any]
    causes: list[Change] = field(default_factory=list)
    idle: list[Change] = field(default_factory=list)
    followed: list[Change] = field(
        default_factory=list
    )  # raw files that a cause above them made other
    stale: list[str] = field(default_factory=list)
    absent: str = ""

    @property
    def moved(self) -> bool:
        """Whether the number differs."""
        return main(self.old) != main(self.new)

    @property
    def exit_code(self) -> int:
        """1 where the number moved and no run explains it."""
        unexplained = not self.causes or any(cause.kind in PROOFLESS for cause in self.causes)
        return int(not self.absent and self.moved and unexplained)


@dataclass
class Pair:
    """The two commits, their records by path, and each record's inputs (path -> SHA-256) that
    concern the metric."""

    a: Snapshot
    b: Snapshot
    metric: Metric

    def __post_init__(self) -> None:
        self.evaluated = f"{self.metric.folder}/evaluated/{self.metric.dataset}/metrics.json"
        self.nodes = [cone(side, self.evaluated) for side in (self.a, self.b)]
        self.followed: list[Change] = []
        self.history = History(self.a.root)
        self.reads: list[dict[str, dict[str, dict[Any, Any]]]] = [{}, {}]
        for side, reads in zip((self.a, self.b), self.reads, strict=True):
            for path, readers in side.chain.inputs.items():
                for node, described in readers:
                    reads.setdefault(node.path, {})[path] = described

    def names(self) -> list[str]:
        """Every record's path, from the raw files down."""
        either, order = self.nodes[0] | self.nodes[1], list(PLACES)
        return sorted(either, key=lambda path: (order.index(either[path].stage), path))

    def both(self, path: str) -> tuple[Node | None, Node | None]:
        """A record at both commits."""
        return self.nodes[0].get(path), self.nodes[1].get(path)

    def changed_inputs(self, path: str) -> list[str]:
        """What a record read that was other bytes at the other commit."""
        old, new = (reads.get(path, {}) for reads in self.reads)
        return sorted(
            name
            for name in old.keys() | new.keys()
            if name not in old or name not in new or old[name]["sha256"] != new[name]["sha256"]
        )

    def owner(self, path: str) -> Node | None:
        """The record that made a file, at either commit."""
        return self.b.ledger.owner(path) or self.a.ledger.owner(path)


def cone(side: Snapshot, evaluated: str) -> dict[str, Node]:
    """The records that a number rests on, by path: the table's, and all above the evaluated
    numbers. What the table reads besides (other arms' sweeps, for its figures) moves no number;
    without evaluated numbers the whole chain counts."""
    start = side.chain.files.get(side.chain.metric.table)
    if start is None or evaluated not in side.chain.inputs:
        return {node.path: node for node in side.chain.nodes}
    found, queue = {start.path: start}, [side.ledger.owner(evaluated)]
    while queue:
        node = queue.pop()
        if node and node.path not in found:
            found[node.path] = node
            read = [
                path
                for path, readers in side.chain.inputs.items()
                if any(reader is node for reader, _ in readers)
            ]
            queue += map(side.ledger.owner, read)
    return found


def main(entry: dict[Any, Any]) -> float | None:
    """The number itself."""
    return entry.get("value", entry.get("mean"))


def span(text: str) -> tuple[str, str]:
    """The two commits of 'A..B'; an end left out is HEAD."""
    old, dots, new = text.partition("..")
    if not dots or "." in (new[:1], old[-1:]):
        raise InputError(
            "that is no span of two commits",
            found=text,
            expected="A..B",
            remedy="for example HEAD~1..HEAD",
        )
    return old or "HEAD", new or "HEAD"


def why(commits: str, address: str, root: str | Path = Path(".")) -> Why:
    """Compare a number and its cone at the two commits of 'A..B'. InputError for an unknown
    commit or number."""
    root, metric, names = Path(root), Metric.parse(address), span(commits)
    old, new = (resolve(root, name) for name in names)
    with tempfile.TemporaryDirectory(prefix="why-") as folder:
        return compare(root, metric, (old, new), Path(folder))


def compare(root: Path, metric: Metric, commits: tuple[str, str], folder: Path) -> Why:
    """The answer, with the commits' records laid into `folder`."""
    a = Snapshot(root, commits[0], metric, folder / "a")
    b = Snapshot(root, commits[1], metric, folder / "b") if commits[1] != commits[0] else a
    if a.absent and b.absent:
        raise b.absent
    answer = Why(metric, commits, a.value, b.value)
    if a.absent or b.absent:
        answer.absent = " ".join(str(a.absent or b.absent).split(" (known:")[0].split())
        return answer
    pair = Pair(a, b, metric)
    reached = reach(pair, copied(pair)) if answer.moved else {}
    idle: list[Any]
    causes: list[Any]
    causes, idle = [], []
    for path in pair.names():
        effective, rest = explained(pair, path, reached.get(path))
        causes, idle = [*causes, *effective], [*idle, *rest]
    causes += sources(pair, reached)
    known = {change.key for change in [*causes, *pair.followed]}
    idle = [
        change
        for change in [*idle, *sources(pair, None)]
        if change.key not in known
        and not any(change.kind == "arithmetic" and same(change, cause) for cause in causes)
    ]
    pins = [side.read({"constraints.txt"}).get("constraints.txt", b"") for side in (a, b)]
    answer.causes = unpinned(merged([*causes, *edited(pair, answer.moved, causes)]), *pins)
    answer.idle, answer.followed = unpinned(merged(idle), *pins), pair.followed
    answer.stale = [
        f"at {side.commit[:12]}: {text}"
        for side in dict.fromkeys((a, b))
        for text in stale(side, pair.nodes[side is b], pair.history)
    ]
    return answer


def copied(pair: Pair) -> bool:
    """Whether the table holds just what the evaluation wrote, so that its making changed nothing:
    at every commit whose evaluated numbers are still here, and these are at least one."""
    known = 0
    for side in (pair.a, pair.b):
        described = side.chain.inputs.get(pair.evaluated)
        file = side.object(pair.evaluated, described[0][1]["sha256"]) if described else None
        if file and evaluated(file, pair.metric) != main(side.value):
            return False
        known += file is not None
    return known > 0


def evaluated(file: Path, metric: Metric) -> float | None:
    """The number in what an evaluation wrote, an arm's made from its cells as the table makes
    it; None where it is not there."""
    try:
        cells = {
            f"{metric.dataset}/{name}": entry for name, entry in read_json(file)["cells"].items()
        }
        return main(pick(cells.get(metric.key) or over_seeds(cells)[metric.key], metric))
    except (TradewindError, KeyError, TypeError, AttributeError):
        return None


def reach(pair: Pair, faithful: bool) -> dict[str, list[str]]:
    """Record -> its inputs that differ, for the records that changed files lead to from the table.
    Where the evaluated numbers differ the table's other inputs are not followed, and where it
    only copied them (`faithful`) it is itself no place of a cause."""
    start, found = pair.owner(pair.metric.table), {}
    queue = [start.path] if start else []
    while queue:
        path = queue.pop()
        if path in found:
            continue
        found[path] = changed = pair.changed_inputs(path)
        if path == start.path and pair.evaluated in changed:
            found[path] = changed = [pair.evaluated]
        if all(pair.both(path)):
            queue += [node.path for node in map(pair.owner, changed) if node]
    if start and faithful and pair.evaluated in found[start.path]:
        del found[start.path]
    return found


def explained(
    pair: Pair, path: str, changed: list[str] | None
) -> tuple[list[Change], list[Change]]:
    """What of a record is a cause, and what changed there without effect. `changed`: its
    differing inputs, None if none leads here."""
    old, new = pair.both(path)
    stage = (new or old).producer
    if old is None or new is None:
        found = [lone(pair, new or old, pair.b if new else pair.a)]
        return (found, []) if changed is not None else ([], found)
    if old.error or new.error:
        return [
            Change("unexplained", path, old.error or new.error, stage)
        ] if changed is not None else [], []
    own = differences(old.record, new.record, stage, pair.history.meaning)
    if new.stage == "acquire":
        return acquired(pair, new, own, changed is not None)
    if changed is None:
        return [], own
    unset = [change for change in own if change.how in UNSET]
    own = [change for change in own if change not in unset]
    if not own and not changed and old.record["outputs"] != new.record["outputs"]:
        return [
            Change(
                "unexplained",
                new.homes[0],
                "other bytes of the same inputs, code, parameters, seed, environment and "
                "arithmetic",
                stage,
            )
        ], unset
    return own, unset


def lone(pair: Pair, node: Node, side: Snapshot) -> Change:
    """A record of one commit only: of an arm's cell it is a seed more or less, else a step that
    the other commit lacks."""
    seed = (
        SEED.search(node.record.get("cell", ""))
        if node.stage == "train" and pair.a.cells != pair.b.cells
        else None
    )
    if seed:
        return Change(
            "seed", f"seed {seed[1]}", "added" if side is pair.b else "removed", node.producer
        )
    return Change("stage", node.homes[0], f"only at {side.commit[:12]}", node.producer)


def acquired(
    pair: Pair, node: Node, own: list[Change], effective: bool
) -> tuple[list[Change], list[Change]]:
    """Raw data: the cause where the parameters pin its bytes or nothing else of its making
    differs; else what made it is the cause."""
    raw = raws(pair, readable(pair, node), node.producer)
    dataset = node.record["params"].get("dataset") or {}
    if not effective:
        return [], [*own, *raw]
    if dataset.get("kind") in PINNED:
        return raw, [
            change
            for change in own
            if not change.what.startswith(("dataset.files.", "dataset.listed"))
        ]
    if own:
        pair.followed += raw
    return own or raw, []


def readable(pair: Pair, node: Node) -> list[str]:
    """The raw files of a record that the cone reads at either commit and that differ."""
    names = {path for path in pair.a.chain.inputs | pair.b.chain.inputs if node.owns(path)}
    return sorted(name for name in names if digest(pair.a, name) != digest(pair.b, name))


def digest(side: Snapshot, path: str) -> str | None:
    """The SHA-256 that a file was read as."""
    readers = side.chain.inputs.get(path)
    return readers[0][1]["sha256"] if readers else None


def raws(pair: Pair, names: Iterable[str], stage: str) -> list[Change]:
    """Files of data as changes, with their rows; what only describes the others is left out
    where others changed."""
    names = list(names)
    telling = [name for name in names if Path(name).name not in NOTES] or names
    found = []
    for name in telling:
        sides = []
        for side in (pair.a, pair.b):
            readers = side.chain.inputs.get(name)
            sides.append(
                (file_at_commit(side, name, readers[0][1]["sha256"]), readers[0][1]["bytes"])
                if readers
                else None
            )
        how = "added" if sides[0] is None else "removed" if sides[1] is None else "changed"
        found.append(Change("data", name, f"{how}, {rows(name, *sides)}", stage))
    return found


def file_at_commit(side: Snapshot, name: str, sha: str) -> Path | None:
    """The bytes of a file at a commit: from git where it is kept there, from the working copy or
    the cache else."""
    if name in side.tree:
        file = side.folder / "held" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(side.read({name})[name])
        return file
    return side.object(name, sha)


def sources(pair: Pair, reached: dict[str, list[str]] | None) -> list[Change]:
    """Files that no record made (kept in git, or dropped by hand) and that differ: those that
    led to the number, or all (None)."""
    either = {
        path
        for name in pair.names()
        for path in (pair.changed_inputs(name) if reached is None else reached.get(name, ()))
    }
    found = sorted(path for path in either if pair.owner(path) is None)
    kept = [path for path in found if path in pair.a.tree or path in pair.b.tree]
    return raws(pair, kept, "source in git") + raws(
        pair, [path for path in found if path not in kept], "taken in"
    )


def edited(pair: Pair, moved: bool, causes: list[Change]) -> list[Change]:
    """The table where it is not what its own record says was written; and the number where
    nothing at all explains it."""
    found = []
    for side in (pair.a, pair.b):
        node = side.chain.files.get(pair.metric.table)
        described = node.record.get("outputs", {}).get(pair.metric.table) if node else None
        if moved and (
            described is None
            or described["sha256"] != side.sha256({pair.metric.table})[pair.metric.table]
        ):
            how = (
                f"at {side.commit[:12]} it is not what its record says was written: edited by hand"
            )
            found.append(
                Change("edit", pair.metric.table, how, node.producer if node else "no record")
            )
    if moved and not found and not causes:
        how = "nothing in its cone differs: edited by hand, or its making is not deterministic"
        found.append(Change("unexplained", pair.metric.table, how, "tabulate"))
    return found
