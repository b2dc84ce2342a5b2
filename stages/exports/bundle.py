"""A release: one zip that holds a commit's files, what they say in public standards, and the
SHA-256 of every member.

`release(FOLDER)` writes tradewind-VERSION-COMMIT.zip. Its bytes are a function of the commit: files
come from git, not from the working tree; members are sorted, stored unpacked, stamped with the
commit's time. A release is refused while the tree differs from the commit or where a record, a lock
or a result is stale, by name. Data are not in it: hashes, licences and sources are. `with_data`
adds the raw bytes of the profiles whose every set we simulate ourselves (mini), and of no others.
Beside the commit's own files, made from them: ro-crate-metadata.json, release/{COMMIT,
manifest.json, environment.json, licences.md, CITATION.cff, README.md, croissant/, cards/}.
"""

import hashlib
import json
import re
import shutil
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from stages.audit.finding import Problem
from stages.audit.history import changed
from stages.errors import DataError, InputError
from stages.exports import checks, citation, crate, croissant, model_card
from stages.exports.tree import REGULAR, Tree, git, of_commit
from stages.files import atomic_file, fault, json_text, sha256

FORMAT = "tradewind release 1"
COMMIT, MANIFEST = "release/COMMIT", "release/manifest.json"
# bytes of a member in the container, its name twice among them: an upper estimate for names of up
# to 180 letters
OVERHEAD = 512
SHOWN = 8
BLOCK = 1 << 20


def release(folder: str | Path, root: Path = Path("."), *, with_data: bool = False) -> Path:
    """Write the bundle of HEAD into a folder and return its path; an older one of that name is
    replaced.

    InputError for a tree that differs from the commit, stale results, or a disk without room;
    DataError for data that are not as recorded.
    """
    clean(root)
    tree = of_commit(root)
    fresh(tree)
    made = derived(tree)
    data = dict(own_data(tree, root)) if with_data else {}
    version = project(tree)["version"]
    final = (
        Path(folder) / f"tradewind-{version}-{tree.commit.name[:12]}{'-data' if data else ''}.zip"
    )
    made[MANIFEST] = manifest(tree, made, data)
    room(
        final.parent,
        sum(map(len, tree.files.values()))
        + sum(map(len, made.values()))
        + sum(path.stat().st_size for path, _ in data.values()),
        len(tree.modes) + len(made) + len(data),
    )
    write(final, tree, made, data)
    return final


def clean(root: Path) -> None:
    """InputError unless every tracked file has the commit's bytes and nothing lies beside them
    that git does not ignore."""
    names = git(root, "ls-files", "-z").decode("utf-8", "replace").split("\0")[:-1]
    others = (
        git(root, "ls-files", "-z", "--others", "--exclude-standard")
        .decode("utf-8", "replace")
        .split("\0")[:-1]
    )
    added = (
        git(root, "diff", "--cached", "--name-only", "-z", "HEAD", "--")
        .decode("utf-8", "replace")
        .split("\0")[:-1]
    )
    dirty = sorted({*changed(root, names), *others, *added})
    if dirty:
        raise InputError(
            "the tree is not the commit: a release of it could not be made again",
            where=str(root.resolve()),
            found=listed(dirty),
            remedy="commit or put aside (`git stash -u`) what is not committed",
        )


def fresh(tree: Tree) -> None:
    """InputError where a record, lock or result is stale or contradicts another, with the names."""
    problems = [
        problem
        for check in checks.ALL.values()
        for problem in check(tree)
        if problem.verdict == "FAIL"
    ]
    if problems:
        raise InputError(
            "results are stale: they are not what this commit's code, parameters and data make",
            where=f"commit {tree.commit.name[:12]}",
            found="\n    ".join(
                [
                    "",
                    *dict.fromkeys(
                        f"{problem.path}: {problem.text}" for problem in problems[:SHOWN]
                    ),
                ]
            ),
            remedy=f"{again(tree, problems)}, then commit ({len(problems)} problem(s) in all)",
        )


def again(tree: Tree, problems: list[Problem]) -> str:
    """The commands that make the results of the profiles that problems name; of none named, the
    chosen one's."""
    told = " ".join(f"{problem.path} {problem.text}" for problem in problems)
    tables = (path.split("/") for path in tree.files if path.endswith("/metrics.json"))
    profiles = {parts[2] for parts in tables if len(parts) == 4 and parts[0] == "reports"}
    named = sorted(name for name in profiles if re.search(rf"\b{re.escape(name)}\b", told))
    return " and ".join(f"`make repro PROFILE={name}`" for name in named) or "`make repro`"


def listed(names: list[str]) -> str:
    """A few names and how many more."""
    return ", ".join(names[:SHOWN]) + (
        f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    )


def project(tree: Tree) -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    try:
        return tomllib.loads(tree.files["pyproject.toml"].decode("utf-8"))["project"]
    except (KeyError, ValueError) as error:
        raise DataError(
            "pyproject.toml does not describe the project", where="pyproject.toml", found=str(error)
        ) from None


def derived(tree: Tree) -> dict[str, bytes]:
    """What a bundle holds beside the commit's files: a function of them. InputError where the
    commit holds a file of such a name."""
    about = project(tree)
    made = {
        COMMIT: tree.commit.text,
        "release/environment.json": json_text(environments(tree)).encode(),
        "release/licences.md": citation.licences(tree).encode(),
        "release/README.md": readme(tree, about).encode(),
        "release/CITATION.cff": citation.cff(tree, about).encode(),
    }
    made |= {
        f"release/croissant/{name}.json": json_text(content).encode()
        for name, content in croissant.every(tree)
    }
    made |= {f"release/cards/{name}.md": text.encode() for name, text in model_card.promoted(tree)}
    made[crate.NAME] = json_text(crate.describe(tree, about, made)).encode()
    taken = sorted(path for path in tree.modes if path in made or path.startswith("release/"))
    if taken:
        raise InputError(
            "the commit holds a file that a release makes itself",
            where=listed(taken),
            remedy="remove it, or give it another name",
        )
    return made


def environments(tree: Tree) -> list[dict[str, Any]]:
    """The environments that the records name, each with the number of stages that ran in it."""
    counted: dict[str, int] = {}
    for node in checks.read(tree):
        told = json.dumps(
            {key: value for key, value in node.record["environment"].items() if key != "threads"},
            sort_keys=True,
        )
        counted[told] = counted.get(told, 0) + 1
    return [json.loads(told) | {"stages": count} for told, count in sorted(counted.items())]


def readme(tree: Tree, about: dict[str, Any]) -> str:
    """What whoever unpacks the bundle reads first."""
    return "\n".join(
        [
            f"# tradewind {about['version']}, commit {tree.commit.name}",
            "",
            (
                "The project's files as committed, its results with the record of what made each, "
                "and in `release/` what was made of them for others:"
            ),
            (
                "`manifest.json` (SHA-256 of every member), `COMMIT` (git's text of the commit, "
                "whose hash is the commit's name), `croissant/` (every raw data"
            ),
            (
                "set), `cards/` (every promoted model), `licences.md`, `environment.json`, "
                "`CITATION.cff` (of this commit); at the top `ro-crate-metadata.json`."
            ),
            "",
            (
                "Check it on any machine, without the repository's history: `tradewind verify "
                "BUNDLE.zip`. Without tradewind:"
            ),
            "",
            (
                "    unzip BUNDLE.zip -d bundle && cd bundle && git init -q && git hash-object -t "
                "commit release/COMMIT"
            ),
            "",
            (
                "prints the commit's name. Make the results again: `make repro` (data are fetched "
                "by hash from the sources in `licences.md`)."
            ),
            "",
        ]
    )


def own_data(tree: Tree, root: Path) -> Iterator[tuple[str, tuple[Path, str]]]:
    """The raw files of the profiles whose every set we simulate ourselves, with the recorded
    hash. DataError for one that is missing or differs."""
    acquired = [node for node in checks.read(tree) if node.stage == "acquire"]
    others = {node.homes[0].split("/")[1] for node in acquired if not citation.ours(node)}
    for node in acquired:
        if node.homes[0].split("/")[1] not in others:
            for name, described in sorted(node.record["outputs"].items()):
                path = root / name
                if not path.is_file() or sha256(path) != described["sha256"]:
                    raise DataError(
                        "data are not what was recorded of them",
                        where=name,
                        expected=described["sha256"],
                        remedy="`dvc checkout`, or release without data",
                    )
                yield name, (path, described["sha256"])


def manifest(tree: Tree, made: dict[str, bytes], data: dict[str, tuple[Path, str]]) -> bytes:
    """Every member but itself: SHA-256, bytes, and whether it is the commit's (with its mode),
    made from it, or data."""
    members = {
        path: {
            "sha256": tree.sha256[path],
            "bytes": len(tree.files[path]),
            "kind": "commit",
            "mode": tree.modes[path],
        }
        for path in tree.modes
    }
    members |= {
        path: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "kind": "made"}
        for path, content in made.items()
    }
    members |= {
        name: {"sha256": digest, "bytes": path.stat().st_size, "kind": "data"}
        for name, (path, digest) in data.items()
    }
    return json_text(
        {"format": FORMAT, "commit": tree.commit.name, "tree": tree.commit.tree, "members": members}
    ).encode()


def room(folder: Path, content: int, members: int) -> None:
    """InputError unless the disk holds the bundle, which appears beside an older one."""
    needed = content + OVERHEAD * members
    there = next(
        place for place in (folder.absolute(), *folder.absolute().parents) if place.exists()
    )
    if not there.is_dir():
        raise InputError("that is no folder", where=str(there))
    free = shutil.disk_usage(there).free
    if free < needed:
        raise InputError(
            "the disk does not hold the bundle",
            where=str(folder),
            expected=f"{needed:,} bytes",
            found=f"{free:,} bytes free",
        )


def write(
    final: Path, tree: Tree, made: dict[str, bytes], data: dict[str, tuple[Path, str]]
) -> None:
    """The container; it appears whole or not at all."""
    carried = {name: (path.stat().st_size, blocks(path)) for name, (path, _) in data.items()}
    with atomic_file(final) as stream:
        found = fill(stream, tree, made, carried)
        for name, (path, digest) in data.items():
            if found[name] != digest:
                raise DataError(
                    "a file changed while it was copied",
                    where=str(path),
                    remedy="run again when nothing else writes it",
                )


def blocks(path: Path) -> Iterator[bytes]:
    """A file's bytes."""
    with path.open("rb") as source:
        while block := source.read(BLOCK):
            yield block


def fill(
    stream: IO[bytes],
    tree: Tree,
    made: Mapping[str, bytes],
    data: Mapping[str, tuple[int, Iterable[bytes]]],
) -> dict[str, str]:
    """Write the container: sorted members, stored, of one time and one mode each. data: name ->
    (bytes, what they are); returns the SHA-256 of these."""
    moment, found = max(tree.commit.moment.timetuple()[:6], (1980, 1, 1, 0, 0, 0)), {}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in sorted((*tree.modes, *made, *data)):
            info = zipfile.ZipInfo(name, moment)
            info.create_system, info.external_attr = 3, int(tree.modes.get(name, REGULAR), 8) << 16
            if name in data:
                info.file_size, content = data[name]
                found[name] = copied(archive, info, content)
            else:
                archive.writestr(info, tree.files[name] if name in tree.modes else made[name])
            fault("release_member")
    return found


def copied(archive: zipfile.ZipFile, info: zipfile.ZipInfo, content: Iterable[bytes]) -> str:
    """Bytes into a member of the container; their SHA-256."""
    found = hashlib.sha256()
    with archive.open(info, "w") as out:
        for block in content:
            found.update(block)
            out.write(block)
    return found.hexdigest()
