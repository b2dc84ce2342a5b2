"""`tradewind verify BUNDLE`: whether a release is what it says, on a machine that has neither the
repository nor DVC nor the data.

In turn: the container (reader.py) · the manifest names every member with its SHA-256, no more, no
fewer · git's text of the commit has the commit's name as its hash, and the members are the very
files of its tree · what was made of them (citation, Croissant, crate, cards) is made again and
compared · records, links, results, code, environment, pins and locks (checks.py). PASS 0, FAIL 1,
INCONCLUSIVE 3: the exports were made by another version of this code, so they cannot be made again
here. Nothing is unpacked.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.audit import again, everything
from stages.audit.finding import EXIT_CODES, Problem, worst
from stages.audit.history import kind_of
from stages.code import PACKAGE
from stages.errors import DataError, InputError, TradewindError
from stages.exports import bundle, checks
from stages.exports.reader import Reader
from stages.exports.tree import PROGRAM, REGULAR, Commit, Tree, commit_name, tree_name
from stages.files import json_text

HOME = Path(__file__).parents[1]  # the package, whatever it is called where it is installed
SOURCES = "stages/"  # where a bundle holds it
WITHIN = ("flows", "project")  # what a wheel holds inside of it
OURS = f"{SOURCES}exports/"
SHOWN = 20
MADE_AGAIN = (
    "tables, pages and summaries are those of the results (claims and figures rest on evaluations, "
    "which no bundle holds)"
)
OTHER = (
    "were made by another version of this code: unpack the bundle and verify with the one inside"
)
UNCITED = (
    "note: no commit was named (--commit), so that this says that the bundle agrees with itself; "
    "the name that was cited is the only root of trust"
)


@dataclass
class Checked:
    """What came of each check, in order: its name, what was looked at, its problems."""

    bundle: str
    commit: str
    cited: bool = False  # whether a commit's name from elsewhere was given
    steps: list[tuple[str, str, list[Problem]]] = field(default_factory=list)

    @property
    def problems(self) -> list[Problem]:
        """All problems."""
        return [problem for _, _, problems in self.steps for problem in problems]

    @property
    def verdict(self) -> str:
        """PASS, FAIL or INCONCLUSIVE."""
        return worst(self.problems)

    @property
    def exit_code(self) -> int:
        """0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE."""
        return EXIT_CODES[self.verdict]

    def render(self) -> str:
        """For a person: a line a check, what is wrong, the verdict."""
        lines = [f"bundle   {self.bundle}", f"commit   {self.commit}"]
        for name, told, problems in self.steps:
            lines.append(f"  {'ok' if not problems else worst(problems):<13} {name:<12} {told}")
        lines += [
            f"{problem.verdict}: {problem.path}: {problem.text}"
            for problem in self.problems[:SHOWN]
        ]
        lines += [f"and {len(self.problems) - SHOWN} more"] if len(self.problems) > SHOWN else []
        if not self.cited:
            lines.append(UNCITED)
        return "\n".join([*lines, self.verdict])


def verify(path: str | Path, commit: str | None = None) -> Checked:
    """Check a bundle; `commit` is the name that was cited, where the bundle must be of that one.

    InputError for a file that is not there, DataError for a container that is refused or that no
    release wrote.
    """
    with Reader(Path(path)) as members:
        told = read_manifest(members)
        made = Commit.parse(told["commit"], members[bundle.COMMIT])
        found = Checked(Path(path).name, made.name, cited=commit is not None)
        hashes = {name: hashed(members, name, kind_of(told["tree"])) for name in members}
        found.steps.append(
            ("members", f"{len(members)} members hashed", list(listed(told["members"], hashes)))
        )
        modes = {
            name: entry["mode"]
            for name, entry in told["members"].items()
            if entry["kind"] == "commit" and name in hashes
        }
        tree = Tree(members, modes, made)
        tree.__dict__["sha256"] = {name: hashes[name][0] for name in modes}  # already hashed
        found.steps.append(
            (
                "commit",
                f"{len(modes)} files are the tree of the commit",
                list(committed(tree, told, hashes, commit)),
            )
        )
        made_again, problems = derived(tree, told["members"], members)
        found.steps.append(
            ("exports", f"{len(made_again)} members made again from the commit's files", problems)
        )
        if made_again:
            text = "its bytes are those that a release of these members writes"
            found.steps.append(("container", text, list(contained(tree, made_again, members))))
        found.steps.append(("derived", MADE_AGAIN, guarded("derived", rewritten, tree)))
        for name, check in checks.ALL.items():
            found.steps.append(
                (
                    name,
                    " ".join((check.__doc__ or "").split("\n\n")[0].split()),
                    guarded(name, check, tree),
                )
            )
        found.steps.append(
            (
                "data",
                "bytes that came along are those of the records",
                list(carried(tree, told["members"], hashes)),
            )
        )
    return found


def guarded(name: str, check: Callable[[Tree], Iterable[Problem]], tree: Tree) -> list[Problem]:
    """A check's problems; a file that cannot be read is one."""
    try:
        return list(check(tree))
    except TradewindError as error:
        return [Problem("FAIL", error.where or name, " ".join(str(error).split()))]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return [
            Problem(
                "FAIL",
                name,
                f"what is recorded has another form: {type(error).__name__} at {error}",
            )
        ]


def read_manifest(members: Reader) -> dict[str, Any]:
    """The bundle's list of its members; DataError where it is none, or is written otherwise than
    we write it."""
    for name in (bundle.MANIFEST, bundle.COMMIT):
        if name not in members:
            raise DataError(
                "that is no release of tradewind",
                where=members.path.name,
                expected=f"a member {name}",
                found=f"{len(members)} others",
            )
    text = members[bundle.MANIFEST]
    try:
        told = json.loads(text.decode("utf-8"), object_pairs_hook=once)
        sound = (
            json_text(told).encode() == text
            and told["format"] == bundle.FORMAT
            and isinstance(told["commit"], str)
            and isinstance(told["tree"], str)
        )
        for entry in told["members"].values():
            kind = entry["kind"]
            sound &= (
                isinstance(entry["sha256"], str)
                and type(entry["bytes"]) is int
                and kind in ("commit", "made", "data")
            )
            sound &= entry.get("mode") in ((REGULAR, PROGRAM) if kind == "commit" else (None,))
    except (DataError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            "the bundle's manifest is none",
            where=bundle.MANIFEST,
            found=f"{type(error).__name__}: {str(error)[:200]}",
        ) from None
    if not sound:
        raise DataError(
            "the bundle's manifest is not as a release writes it",
            where=bundle.MANIFEST,
            expected=f"{bundle.FORMAT}, sorted JSON",
        )
    return told


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys are told once; ValueError otherwise."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def hashed(members: Reader, name: str, kind: str) -> tuple[str, int, str]:
    """SHA-256, size and git's name of a member, in one pass."""
    size = members.infos[name].file_size
    sha = hashlib.sha256()
    blob = hashlib.new(kind, f"blob {size}\0".encode(), usedforsecurity=False)
    read = 0
    for block in members.blocks(name):
        sha.update(block)
        blob.update(block)
        read += len(block)
    return sha.hexdigest(), read, blob.hexdigest()


def listed(
    told: dict[str, dict[Any, Any]], hashes: dict[str, tuple[str, int, str]]
) -> Iterator[Problem]:
    """The manifest and the members are the same."""
    for name in sorted(told.keys() - hashes.keys()):
        yield Problem("FAIL", name, "the manifest names it, the bundle does not hold it")
    for name in sorted(hashes.keys() - told.keys() - {bundle.MANIFEST}):
        yield Problem("FAIL", name, "the bundle holds it, the manifest does not name it")
    for name in sorted(told.keys() & hashes.keys()):
        digest, size, _ = hashes[name]
        if (digest, size) != (told[name]["sha256"], told[name]["bytes"]):
            said = f"{told[name]['sha256'][:12]} ({told[name]['bytes']} bytes)"
            yield Problem(
                "FAIL",
                name,
                f"its SHA-256 is {digest[:12]} ({size} bytes), the manifest says {said}",
                broken=True,
            )


def committed(
    tree: Tree, told: dict[str, Any], hashes: dict[str, tuple[str, int, str]], wanted: str | None
) -> Iterator[Problem]:
    """The commit's text has its name, its tree is that of the members, and it is the one that
    was cited."""
    if commit_name(tree.commit) != tree.commit.name:
        yield Problem(
            "FAIL",
            bundle.COMMIT,
            f"it has the name {commit_name(tree.commit)[:12]}, the manifest says "
            f"{tree.commit.name[:12]}",
        )
    if wanted and not (len(wanted) >= 7 and tree.commit.name.startswith(wanted.lower())):
        yield Problem(
            "FAIL",
            bundle.COMMIT,
            f"the bundle is of commit {tree.commit.name[:12]}, asked for was {wanted[:12]}",
        )
    try:
        name = tree_name(
            {path: (mode, hashes[path][2]) for path, mode in tree.modes.items()},
            kind_of(tree.commit.tree),
        )
    except (RecursionError, ValueError) as error:
        name = f"none ({type(error).__name__})"
    if name != tree.commit.tree or told["tree"] != tree.commit.tree:
        yield Problem(
            "FAIL",
            "(the commit's files)",
            f"together they have the name {name[:12]}, the commit's tree is "
            f"{tree.commit.tree[:12]}: a file is not the commit's",
        )


def derived(
    tree: Tree, told: dict[str, dict[Any, Any]], members: Reader
) -> tuple[dict[str, bytes], list[Problem]]:
    """What was made of the commit's files, made again; only by the very code that the bundle
    holds does that say anything."""
    if not same_code(tree, OURS):
        return {}, [Problem("INCONCLUSIVE", OURS, f"the exports {OTHER}")]
    try:
        made = bundle.derived(tree)
    except (TradewindError, KeyError, TypeError, AttributeError, ValueError) as error:
        said = " ".join(str(error).split())
        text = f"what a release holds cannot be made of these files: {said}"
        return {}, [Problem("FAIL", "release/", text)]
    kept = {name for name, entry in told.items() if entry["kind"] == "made"}
    problems = [
        Problem("FAIL", name, "a release of this commit holds it, this bundle does not")
        for name in sorted(made.keys() - kept)
    ]
    problems += [
        Problem("FAIL", name, "it is not what the commit's files make", broken=True)
        for name in sorted(kept)
        if made.get(name) != members.get(name)
    ]
    return made, problems


def same_code(tree: Tree, place: str) -> bool:
    """Whether the bundle's sources in a folder are those that run here."""
    code = {path for path in tree.modes if path.startswith(place) and path.endswith(".py")}
    here = {}
    for file in HOME.rglob("*.py"):
        path = file.relative_to(HOME).as_posix()
        if f"{SOURCES}{path}".startswith(place) and path.partition("/")[0] not in WITHIN:
            here[f"{SOURCES}{path}"] = file
    return code == here.keys() and all(tree.files[path] == here[path].read_bytes() for path in code)


def contained(tree: Tree, made: dict[str, bytes], members: Reader) -> Iterator[Problem]:
    """The container is written again, and its bytes compared: nothing lies between its members,
    and none has another order, time or attribute."""
    known = tree.modes.keys() | made.keys() | {bundle.MANIFEST}
    data = {
        name: (members.infos[name].file_size, members.blocks(name))
        for name in members
        if name not in known
    }
    with tempfile.TemporaryFile() as stream, members.path.open("rb") as mine:
        bundle.fill(stream, tree, made | {bundle.MANIFEST: members[bundle.MANIFEST]}, data)
        stream.seek(0)
        while True:
            one, other = stream.read(bundle.BLOCK), mine.read(bundle.BLOCK)
            if one != other:
                yield Problem("FAIL", members.path.name, "a release writes other bytes of these")
                return
            if not one:
                return


def rewritten(tree: Tree) -> list[Problem]:
    """What of tables, pages, summaries and README's blocks is not what is written again from the
    bundle's own results, by its own commands."""
    if not same_code(tree, f"{PACKAGE}/"):
        return [Problem("INCONCLUSIVE", f"{PACKAGE}/", f"tables and pages {OTHER}")]
    with tempfile.TemporaryDirectory(prefix="bundle-") as folder:
        root = Path(folder, "project")
        for path in tree.modes:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(tree.files[path])
        case = everything.opened(root)
        case.__dict__["code"] = tree.code  # of a place without history
        with again.laid_out(root) as laid, again.begun(case, laid) as written:
            steps = (written, *again.ALL)
            return [problem for check in steps for problem in check(case)]


def carried(
    tree: Tree, told: dict[str, dict[Any, Any]], hashes: dict[str, tuple[str, int, str]]
) -> Iterator[Problem]:
    """Data in the bundle are outputs of an acquisition that simulates, with the recorded bytes."""
    from stages.exports import citation

    for name in sorted(
        name for name, entry in told.items() if entry["kind"] == "data" and name in hashes
    ):
        owner = tree.owner(name)
        described = (
            owner.record.get("outputs", {}).get(name)
            if owner and owner.stage == "acquire" and not owner.error and citation.ours(owner)
            else None
        )
        if described is None or (described["sha256"], described["bytes"]) != hashes[name][:2]:
            yield Problem(
                "FAIL",
                name,
                "it is no output of a simulated data set, or other bytes than recorded",
                broken=True,
            )


def main(path: str, commit: str | None = None) -> int:
    """Print what was checked and the verdict; its exit code."""
    if commit is not None and not (
        7 <= len(commit) <= 64 and set(commit.lower()) <= set("0123456789abcdef")
    ):
        raise InputError(
            "that is no commit's name", found=commit, expected="at least 7 hexadecimal digits"
        )
    found = verify(path, commit)
    print(found.render())
    return found.exit_code
