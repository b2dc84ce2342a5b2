"""`python -m flows.merge`: after `git merge` (or in a rebase or cherry-pick), put dvc.lock and what
stages made right again, without a guess.

A lock's entry says that one run read these bytes and wrote those; two runs cannot be mixed line by
line, as git would. So each dvc.lock is made anew from both sides: an entry that is equal on both,
or that one side alone has changed, is taken whole; one that both have changed is dropped, and the
next `dvc repro` makes it. A result that git keeps (record, metrics, table, figure) becomes the
version whose MD5 the lock names, else it stays to be remade. Sources (code, params.yaml, dvc.yaml)
are merged by you, first.

  git merge BRANCH; python -m flows.merge; dvc repro; git add -A; git commit

As git's own driver of these files (then nothing is ever mixed by lines; a merge that needs a run
stops and says so):
  git config merge.dvclock.driver 'python -m flows.merge --driver %O %A %B %P' && echo 'dvc.lock
  merge=dvclock' >> .git/info/attributes
Exit code: 0 all is taken, 1 something is to be remade or mended by hand, 2 there is no merge or a
side is no lock.
"""

import argparse
import hashlib
import io
import json
import posixpath
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows.git import git
from flows.process import FlowError
from flows.profiles import write

LOCK, DECLARED, IGNORED = "dvc.lock", "dvc.yaml", ".gitignore"
HEADS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD")
ABSENT = object()  # no entry, as told apart from an empty one


@dataclass
class Outcome:
    """What was done: entries taken and dropped by lock, results put right, to be remade, and
    left to a person."""

    taken: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, list[str]] = field(default_factory=dict)
    chosen: list[str] = field(default_factory=list)
    remade: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)

    def render(self) -> str:
        """For a person."""
        lines = [
            f"{lock}: {count} entries taken, {len(self.dropped[lock])} dropped"
            + "".join(f"\n  to be made anew: {name}" for name in self.dropped[lock])
            for lock, count in self.taken.items()
        ]
        lines += [f"results put right by the lock's MD5: {len(self.chosen)}"] if self.chosen else []
        lines += [f"to be remade: {path}" for path in self.remade] + [
            f"to be merged by hand: {path}" for path in self.by_hand
        ]
        after = (
            "`dvc repro`, then `git add -A` and `git commit`"
            if self.remade or any(self.dropped.values())
            else "`dvc status`, then `git commit`"
        )
        return "\n".join(
            [*lines, f"next: {'merge the above by hand, then ' if self.by_hand else ''}{after}"]
        )

    @property
    def exit_code(self) -> int:
        """0 where nothing is left to do but to commit."""
        return int(bool(self.remade or self.by_hand or any(self.dropped.values())))


def merged(
    base: dict[Any, Any], ours: dict[Any, Any], theirs: dict[Any, Any]
) -> tuple[dict[Any, Any], list[str]]:
    """The entries of both sides' locks, and the names of those that both have changed, each
    otherwise."""
    kept, dropped = {}, []
    for name in dict.fromkeys((*ours, *theirs)):
        before, mine, other = (side.get(name, ABSENT) for side in (base, ours, theirs))
        if mine == other or other == before:
            chosen = mine
        elif mine == before:
            chosen = other
        else:
            dropped.append(name)
            continue
        if chosen is not ABSENT:
            kept[name] = chosen
    return kept, sorted(dropped)


def parse(text: bytes | None, where: str) -> dict[Any, Any]:
    """The entries of a lock's text, {} where that side has none. FlowError 2 for anything else."""
    if text is None or not text.strip():
        return {}
    try:
        content = YAML().load(text.decode("utf-8"))
    except (YAMLError, ValueError) as error:
        raise FlowError(
            f"a side's {where} is no lock: {' '.join(str(error).split())[:300]}", 2
        ) from None
    stages = (
        content.get("stages") or {}
        if isinstance(content, dict) and content.get("schema") == "2.0"
        else None
    )
    if not isinstance(stages, dict) or not all(
        isinstance(entry, dict) and "cmd" in entry for entry in stages.values()
    ):
        raise FlowError(f"a side's {where} is no lock of schema 2.0", 2)
    return stages


def dump(stages: dict[Any, Any]) -> str:
    """A lock's text in DVC's own form (ruamel's defaults, as DVC writes it)."""
    out = io.StringIO()
    YAML().dump({"schema": "2.0", "stages": stages} if stages else {"schema": "2.0"}, out)
    return out.getvalue()


class Sides:
    """The three sides of the merge that is going on, or of the one that HEAD is."""

    def __init__(self):
        if (
            git("rev-parse", "--is-inside-work-tree").stdout.strip() != "true"
            or git("rev-parse", "--show-cdup").stdout.strip()
        ):
            raise FlowError("run it in the root of the repository", 2)
        head = next((name for name in HEADS if known(name)), None)
        if head:
            self.ours, self.theirs = "HEAD", head
        elif known("HEAD^2"):
            self.ours, self.theirs = "HEAD^1", "HEAD^2"
        else:
            raise FlowError(
                "no merge, rebase or cherry-pick is going on, and HEAD is no merge: there is "
                "nothing to put right",
                2,
            )
        self.base = (
            f"{head}^"
            if head in HEADS[1:]
            else git("merge-base", self.ours, self.theirs).stdout.strip()
        )
        self.files = {
            side: set(names("ls-tree", "-r", "-z", "--name-only", side))
            for side in (self.ours, self.theirs)
        }
        self.unmerged = sorted({line.partition("\t")[2] for line in names("ls-files", "-u", "-z")})

    def content(self, side: str, path: str) -> bytes | None:
        """A file of a side, None where it has none."""
        done = subprocess.run(
            ["git", "cat-file", "blob", f"{side}:{path}"],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout if side and done.returncode == 0 else None

    def inside(self, side: str, out: str) -> list[str]:
        """The files of a side that an output is: itself, or what lies in it."""
        return sorted(
            path for path in self.files[side] if path == out or path.startswith(out + "/")
        )

    def md5(self, side: str, out: str) -> str | None:
        """The MD5 by which a lock would name a side's output."""
        found = {
            path: md5(self.content(side, path) or b"")
            for path in self.inside(side, out)
            if posixpath.basename(path) != IGNORED
        }
        if out in found or not found:
            return found.get(out)
        entries = [
            {"md5": digest, "relpath": path.removeprefix(out + "/")}
            for path, digest in found.items()
        ]
        return (
            md5(
                json.dumps(
                    sorted(entries, key=lambda entry: entry["relpath"]), sort_keys=True
                ).encode()
            )
            + ".dir"
        )


def known(revision: str) -> bool:
    """Whether git knows a commit of that name."""
    return git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").returncode == 0


def names(*arguments: str) -> list[str]:
    """What a git command prints, one name after a NUL each."""
    return git(*arguments).stdout.split("\0")[:-1]


def md5(content: bytes) -> str:
    """Hex MD5."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def outputs(lock: str, name: str, entry: dict[Any, Any]) -> dict[str, str | None]:
    """The outputs of an entry, path from the root -> MD5."""
    file = Path(lock).with_name(DECLARED)
    try:
        content = (
            YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
            if file.exists()
            else {}
        )
    except (YAMLError, ValueError):
        raise FlowError(f"{file} is no YAML: merge it by hand first", 2) from None
    definition = ((content or {}).get("stages") or {}).get(name.split("@", maxsplit=1)[0]) or {}
    folder = posixpath.join(
        posixpath.dirname(lock), (definition.get("do") or definition).get("wdir", ".")
    )
    return {
        posixpath.normpath(posixpath.join(folder, out["path"])): out.get("md5")
        for out in entry.get("outs") or ()
    }


def put(sides: Sides, side: str, out: str, done: set[str]) -> None:
    """Make an output what it is on one side, in the working tree and, being settled, in the
    index."""
    here = sides.inside(side, out)
    other = {*sides.inside(sides.ours, out), *sides.inside(sides.theirs, out)} - set(here)
    gone = [path for path in other if Path(path).exists() or path in sides.unmerged]
    if here:
        require_success(git("checkout", side, "--", *here))
    if gone:
        require_success(git("rm", "-q", "-f", "--ignore-unmatch", "--", *gone))
    done.update(here, gone)


def require_success(done: subprocess.CompletedProcess[Any]) -> None:
    """FlowError with what git said, where it failed."""
    if done.returncode:
        raise FlowError(f"git failed: {(done.stderr or done.stdout).strip()[-1000:]}")


def resolve(asked: tuple[str, ...] = ()) -> Outcome:
    """Put right the locks (all, or those asked for) and the results of their stages. FlowError
    as described above."""
    sides, outcome, settled = Sides(), Outcome(), set()
    locks = sorted(
        path
        for path in sides.files[sides.ours] | sides.files[sides.theirs]
        if posixpath.basename(path) == LOCK
    )
    for path in asked:
        if path not in locks:
            raise FlowError(f"{path} is no dvc.lock of either side (known: {', '.join(locks)})", 2)
    broken = [path for path in sides.unmerged if posixpath.basename(path) == DECLARED]
    if broken:
        raise FlowError(f"merge these by hand first: {', '.join(broken)}", 2)
    plans = {}
    for lock in asked or locks:  # all is read before anything is written
        before, ours, theirs = (
            parse(sides.content(side, lock), lock)
            for side in (sides.base, sides.ours, sides.theirs)
        )
        plans[lock] = ours, theirs, *merged(before, ours, theirs)
        for name, entry in (*ours.items(), *theirs.items()):
            outputs(lock, name, entry)
    for lock, (ours, theirs, kept, dropped) in plans.items():
        write(Path(lock), dump(kept))
        settled.add(lock)
        outcome.taken[lock], outcome.dropped[lock] = len(kept), dropped
        for name, entry in kept.items():
            for out, digest in outputs(lock, name, entry).items():
                settle(sides, out, digest, outcome, settled)
        for name in dropped:
            for out in sorted(
                {
                    *outputs(lock, name, ours.get(name, {})),
                    *outputs(lock, name, theirs.get(name, {})),
                }
            ):
                remake(sides, out, outcome, settled)
    for path in sides.unmerged:
        if posixpath.basename(path) == IGNORED:  # DVC's lists of what it keeps: all lines of both
            lines = [
                line
                for side in (sides.ours, sides.theirs)
                for line in (sides.content(side, path) or b"").decode("utf-8").splitlines()
            ]
            write(Path(path), "".join(f"{line}\n" for line in dict.fromkeys(lines)))
            settled.add(path)
    present = sorted(path for path in settled if Path(path).exists())
    require_success(git("add", "-f", "--", *present) if present else git("status"))
    outcome.by_hand = [
        path for path in sides.unmerged if path not in settled and path not in outcome.remade
    ]
    return outcome


def settle(sides: Sides, out: str, digest: str | None, outcome: Outcome, settled: set[str]) -> None:
    """A git-kept output of an entry that was taken: the side whose MD5 the entry names; else it
    is to be remade."""
    present = [side for side in (sides.ours, sides.theirs) if sides.inside(side, out)]
    if not present:
        return  # DVC keeps it
    found = {side: sides.md5(side, out) for side in present}
    side = next((side for side in present if found[side] == digest), None)
    if side is None:
        remake(sides, out, outcome, settled)
    elif (
        len(set(found.values())) > 1
        or len(present) == 1
        or set(sides.inside(side, out)) & set(sides.unmerged)
    ):
        put(sides, side, out, settled)
        outcome.chosen.append(out)


def remake(sides: Sides, out: str, outcome: Outcome, settled: set[str]) -> None:
    """A git-kept output that no entry speaks for: our version for now, without marks of
    conflict; git goes on calling it unmerged."""
    side = next((side for side in (sides.ours, sides.theirs) if sides.inside(side, out)), None)
    if side is None:
        return
    for path in sides.inside(side, out):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(sides.content(side, path) or b"")
    both = sorted({*sides.inside(sides.ours, out), *sides.inside(sides.theirs, out)} - settled)
    outcome.remade += [path for path in both if path not in outcome.remade]


def driver(base: str, ours: str, theirs: str, path: str) -> int:
    """git's merge driver of a dvc.lock: the result goes to `ours`; 1 where entries were dropped,
    so that the merge stops for a run. FlowError 2 where a file is not there."""
    for file in (base, ours, theirs):
        if not Path(file).is_file():
            raise FlowError(f"{file}: no such file", 2)
    stages, dropped = merged(
        *(parse(Path(file).read_bytes(), path) for file in (base, ours, theirs))
    )
    Path(ours).write_text(dump(stages), encoding="utf-8")
    if dropped:
        print(
            f"{path}: changed on both sides, to be made anew: {', '.join(dropped)}; run `python -m "
            "flows.merge`",
            file=sys.stderr,
        )
    return int(bool(dropped))


def main(arguments: list[str] | None = None) -> int:
    """Parse, resolve, tell."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.merge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "locks",
        nargs="*",
        metavar="DVC.LOCK",
        help="only these locks; default: all that either side has",
    )
    parser.add_argument(
        "--driver",
        nargs=4,
        metavar=("BASE", "OURS", "THEIRS", "PATH"),
        help="as git's merge driver: %%O %%A %%B %%P",
    )
    asked = parser.parse_args(arguments)
    try:
        if asked.driver:
            return driver(*asked.driver)
        outcome = resolve(tuple(posixpath.normpath(path) for path in asked.locks))
    except FlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(outcome.render())
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
