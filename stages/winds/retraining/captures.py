"""A raw folder of captures: its identity, its span, and how files come to stand in it."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from stages import files
from stages.errors import DataError, IntegrityError

HOME = files.WORK / "retraining"
INCOMING = HOME / "incoming"  # claimed, and not decided on
SPARE = 64 << 20  # bytes that stay free


def raw_manifest(final: Path) -> dict[str, dict[Any, Any]]:
    """Name -> line of what was taken in before; {} where nothing was. DataError, IntegrityError
    where the folder is not that."""
    if not final.exists():
        if final.with_name(f"{final.name}.dvc").exists():
            raise DataError(
                "earlier captures are known, but not here",
                where=str(final),
                remedy="`dvc checkout` or `dvc pull` them first",
            )
        return {}
    manifest = files.read_json(final / "manifest.json")
    if (
        not isinstance(manifest, dict)
        or manifest.get("kind") != "captures"
        or not isinstance(manifest.get("files"), dict)
    ):
        raise DataError(
            "the raw folder holds something else than captures",
            where=str(final / "manifest.json"),
            remedy="restore it (`dvc checkout`)",
        )
    missing = [name for name in manifest["files"] if not (final / name).is_file()]
    if missing:
        raise IntegrityError(
            "captures are missing from the raw folder",
            where=str(final),
            found=", ".join(missing[:5]),
            remedy="restore it (`dvc checkout`, or `dvc pull` for what another machine took in)",
        )
    return manifest["files"]


def linked(old: Path, new: Path) -> None:
    """The same file under another name: a hard link where the file system allows one, else a
    copy. Neither is ever written to."""
    try:
        os.link(old.resolve(), new)
    except OSError:
        shutil.copyfile(old, new)


def room(final: Path, captures: list[Path]) -> None:
    """DataError unless the disk holds the new captures twice (the store keeps a copy); what is
    old is linked."""
    needed = 2 * sum(path.stat().st_size for path in captures) + SPARE
    free = shutil.disk_usage(final.parent if final.parent.exists() else Path()).free
    if needed > free:
        raise DataError(
            "the disk does not hold the captures",
            where=str(final),
            expected=f"{needed:.3g} bytes free",
            found=f"{free:.3g} bytes free",
            remedy=f"free some space and run again; the captures wait in {INCOMING}",
        )


def state(raw: Path) -> dict[str, Any]:
    """captures (how many), span_s (from the first frame to the last) and raw (`state_of`; None
    where nothing was ever taken in)."""
    if not raw.exists():
        return {"captures": 0, "span_s": 0.0, "raw": None}
    lines = raw_manifest(raw).values()
    span_s = max(line["last_s"] for line in lines) - min(line["first_s"] for line in lines)
    return {"captures": len(lines), "span_s": round(span_s, 3), "raw": state_of(raw)}


def state_of(raw_folder: str | Path) -> str:
    """The identity of a raw folder: SHA-256 over the sorted (name, SHA-256) pairs of its
    manifest. DataError where it has none."""
    where = Path(raw_folder) / "manifest.json"
    try:
        pairs = sorted(
            (name, line["sha256"]) for name, line in files.read_json(where)["files"].items()
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            "a manifest does not list its files",
            where=str(where),
            found=f"{type(error).__name__}: {error}",
            remedy="restore it (`dvc checkout`)",
        ) from None
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
