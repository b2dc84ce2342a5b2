"""Unpacking tar.gz, tar.xz and zip so that nothing is written outside one folder, and nothing but
plain files inside it.

An archive is somebody else's program for our file system: `../`, absolute names, links, devices,
two names for one file, a gigabyte of zeros in a megabyte. Here each member is judged before a byte
of it is written: regular files and folders only, names of plain components that resolve inside the
target, no name twice and none that differs only in case, and caps on members, bytes and ratio. One
bad member refuses the whole archive. Sizes in bytes. CWE-22, CWE-59, CWE-409.
"""

import errno
import gzip
import lzma
import os
import re
import shutil
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from stages import files
from stages.errors import DataError

NAMES = (".tar.gz", ".tar.xz", ".zip")  # how an archive's name ends
BLOCK = 1 << 20
HEADER = 1 << 20  # what the headers before one member may take, long names and all
SLACK = 16 << 20  # below this the ratio is not looked at: small files of zeros are no attack


@dataclass(frozen=True)
class Caps:
    """What an archive may unpack to; `ratio` is unpacked bytes to archive bytes (text reaches
    20)."""

    members: int = 10_000
    unpacked_bytes: int = 64 << 30
    ratio: float = 200.0


def extract(archive: str | Path, target: str | Path, caps: Caps = Caps()) -> list[str]:
    """Unpack into the folder `target`, which appears whole or not at all; sorted names.
    DataError names the bad member."""
    with files.atomic_folder(target) as folder:
        return unpack(archive, folder, caps)


def unpack(archive: str | Path, folder: Path, caps: Caps = Caps()) -> list[str]:
    """Unpack into an existing folder that the caller throws away on an error; names of the files
    written, sorted."""
    archive = Path(archive)
    with archive.open("rb") as stream:
        magic = stream.read(6)
    reader = next((reader for start, reader in READERS.items() if magic.startswith(start)), None)
    if reader is None:
        raise DataError(
            "the archive is of no known kind",
            where=archive.name,
            expected="tar.gz, tar.xz or zip",
            found=f"first bytes {magic!r}",
        )
    limit = min(caps.unpacked_bytes, max(SLACK, int(caps.ratio * archive.stat().st_size)))
    unpacker = _Unpacker(archive.name, folder, caps.members, limit)
    try:
        reader(archive, unpacker)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DataError(
                "the disk does not hold what is in the archive",
                where=archive.name,
                found=str(error),
                remedy="free some space and run again",
            ) from None
        raise _broken(archive, error) from None
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
        EOFError,
        ValueError,
        RuntimeError,
    ) as error:
        raise _broken(archive, error) from None
    if not unpacker.written:
        raise DataError("the archive holds no file", where=archive.name)
    return sorted(unpacker.written)


def _broken(archive: Path, error: Exception) -> DataError:
    return DataError(
        "the archive is broken",
        where=archive.name,
        found=f"{type(error).__name__}: {error}",
        remedy="fetch it again",
    )


class _Unpacker:
    """Judges and writes the members of one archive."""

    def __init__(self, archive: str, folder: Path, members: int, limit: int):
        self.archive, self.folder, self.members, self.limit = (
            archive,
            folder.resolve(),
            members,
            limit,
        )
        self.left = limit
        self.seen: dict[str, tuple[str, bool]] = {}  # folded path -> (its spelling, is it a folder)
        self.written: list[str] = []

    def refuse(self, name: str, reason: str) -> DataError:
        return DataError(
            "an archive is refused",
            where=f"{self.archive}: {name[:200]!r}",
            found=reason,
            remedy="nothing was unpacked; "
            "if the archive is trusted, see the caps and rules in stages/acquisition/archive.py",
        )

    def judge(self, name: str, is_folder: bool, size: int) -> str:
        """The member's path under the folder, after all rules. DataError where one is broken."""
        self.members -= 1
        if self.members < 0:
            raise self.refuse(name, "more members than allowed")
        parts = self.parts(name, is_folder)
        for depth in range(1, len(parts) + 1):
            spelling, folder_here = "/".join(parts[:depth]), is_folder or depth < len(parts)
            key, here = unicodedata.normalize("NFC", spelling).casefold(), (spelling, folder_here)
            known = self.seen.get(key, here)
            if known != here:
                raise self.refuse(
                    name, f"it clashes with {known[0]!r}: the same name but for case or kind"
                )
            if key in self.seen and not folder_here:
                raise self.refuse(name, "the name comes twice")
            self.seen[key] = here
        if not 0 <= size <= self.left:
            raise self.refuse(
                name, f"{size} bytes, where all members together may unpack to {self.limit} bytes"
            )
        if size > shutil.disk_usage(self.folder).free:
            raise self.refuse(name, f"the disk does not hold its {size} bytes")
        path = "/".join(parts)
        if not (self.folder / path).resolve().is_relative_to(self.folder):
            raise self.refuse(name, "it leads outside the folder")
        return path

    def parts(self, name: str, is_folder: bool) -> list[str]:
        """The name's components: none empty, `..`, absolute, with a backslash, a control
        character or a drive letter."""
        if (
            not name
            or name.startswith("/")
            or re.search(r"[\\\x00-\x1f\x7f\ud800-\udfff]", name)
            or re.match(r"[A-Za-z]:", name)
        ):
            raise self.refuse(
                name,
                "an absolute name, or one with a backslash, a drive, a control or an undecodable "
                "character",
            )
        parts = [
            part for part in (name.rstrip("/") if is_folder else name).split("/") if part != "."
        ]
        if (
            any(part in ("", "..") or len(part.encode()) > 255 for part in parts)
            or len(name) > 1000
        ):
            raise self.refuse(name, "a name with `..`, an empty or an overlong component")
        if not parts and not is_folder:
            raise self.refuse(name, "an empty name")
        return parts

    def folder_member(self, name: str) -> None:
        (self.folder / self.judge(name, True, 0)).mkdir(parents=True, exist_ok=True)

    def file_member(self, name: str, size: int, open_body: Callable[..., Any]) -> None:
        """Write one file of exactly `size` bytes; it must not exist yet."""
        path = self.judge(name, False, size)
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        left = size
        try:
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        except FileExistsError:
            raise self.refuse(name, "an earlier archive of the data set holds that name") from None
        with os.fdopen(fd, "wb") as out, open_body() as body:
            while left and (block := body.read(min(BLOCK, left))):
                out.write(block)
                left -= len(block)
        if left:
            raise self.refuse(name, f"{left} of its {size} bytes are missing")
        self.left -= size
        self.written.append(path)


class _Metered:
    """A stream that gives no more than `allowed` bytes, so that a header (a long name, say)
    cannot eat the memory."""

    def __init__(self, stream: BinaryIO):
        self.stream, self.allowed = stream, HEADER

    def read(self, count: int = -1) -> bytes:
        data = self.stream.read(count)
        self.allowed -= len(data)
        if self.allowed < 0:
            raise tarfile.ReadError("headers larger than any honest archive has")
        return data


class _Member(tarfile.TarInfo):
    """A tar member. The library takes a broken header for the archive's end; here only the end
    mark is one."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> "_Member":
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed lacks it
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"a header is broken or cut off ({error})") from None


def _tar(archive: Path, unpacker: _Unpacker, opened: Callable[..., Any] = gzip.open) -> None:
    """Members of a packed tar in the order they come, in one pass; after the end mark only zeros
    may follow."""
    with opened(archive, "rb") as plain:
        metered = _Metered(plain)
        with tarfile.open(fileobj=metered, mode="r|", tarinfo=_Member, errors="strict") as tar:
            while (member := tar.next()) is not None:
                tar.members.clear()  # a stream never goes back; the list would only grow
                if member.isdir():
                    unpacker.folder_member(member.name)
                elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and member.sparse is None:
                    metered.allowed += max(0, member.size)
                    unpacker.file_member(
                        member.name, member.size, lambda member=member: tar.extractfile(member)
                    )
                else:
                    raise unpacker.refuse(
                        member.name,
                        f"a member of type {member.type!r}: a link, a device or a sparse file",
                    )
                metered.allowed = HEADER
        while block := metered.read(BLOCK // 16):
            if block.strip(b"\0"):
                raise tarfile.ReadError("data after the end mark")


def _zip(archive: Path, unpacker: _Unpacker) -> None:
    """Members of a zip as its central directory lists them."""
    with zipfile.ZipFile(archive) as package:
        for member in package.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (
                (kind == stat.S_IFDIR) != member.is_dir() and kind
            ):
                raise unpacker.refuse(
                    member.orig_filename,
                    f"a member of mode {kind:o}: a link, a device or a folder in disguise",
                )
            if member.flag_bits & 0x1 or member.compress_type not in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            ):
                raise unpacker.refuse(
                    member.orig_filename, "it is encrypted, or packed by a rare method"
                )
            if member.is_dir():
                unpacker.folder_member(member.orig_filename)
            else:
                unpacker.file_member(
                    member.orig_filename,
                    member.file_size,
                    lambda member=member: package.open(member),
                )


READERS = {
    b"\x1f\x8b": _tar,
    b"\xfd7zXZ\x00": partial(_tar, opened=lzma.open),
    b"PK\x03\x04": _zip,
    b"PK\x05\x06": _zip,
}  # by first bytes
