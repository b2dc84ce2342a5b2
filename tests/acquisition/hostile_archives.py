"""Archives built here, sound ones and hostile ones."""

import gzip
import io
import lzma
import os
import tarfile
import zipfile

from stages.acquisition.archive import Caps, extract


def tar_of(members, tail=b""):
    """Bytes of a tar.gz; a member is (name, body) or a TarInfo, or (TarInfo, body)."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in members:
            info, body = member if isinstance(member, tuple) else (member, b"")
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return gzip.compress(plain.getvalue() + tail, 1)


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_of(members):
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w", zipfile.ZIP_DEFLATED) as package:
        for info, body in members:
            package.writestr(info, body)
    return plain.getvalue()


def unpack(watched, data, **caps):
    (watched / "work" / "a.bin").write_bytes(data)
    return extract(watched / "work" / "a.bin", watched / "work" / "out", Caps(**caps))


def broken():
    sound = tar_of([("a.csv", os.urandom(50_000)), ("b.csv", os.urandom(50_000))])
    plain = gzip.decompress(sound)
    second = 512 + 50_176
    yield "cut gzip", sound[: len(sound) // 2]
    yield "cut tar", gzip.compress(plain[:60_000])
    yield "no end mark", gzip.compress(plain[: second * 2])
    yield (
        "broken second header",
        gzip.compress(plain[:second] + b"\xff" * 512 + plain[second + 512 :]),
    )
    yield "flipped byte", sound[:-2000] + bytes([sound[-2000] ^ 1]) + sound[-1999:]
    yield "data after the end", gzip.compress(plain + b"more" * 1000)
    yield "cut xz", lzma.compress(plain)[:40_000]
    yield (
        "flipped byte in xz",
        (packed := lzma.compress(plain))[:60_000] + bytes([packed[60_000] ^ 1]) + packed[60_001:],
    )
    yield "a cut zip", zip_of([("a.csv", os.urandom(5000))])[:-30]
    yield "empty tar", tar_of([])
    yield "empty zip", zip_of([])
    yield "plain text", b"ts,lat,lon\n"
    yield "nothing", b""
