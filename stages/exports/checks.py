"""What a commit's files say of each other: every run record, every dvc.lock, the code, the
parameters and the pins, without a byte of data.

The audit (stages/audit) follows one number and needs git and DVC; these checks take all records of
a Tree at once and need the tree alone, so a release refuses by them and a bundle is re-checked by
them on a machine that has neither. Each yields Problems.
"""

import hashlib
import posixpath
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from stages.audit.chain import SEED, SOURCES, Node
from stages.audit.finding import Problem
from stages.audit.hashes import Entry, manifest_md5, read_lock
from stages.audit.settings import dig
from stages.errors import DataError
from stages.exports.tree import Tree
from stages.params import PARTS, prefix

UNSEEN = (".gitignore",)  # what .dvcignore hides, and git cannot hold: __pycache__
CONSTRAINTS = "constraints.txt"


def sound(tree: Tree) -> Iterator[Problem]:
    """Every record can be read, and speaks of its own place and its own seed."""
    for node in tree.nodes:
        if node.error:
            yield Problem("FAIL", node.path, f"the record cannot be read: {node.error}")
            continue
        strays = [path for path in node.record["outputs"] if not node.owns(path)]
        if strays:
            yield Problem(
                "FAIL",
                node.path,
                f"it names outputs of another place ({strays[0]}): a record copied from another "
                "cell?",
            )
        seed = SEED.search(Path(node.homes[0]).name) if node.stage == "train" else None
        if seed and node.record.get("seed") != int(seed[1]):
            yield Problem(
                "FAIL",
                node.path,
                f"the cell is named for seed {seed[1]}, its record says seed "
                f"{node.record.get('seed')}",
            )


def linked(tree: Tree) -> Iterator[Problem]:
    """What one stage read is what another wrote, or a source that lies in the tree."""
    for node in read(tree):
        for path, described in node.record["inputs"].items():
            owner = tree.owner(path)
            if owner is None and SOURCES.fullmatch(path):
                if tree.sha256.get(path) != described["sha256"]:
                    yield Problem(
                        "FAIL",
                        path,
                        f"{node.producer} read {described['sha256'][:12]}, the tree holds "
                        f"{short_sha256(tree, path)}",
                    )
            elif owner is None:
                yield Problem(
                    "FAIL", node.path, f"it read {path}, which no record made and no source is"
                )
            elif not owner.error and owner.record["outputs"].get(path) != described:
                if told := tree.code.beside(node, owner, path, described):
                    yield Problem("NOTE", node.path, told)
                    continue
                made = owner.record["outputs"].get(path, {}).get("sha256", "nothing of that name")
                yield Problem(
                    "FAIL",
                    path,
                    f"stale: {node.producer} read {described['sha256'][:12]}, {owner.producer} "
                    f"wrote {made[:12]}",
                )


def kept(tree: Tree) -> Iterator[Problem]:
    """Results that are in git (metrics, tables, claims, figures, verdicts of the gates) have the
    bytes that their record says."""
    for node in read(tree):
        for path, described in node.record["outputs"].items():
            if path in tree.modes and tree.sha256[path] != described["sha256"]:
                yield Problem(
                    "FAIL",
                    path,
                    f"its SHA-256 is {short_sha256(tree, path)}, {node.producer} wrote "
                    f"{described['sha256'][:12]}",
                    broken=True,
                )
    for path in tree.matching("reports/", "/metrics.json"):
        owner = tree.owner(path)
        if path.count("/") == 3 and (
            owner is None or owner.error or path not in owner.record["outputs"]
        ):
            yield Problem("FAIL", path, "no record says how these numbers were made")


def code(tree: Tree) -> Iterator[Problem]:
    """The code that every stage ran with means what the tree's means; of a profile that is not
    the chosen one it may be that of an earlier commit, where git's history tells."""
    for node in read(tree):
        judged = tree.code.judge(node)
        if judged.verdict == "STALE":
            yield Problem("NOTE", node.path, judged.text)
        elif judged.verdict != "PASS":
            yield Problem(judged.verdict, node.path, f"stale: {judged.text}")


def environments(tree: Tree) -> Iterator[Problem]:
    """The list of exact versions that every record names is the tree's."""
    for node in read(tree):
        then = node.record["environment"].get("constraints")
        if not earlier(tree, node) and then != tree.sha256.get(CONSTRAINTS):
            yield Problem(
                "FAIL",
                node.path,
                f"stale: {node.producer} ran with another {CONSTRAINTS} ({str(then)[:12]})",
            )


def pinned(tree: Tree) -> Iterator[Problem]:
    """What was acquired is what the parameters pin."""
    datasets = dict(tree.yaml("params.yaml").get("datasets") or {})
    for file in tree.matching(f"{PARTS}/", ".yaml"):
        datasets |= tree.yaml(file) if prefix(file) == "datasets" else {}
    for node in read(tree):
        if node.stage == "acquire":
            for name, pin in pins(tree, datasets, Path(node.homes[0]).name).items():
                path = f"{node.homes[0]}/{name}"
                found = node.record["outputs"].get(path, {}).get("sha256")
                if pin and found and found != pin:
                    yield Problem(
                        "FAIL",
                        path,
                        f"datasets.{Path(node.homes[0]).name} pins {pin[:12]}, recorded is "
                        f"{found[:12]}",
                    )


def pins(tree: Tree, datasets: dict[Any, Any], dataset: str) -> dict[str, str | None]:
    """Name -> SHA-256 of a data set's pinned files, by the parameters or by the listing that
    they name."""
    asked = datasets.get(dataset) or {}
    place = (asked.get("listed") or {}).get("listing")
    if place in tree.modes:
        lines = tree.files[place].decode("utf-8", "replace").splitlines()
        return {
            parts[2]: parts[0]
            for parts in (line.split(" ", 2) for line in lines)
            if len(parts) == 3
        }
    return {
        name: (source or {}).get("sha256") for name, source in (asked.get("files") or {}).items()
    }


def locked(tree: Tree) -> Iterator[Problem]:
    """Every dvc.lock names the tree's files, the parameters that stand in it, and what one stage
    read is what another made."""
    made: dict[Any, Any]
    entries, made = [], {}
    for lock in [path for path in sorted(tree.modes) if posixpath.basename(path) == "dvc.lock"]:
        try:
            entries += read_lock(
                lock, tree.yaml(lock), tree.yaml(lock.replace("dvc.lock", "dvc.yaml"))
            )
        except DataError as error:
            yield Problem("FAIL", lock, " ".join(str(error).split()))
    for entry in entries:
        made |= entry.outs
    md5 = cache(lambda path: digest_md5(tree, path))
    old = {home for node in read(tree) if earlier(tree, node) for home in node.homes}
    for entry in entries:
        if old.isdisjoint(entry.outs):
            yield from lock_entry(tree, entry, made, md5)
    for node in read(tree):
        if (
            node.homes[0] not in made
            and not any(node.homes[0].startswith(out + "/") for out in made)
            and f"{node.homes[0]}.dvc" not in tree.modes
            and not earlier(tree, node)
        ):
            yield Problem(
                "INCONCLUSIVE",
                node.homes[0],
                f"no dvc.lock names the stage that made it ({node.producer})",
            )


def lock_entry(
    tree: Tree, entry: Entry, made: dict[str, str], md5: Callable[[str], str | None]
) -> Iterator[Problem]:
    """What is wrong with one stage's entry."""
    for path, told in entry.deps.items():
        mixed = any(
            out.startswith(path + "/") and out not in tree.modes for out in made
        )  # a folder that DVC keeps, in part or whole
        now = made.get(path) or (None if mixed else md5(path))
        if now and now != told:
            yield Problem(
                "FAIL",
                path,
                f"stale: {entry.name} read {told[:12]}, now it is {now[:12]}",
                entry.cmd,
            )
    for path, told in entry.outs.items():
        now = md5(path) if path in tree.modes or path.endswith("figures") else None
        if now and now != told:
            yield Problem(
                "FAIL",
                path,
                f"its MD5 is {now[:12]}, {entry.lock} says {told[:12]}: edited by hand?",
                entry.cmd,
                broken=True,
            )
    for file, keys in entry.params.items():
        content = tree.yaml(file) if prefix(file) is not None else None
        for key, then in (keys if content is not None else {}).items():
            if dig(content, key) != then:
                yield Problem(
                    "FAIL", file, f"stale: {entry.name} was run with another {key}", entry.cmd
                )


def digest_md5(tree: Tree, path: str) -> str | None:
    """The MD5 by which a lock would name a file or folder of the tree; None where it is not in
    the tree."""

    def md5(content: bytes) -> str:
        return hashlib.md5(content, usedforsecurity=False).hexdigest()

    if path in tree.modes:
        return md5(tree.files[path])
    inside = [
        name for name in tree.matching(path + "/", "") if posixpath.basename(name) not in UNSEEN
    ]
    if not inside:
        return None
    entries = [
        {"md5": md5(tree.files[name]), "relpath": name.removeprefix(path + "/")} for name in inside
    ]
    return manifest_md5(sorted(entries, key=lambda entry: entry["relpath"]))


def earlier(tree: Tree, node: Node) -> bool:
    """Whether a record is of a profile that is not the chosen one, and of earlier code."""
    return tree.code.judge(node).verdict == "STALE"


def read(tree: Tree) -> list[Node]:
    """The records that can be read."""
    return [node for node in tree.nodes if not node.error]


def short_sha256(tree: Tree, path: str) -> str:
    """The first digits of a file's SHA-256."""
    return tree.sha256.get(path, "nothing")[:12]


ALL = {
    "records": sound,
    "links": linked,
    "results": kept,
    "code": code,
    "environment": environments,
    "pins": pinned,
    "locks": locked,
}
