"""A bundle read without unpacking it: every rule of its container is checked before a member is
believed.

A release stores its members unpacked (ZIP method 0) and each once, so the container can hold no
more than its own size: there is nothing to explode. Refused by name: another method, encryption,
links and devices, absolute names, `..`, backslashes, drive letters, control characters, two names
for one file (also but for case), sizes that exceed the file, members that overlap, a damaged
member. Nothing is written to disk. Sizes in bytes. CWE-22, CWE-59, CWE-409.
"""

import re
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from stages.errors import DataError, InputError

MEMBERS = 200_000
BLOCK = 1 << 20
LOADED = 256 << 20  # no member that is read whole is larger; data are hashed by the block
UNSAFE = re.compile(r"[\\\x00-\x1f\x7f\ud800-\udfff]|^[A-Za-z]:|^/")


class Reader(Mapping):  # type: ignore[type-arg]  # bare, as it stands when it runs
    """The members of a bundle by name; use it as a context. InputError for a file that is no
    bundle, DataError for a bad member."""

    def __init__(self, path: Path):
        self.path = path
        self.infos: dict[str, zipfile.ZipInfo] = {}
        try:
            self.archive = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise InputError("there is no such bundle", where=str(path)) from None
        except IsADirectoryError:
            raise InputError(
                "that is a folder", where=str(path), expected="a bundle: one .zip file"
            ) from None
        except (zipfile.BadZipFile, ValueError, struct.error, OverflowError, RuntimeError) as error:
            with path.open("rb") as stream:
                if stream.read(2) != b"PK":  # another file was named
                    raise InputError(
                        "that is no bundle",
                        where=str(path),
                        found="no zip file",
                        expected="a bundle: one .zip file, as `tradewind release` writes it",
                    ) from None
            raise DataError(
                "the bundle cannot be opened",
                where=str(path),
                found=str(error),
                expected="a zip file, whole",
            ) from None
        try:
            self._judge()
        except BaseException:
            self.archive.close()
            raise

    def _judge(self) -> None:
        size, infos, folded = self.path.stat().st_size, self.archive.infolist(), set()
        if len(infos) > MEMBERS:
            raise self.refuse("", f"{len(infos)} members, where at most {MEMBERS} are read")
        end = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            self._member(info, size)
            if info.header_offset < end:
                raise self.refuse(info.orig_filename, "it overlaps the member before it")
            end = info.header_offset + 30 + len(info.orig_filename.encode()) + info.file_size
        for info in infos:
            key = unicodedata.normalize("NFC", info.orig_filename).casefold()
            if key in folded:
                raise self.refuse(
                    info.orig_filename,
                    "the name comes twice (or another that differs only in case)",
                )
            folded.add(key)
            self.infos[info.orig_filename] = info

    def _member(self, info: zipfile.ZipInfo, size: int) -> None:
        """DataError unless a member is a plain stored file of a safe name."""
        name, kind = info.orig_filename, stat.S_IFMT(info.external_attr >> 16)
        if (
            not name
            or UNSAFE.search(name)
            or any(part in ("", ".", "..") for part in name.split("/"))
            or len(name) > 1000
        ):
            raise self.refuse(
                name,
                "its name is absolute, leads outside, or holds a character that no name here holds",
            )
        if kind != stat.S_IFREG:
            raise self.refuse(name, f"its mode is {kind:o}: a link, a folder or a device")
        if info.flag_bits & 0x1:
            raise self.refuse(name, "it is encrypted")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise self.refuse(
                name,
                f"it is packed ({info.compress_size} bytes that claim to be {info.file_size}): a "
                "release stores its files as they are",
            )
        if info.header_offset + 30 + info.file_size > size:
            raise self.refuse(name, f"it claims {info.file_size} bytes, more than the bundle holds")

    def refuse(self, name: str, reason: str) -> DataError:
        """What is said of a member that is refused."""
        return DataError(
            "the bundle is refused",
            where=f"{self.path.name}: {name[:200]!r}",
            found=reason,
            remedy="nothing was unpacked; get the bundle anew from where it was published",
        )

    def blocks(self, name: str) -> Iterator[bytes]:
        """A member's bytes, a block at a time. DataError where its checksum is not the
        container's."""
        try:
            with self.archive.open(self.infos[name]) as stream:
                while block := stream.read(BLOCK):
                    yield block
        except (zipfile.BadZipFile, EOFError, struct.error, RuntimeError) as error:
            raise self.refuse(name, f"it is damaged: {error}") from None

    def __getitem__(self, name: str) -> bytes:
        if self.infos[name].file_size > LOADED:
            raise self.refuse(
                name, f"{self.infos[name].file_size} bytes, where at most {LOADED} are read at once"
            )
        return b"".join(self.blocks(name))

    def __contains__(self, name: object) -> bool:
        return name in self.infos

    def __iter__(self) -> Iterator[str]:
        return iter(self.infos)

    def __len__(self) -> int:
        return len(self.infos)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.archive.close()
