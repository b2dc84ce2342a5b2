"""Bundles taken apart, changed, mended and packed again."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

from stages import files
from stages.audit.history import name_of
from stages.exports import bundle, recheck
from stages.exports.tree import Commit, commit_name, tree_name

HOME = Path(__file__).parents[2]


def furnish(folder: Path) -> Path:
    """What a release asks of a project beside its results."""
    shutil.copytree(
        HOME / "stages/exports",
        folder / "stages/exports",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("LICENSE", "pyproject.toml"):
        shutil.copy(HOME / name, folder / name)
    return folder


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def packed(
    path: Path,
    content: dict[str, bytes],
    modes: dict[str, int] | None = None,
    method: int = zipfile.ZIP_STORED,
) -> Path:
    """A container of these members."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in sorted(content):
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr, info.compress_type = (
                3,
                (modes or {}).get(name, 0o100644) << 16,
                method,
            )
            archive.writestr(info, content[name])
    return path


def mend_manifest(content: dict[str, bytes]) -> None:
    """Make the manifest agree with the members."""
    told = json.loads(content[bundle.MANIFEST])
    for name in content.keys() - {bundle.MANIFEST}:
        entry = told["members"].setdefault(name, {"kind": "commit", "mode": "100644"})
        entry |= {"sha256": hashlib.sha256(content[name]).hexdigest(), "bytes": len(content[name])}
    told["members"] = {name: entry for name, entry in told["members"].items() if name in content}
    content[bundle.MANIFEST] = files.json_text(told).encode()


def mend_commit(content: dict[str, bytes]) -> None:
    """Make a commit of the members and name it everywhere: what remains are the links between
    records and results."""
    told = json.loads(content[bundle.MANIFEST])
    ours = {
        name: entry["mode"]
        for name, entry in told["members"].items()
        if entry["kind"] == "commit" and name in content
    }
    before = told["tree"].encode()
    told["tree"] = tree_name(
        {name: (mode, name_of("blob", content[name], "sha1")) for name, mode in ours.items()}
    )
    text = content[bundle.COMMIT].replace(before, told["tree"].encode())
    told["commit"] = commit_name(Commit.parse("x", text))
    content[bundle.COMMIT], content[bundle.MANIFEST] = text, files.json_text(told).encode()
    from stages.exports.tree import Tree

    content |= bundle.derived(Tree(content, ours, Commit.parse(told["commit"], text)))
    mend_manifest(content)


def verdict(path: Path) -> tuple[str, str]:
    found = recheck.verify(path)
    return found.verdict, found.render()
