"""A local folder that may hold pinned files already: TRADEWIND_MIRROR, looked up by content before
the network is asked.

Names and folders in it mean nothing. Files are indexed by size; only those of the right size are
hashed. A `SHA256SUMS` file at its top (lines of `hex  path`) decides which candidate is looked at
first, and is never believed: what is handed out was read back and hashed after the copy. Where a
source pins neither sha256 nor size, its file name finds candidates.
"""

import contextlib
import os
import re
import shutil
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from stages import files
from stages.acquisition.sources import matches
from stages.errors import InputError

if TYPE_CHECKING:
    from stages.params import Source


class Mirror:
    """An index of a folder. InputError when the folder is not there."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(
                "the mirror is not a folder",
                where="TRADEWIND_MIRROR",
                expected="a folder that can be read",
                found=str(folder),
                remedy="name an existing folder, or unset the variable to download",
            )

    @cached_property
    def sizes(self) -> dict[int, list[Path]]:
        """Regular files by size in bytes, sorted by path; symbolic links are not followed."""
        found: dict[int, list[Path]] = defaultdict(list)
        for top, folders, names in os.walk(self.folder):
            folders.sort()
            for path in (Path(top, name) for name in sorted(names)):
                if path.is_file() and not path.is_symlink():
                    found[path.stat().st_size].append(path)
        return found

    @cached_property
    def sums(self) -> dict[str, Path]:
        """sha256 -> path, as the folder's own SHA256SUMS claims."""
        claims = self.folder / "SHA256SUMS"
        text = claims.read_text(encoding="utf-8", errors="replace") if claims.is_file() else ""
        return {
            found[1]: self.folder / found[2]
            for found in re.finditer(r"(?m)^([0-9a-f]{64}) [ *](.+)$", text)
        }

    def candidates(self, source: "Source") -> list[Path]:
        """Files that may be the pinned one, the likeliest first."""
        if source.bytes:
            likely = self.sizes.get(source.bytes, [])
        else:
            name = source.url.rpartition("/")[2]
            likely = [path for paths in self.sizes.values() for path in paths if path.name == name]
        claimed = self.sums.get(source.sha256)
        inside = (
            claimed
            and claimed.is_file()
            and claimed.resolve().is_relative_to(self.folder.resolve())
        )
        return [claimed, *(path for path in likely if path != claimed)] if inside else likely

    def copy(self, source: "Source", path: str | Path) -> Path | None:
        """Copy the pinned file to `path` if the folder holds it; returns where it was found. The
        copy itself is verified."""
        for candidate in self.candidates(source):
            with contextlib.suppress(PermissionError):  # somebody else's file in a shared folder
                if matches(candidate, source) and copy(candidate, source, path):
                    return candidate
        return None


def copy(origin: Path, source: "Source", path: str | Path) -> bool:
    """Copy `origin` to `path` by temp file and rename, if the copy's bytes, read back, are the
    pinned ones."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.copy")
    try:
        with origin.open("rb") as reader, temporary.open("wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())
        if not matches(temporary, source):
            return False
        os.replace(temporary, path)
        files.sync_folder(path.parent)
        return True
    finally:
        temporary.unlink(missing_ok=True)
