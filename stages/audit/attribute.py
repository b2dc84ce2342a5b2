"""How much of a change each cause makes: the number made again from the old commit with one cause
switched (`why --attribute`).

Each variant is a temporary project: the old commit's code, parameters and raw data, with those of
one kind taken from the new commit. The stages of the cone that it touches run there by their own
commands (dvc.lock), upstream first; all other inputs are links to the recorded bytes, so nothing is
made that came out the same and nothing is written in the project. A control re-runs what any
variant re-runs and switches nothing. What the effects do not add up to is interaction, with what
cannot be switched: libraries, and stages or cells that one commit lacks. Parameters are switched as
a whole (of them the seeds apart), code as a whole.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.audit.causes import differences
from stages.audit.chain import PLACES, Node
from stages.audit.commands import RUN
from stages.audit.hashes import Locks
from stages.audit.render import redact
from stages.audit.snapshot import Snapshot
from stages.audit.why import PINNED, Pair, Why, digest, evaluated, main, readable
from stages.errors import TradewindError
from stages.files import sha256
from stages.params import read_yaml

SWITCHED = ("data", "parameter", "code", "seed")
NEEDED = (
    "stages/",
    "data/sources/",
    "data/published/",
)  # what of a commit a stage may read beside data, declarations and companions
SETTINGS = "stages/params/"


class Unmade(TradewindError):
    """A variant could not be made; the message says why."""


@dataclass(frozen=True)
class Effect:
    """A variant's number, or why there is none."""

    label: str
    value: float | None
    failure: str = ""


def attribute(answer: Why, root: str | Path = Path(".")) -> list[Effect]:
    """The old commit's number, made again, and with each kind of cause switched. Nothing for a
    number that did not move."""
    root = Path(root)
    kinds = [kind for kind in SWITCHED if any(cause.kind == kind for cause in answer.causes)]
    if not kinds or not answer.moved:
        return []
    with tempfile.TemporaryDirectory(prefix="attribute-") as name:
        folder = Path(name)
        a, b = (
            Snapshot(root, commit, answer.metric, folder / side)
            for commit, side in zip(answer.commits, "ab", strict=True)
        )
        ran: set[Any]
        pair, ran, effects = Pair(a, b, answer.metric), set(), []
        for kind in kinds:
            effects.append(effect(pair, folder / kind, {kind}, f"A + {kind}", ran))
        return [
            effect(pair, folder / "control", set(), "A, made again", set(), frozenset(ran)),
            *effects,
        ]


def effect(
    pair: Pair,
    folder: Path,
    kinds: set[str],
    label: str,
    ran: set[str],
    forced: frozenset[str] = frozenset(),
) -> Effect:
    """One variant, in a project at `folder`. The records of the stages that ran are added to
    `ran`."""
    try:
        return Effect(label, Variant(pair, folder, kinds, forced).run(ran))
    except TradewindError as error:
        return Effect(label, None, " ".join(str(error).split()))


class Variant:
    """A temporary project: the old commit with the causes of `kinds` from the new one; the
    records `forced` are run in any case."""

    def __init__(self, pair: Pair, folder: Path, kinds: set[str], forced: frozenset[str]):
        self.pair, self.folder, self.kinds, self.forced = pair, folder, kinds, forced
        self.fresh: set[str] = set()  # places whose files were made here
        self.other: set[str] = set()  # files whose bytes are not the old commit's

    def run(self, ran: set[str]) -> float | None:
        """Run what the switched causes touch; the number. Unmade where a stage cannot be run."""
        self.furnish()
        locks = Locks(self.folder, self.pair.metric.experiment)
        nodes = sorted(
            self.pair.nodes[0].values(),
            key=lambda node: (list(PLACES).index(node.stage), node.path),
        )
        for node in nodes:
            if node.stage != "tabulate" and self.touched(node):
                self.make(node, locks)
                ran.add(node.path)
        made = self.folder / self.pair.evaluated
        return evaluated(made, self.pair.metric) if made.exists() else main(self.pair.a.value)

    def furnish(self) -> None:
        """Lay out code, settings and sources of the old commit with the switched ones of the
        new, and switched raw data."""
        old, new = self.pair.a, self.pair.b
        chosen = {path: old for path in old.tree if needed(path)}
        for side in (old, new):
            for path in filter(needed, side.tree):
                if self.kind(path) in self.kinds:
                    chosen.pop(path, None)
                    chosen |= {path: new} if path in new.tree else {}
        for side in (old, new):
            for path, content in side.read(
                {path for path, holder in chosen.items() if holder is side}
            ).items():
                place(self.folder / path).write_bytes(content)
        moved = any("seed" in self.own(node) for node in self.pair.nodes[0].values())
        if "seed" in self.kinds or ("parameter" in self.kinds and moved):
            self.reseed()
        if "data" in self.kinds:
            for node in self.pair.nodes[0].values():
                if (
                    node.stage == "acquire"
                    and readable(self.pair, node)
                    and not self.generated(node)
                ):
                    self.switch(node)

    def kind(self, path: str) -> str:
        """The kind of cause that a file of the repository is."""
        if (
            path.startswith(SETTINGS)
            or path in ("params.yaml", "dvc.yaml", "dvc.lock")
            or path.endswith(("/dvc.yaml", "/dvc.lock", "/cells.yaml"))
        ):
            return "parameter"
        return "code" if path.startswith("stages/") else "data"

    def reseed(self) -> None:
        """Give the settings here the seeds of the commit that they shall have, all else as it
        stands."""
        giver = self.pair.b if "seed" in self.kinds else self.pair.a
        for file in (self.folder / "params.yaml", *(self.folder / SETTINGS).rglob("*.yaml")):
            path = file.relative_to(self.folder).as_posix()
            if path in giver.tree:
                place(self.folder / ".giver.yaml").write_bytes(giver.read({path})[path])
                told = seeded(read_yaml(file), read_yaml(self.folder / ".giver.yaml"))
                file.write_text(json.dumps(told, default=str), encoding="utf-8")  # JSON is YAML

    def own(self, node: Node) -> set[str]:
        """The kinds of a record's own differences."""
        other = self.pair.nodes[1].get(node.path)
        known = other and not node.error and not other.error
        return (
            {
                change.kind
                for change in differences(node.record, other.record, "", self.pair.history.meaning)
            }
            if known
            else set()
        )

    def generated(self, node: Node) -> bool:
        """Whether our own code made a raw data set, and something of its making differs."""
        return (node.record["params"].get("dataset") or {}).get("kind") not in PINNED and bool(
            self.own(node)
        )

    def switch(self, node: Node) -> None:
        """Lay the new commit's raw files."""
        new = self.pair.nodes[1].get(node.path)
        if new is None:
            raise Unmade("the new commit has no such raw data", where=node.homes[0])
        for path, described in new.record["outputs"].items():
            self.link(self.pair.b, path, described["sha256"])
            if digest(self.pair.a, path) != described["sha256"]:
                self.other.add(path)
        self.other |= {path for path in node.record["outputs"] if path not in new.record["outputs"]}
        self.fresh |= set(node.homes)

    def touched(self, node: Node) -> bool:
        """Whether a stage must run here."""
        if node.path in self.forced:
            return True
        if node.stage == "acquire":
            return self.generated(node) and bool(self.own(node) & self.kinds)
        inputs = node.record.get("inputs", {})
        laid = {
            path
            for path in self.other
            if any(path.startswith(name.rpartition("/")[0] + "/") for name in inputs)
        }
        read = self.pair.changed_inputs(node.path) if "data" in self.kinds else []
        sources = any(path in self.pair.b.tree and self.pair.owner(path) is None for path in read)
        return (
            bool(self.own(node) & self.kinds)
            or bool(self.other & inputs.keys())
            or bool(laid)
            or sources
        )

    def make(self, node: Node, locks: Locks) -> None:
        """Run a stage by its own command on the bytes it is recorded to have read, or on those
        made here."""
        for path, described in node.record["inputs"].items():
            fresh = any(path == home or path.startswith(home + "/") for home in self.fresh)
            if not fresh and not (self.folder / path).exists():
                self.link(self.pair.a, path, described["sha256"])
        entry = locks.producer(node.homes[0])
        words = shlex.split(entry.cmd) if entry else []
        if tuple(words[:3]) != RUN or not words[3].startswith("stages."):
            raise Unmade(
                "dvc.lock names no command of ours for a stage",
                where=node.homes[0],
                found=entry.cmd if entry else "nothing",
            )
        for home in node.homes:
            place(self.folder / home)
        environment = {
            key: value for key, value in os.environ.items() if key not in ("FAULT", "PYTHONPATH")
        }
        done = subprocess.run(
            [sys.executable, *words[2:]],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise Unmade(
                f"{node.producer} failed with exit code {done.returncode}",
                where=entry.cmd,
                found=last,
            )
        self.fresh |= set(node.homes)
        made = {
            file.relative_to(self.folder).as_posix(): file
            for home in node.homes
            for file in files_at(self.folder / home)
        }
        recorded = node.record["outputs"]
        self.other |= {
            path
            for path, file in made.items()
            if path not in recorded or sha256(file) != recorded[path]["sha256"]
        }
        self.other |= {path for path in recorded if path not in made}

    def link(self, side: Snapshot, path: str, digest: str) -> None:
        """A link to a file's recorded bytes, or the file where git holds it. Unmade where they
        are no longer here."""
        if path in side.tree:
            place(self.folder / path).write_bytes(side.read({path})[path])
            return
        file = side.object(path, digest)
        if file is None:
            raise Unmade(
                "bytes of that commit are no longer here",
                where=path,
                expected=f"sha256 {digest}",
                remedy="`dvc fetch` them, where a remote has them",
            )
        if not (self.folder / path).exists():
            place(self.folder / path).symlink_to(file.resolve())


def needed(path: str) -> bool:
    """Whether a stage may read a file of the repository; of data and reports only what is
    declared there, sources and printed companions."""
    declared = path.count("/") == 2 and path.endswith(("/dvc.yaml", "/dvc.lock"))
    companions = path.count("/") == 2 and path.startswith("reports/")
    companions &= path.endswith((".csv", "/cells.yaml"))
    return path.startswith(NEEDED) or declared or companions or "/" not in path


def place(path: Path) -> Path:
    """The path, with its folder made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def files_at(path: Path) -> list[Path]:
    """The file, or all files of the folder."""
    return (
        [file for file in path.rglob("*") if file.is_file()]
        if path.is_dir()
        else [path]
        if path.exists()
        else []
    )


def seeded(tree: Any, giver: Any) -> Any:
    """A tree of settings with the giver's values of all keys called `seed`."""
    if not isinstance(tree, dict) or not isinstance(giver, dict):
        return tree
    return {
        key: giver[key] if key == "seed" and key in giver else seeded(value, giver.get(key))
        for key, value in tree.items()
    }


def render(answer: Why, effects: list[Effect]) -> str:
    """The numbers of the variants with their effects, and the remainder, as lines of text."""
    old, new = main(answer.old), main(answer.new)
    if not effects:
        return "nothing to switch: " + (
            "no cause of it is data, parameters, code or a seed"
            if answer.moved
            else "the number is unchanged"
        )
    control = effects[0].value
    lines = [("A", f"{old:.8g}", "published")]
    for one in effects:
        if one.value is None:
            lines.append((one.label, "-", f"not made: {one.failure}"))
        else:
            first: Any = one is effects[0]
            lines.append(
                (
                    one.label,
                    f"{one.value:.8g}",
                    effect_text(one.value, old if first else control, first),
                )
            )
    moved = [
        one.value - control for one in effects[1:] if one.value is not None and control is not None
    ]
    lines.append(("B", f"{new:.8g}", f"published, {new - old:+.6g}"))
    unswitched = sorted({cause.kind for cause in answer.causes} - set(SWITCHED))
    unswitched += [one.label[4:] for one in effects[1:] if one.value is None]
    name = "interaction" + (f" and {', '.join(unswitched)}" if unswitched else "")
    base = old if control is None else control
    lines.append((name, "", f"{new - base - sum(moved):+.6g}"))
    second: Any
    first, second = (max(len(line[n]) for line in lines) for n in (0, 1))
    return redact(
        "\n".join(
            ["attribution", *(f"  {a:{first}}  {b:>{second}}  {c}".rstrip() for a, b, c in lines)]
        )
    )


def effect_text(value: float, base: float | None, control: bool) -> str:
    """A variant's effect in words."""
    if base is None:
        return ""
    if value == base:
        return "the published number to the last bit" if control else "no effect"
    return f"{value - base:+.6g}" + (" from the published number" if control else "")
