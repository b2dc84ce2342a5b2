"""Hostile archives, built here. Whatever they hold, nothing outside the target changes."""

import gzip
import hashlib
import io
import lzma
import os
import stat
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import pytest

from stages.acquisition.archive import Caps, extract
from stages.acquisition.archive import unpack as plainly
from stages.errors import DataError


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


def moded(name, mode):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.fixture
def watched(tmp_path):
    """A folder with files an archive would like to reach; after the test nothing but `work/` may
    have changed."""
    (tmp_path / "work").mkdir()
    (tmp_path / "outside.txt").write_text("untouched")
    (tmp_path / "yard").mkdir()
    (tmp_path / "yard" / "inside.txt").write_text("untouched")

    def look():
        return {
            path.relative_to(tmp_path): (
                path.lstat().st_mode,
                path.lstat().st_mtime_ns,
                path.read_bytes() if path.is_file() else None,
            )
            for path in tmp_path.rglob("*")
            if path != tmp_path / "work" and tmp_path / "work" not in path.parents
        }

    before = look()
    yield tmp_path
    assert look() == before


def unpack(watched, data, **caps):
    (watched / "work" / "a.bin").write_bytes(data)
    return extract(watched / "work" / "a.bin", watched / "work" / "out", Caps(**caps))


@pytest.mark.parametrize("build", [tar_of, zip_of])
def test_a_sound_archive(watched, build):
    files = {
        "Sky/b.csv": b"1,2\n" * 9000,
        "Sky/a.csv": b"",
        "Sky/deep/ä.csv": os.urandom(3000),
        "./top.csv": b"t",
    }
    assert unpack(watched, build(list(files.items()))) == sorted(
        name.removeprefix("./") for name in files
    )
    out = watched / "work" / "out"
    assert {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file()
    } == {name.removeprefix("./"): body for name, body in files.items()}
    assert all(
        stat.S_IMODE(path.stat().st_mode) == 0o644 for path in out.rglob("*") if path.is_file()
    )
    assert sorted(path.name for path in (watched / "work").iterdir()) == ["a.bin", "out"]


def test_what_real_tars_hold_besides_files(watched):
    """Folder entries (also after their files), long names, and modes that would make the result
    unreadable."""
    closed = tarfile.TarInfo("Sky/closed.csv")
    closed.mode = 0o000
    folder = special("Sky/", tarfile.DIRTYPE)
    long = "Sky/" + "n" * 180 + ".csv"
    assert unpack(
        watched, tar_of([special("Sky", tarfile.DIRTYPE), (closed, b"c"), folder, (long, b"l")])
    ) == ["Sky/closed.csv", long]
    assert (watched / "work/out/Sky/closed.csv").read_bytes() == b"c"


BAD_NAMES = [
    "../evil",
    "a/../../evil",
    "/evil",
    "a//b",
    "..",
    "a/..",
    "a\\..\\evil",
    "C:evil",
    "\\\\host\\x",
    "a\x01b",
    "n" * 300,
    "a/" * 600 + "b",
]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("build", [tar_of, zip_of])
@pytest.mark.fault("F14")
def test_names_that_lead_elsewhere(watched, build, name):
    with pytest.raises(DataError, match="archive is refused"):
        unpack(watched, build([("good.csv", b"g"), (name, b"evil")]))
    assert [path.name for path in (watched / "work").iterdir()] == ["a.bin"], (
        "not even the good member stays"
    )


@pytest.mark.parametrize(
    "kind, target",
    [
        (tarfile.SYMTYPE, "../yard"),
        (tarfile.SYMTYPE, "/etc"),
        (tarfile.SYMTYPE, "good.csv"),
        (tarfile.LNKTYPE, "../outside.txt"),
        (tarfile.LNKTYPE, "good.csv"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.CONTTYPE, ""),
        (b"Z", ""),
    ],
)
@pytest.mark.fault("F14")
def test_links_and_devices(watched, kind, target):
    """Among them: a link to a folder, then a file through it; a hard link to a file outside,
    then a file of its name."""
    with pytest.raises(DataError, match="archive is refused"):
        unpack(
            watched,
            tar_of([("good.csv", b"g"), special("sub", kind, target), ("sub/inside.txt", b"evil")]),
        )
    assert not (watched / "work" / "out").exists()


@pytest.mark.fault("F14")
def test_a_sparse_member_in_a_regular_disguise(watched):
    """PAX's sparse format has the type of a regular file; its size on disk is a claim of its
    header."""
    info = tarfile.TarInfo("GNUSparseFile.0/a.csv")
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "a.csv",
        "GNU.sparse.realsize": "1000000",
    }
    body = b"1\n0\n512\n".ljust(512, b"\0") + bytes(512)
    info.size = len(body)
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(body))
    with pytest.raises(DataError, match="sparse"):
        unpack(watched, gzip.compress(plain.getvalue()))


@pytest.mark.parametrize(
    "mode",
    [
        stat.S_IFLNK | 0o777,
        stat.S_IFCHR | 0o600,
        stat.S_IFIFO | 0o600,
        stat.S_IFSOCK,
        stat.S_IFDIR | 0o755,
    ],
)
@pytest.mark.fault("F14")
def test_links_and_devices_in_a_zip(watched, mode):
    with pytest.raises(DataError, match="archive is refused"):
        unpack(
            watched,
            zip_of(
                [("good.csv", b"g"), (moded("sub", mode), b"../yard"), ("sub/inside.txt", b"evil")]
            ),
        )
    assert not (watched / "work" / "out").exists()


@pytest.mark.parametrize(
    "names, reason",
    [
        (["a.csv", "a.csv"], "twice"),
        (["a.csv", "./a.csv"], "twice"),
        (["a.csv", "A.csv"], "clashes"),
        (["Sub/x", "sub/y"], "clashes"),
        (["a", "a/b"], "clashes"),
        (["a/b", "a"], "clashes"),
        (["stra\u00dfe", "STRASSE"], "clashes"),
        (["\u00e9", "e\u0301"], "clashes"),
    ],
)
@pytest.mark.parametrize("build", [tar_of, zip_of])
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.fault("F14")
def test_two_members_for_one_file(watched, build, names, reason):
    with pytest.raises(DataError, match=reason):
        unpack(watched, build([(name, name.encode()) for name in names]))
    assert not (watched / "work" / "out").exists()


def zeros_gz(mebibytes):
    """A gzip stream of so many MiB of zeros, cheap to make: gzip members may follow each other."""
    return gzip.compress(bytes(16 << 20), 9) * (mebibytes // 16)


@pytest.mark.fault("F14")
def test_a_gigabyte_of_zeros_in_a_megabyte(watched, clock):
    info = tarfile.TarInfo("zeros.csv")
    info.size = 1 << 30
    bomb = (
        gzip.compress(info.tobuf(tarfile.GNU_FORMAT)) + zeros_gz(1024) + gzip.compress(bytes(1024))
    )
    assert len(bomb) < 2 << 20
    clock()
    with pytest.raises(DataError, match="may unpack to"):
        unpack(watched, bomb)
    assert clock() < 1.0, "refused by its announced size, before it is unpacked"
    assert [path.name for path in (watched / "work").iterdir()] == ["a.bin"]


@pytest.mark.fault("F14")
def test_many_members_that_together_are_too_large(watched):
    with pytest.raises(DataError, match="may unpack to"):
        unpack(watched, tar_of([(f"{n}.csv", bytes(4 << 20)) for n in range(5)]))
    assert not (watched / "work" / "out").exists()


def test_a_name_of_a_gigabyte_does_not_fill_the_memory(watched):
    """A long-name header whose name is 1 GB of zeros: the bomb sits in the header, where member
    sizes are not looked at."""
    info = special("@LongLink", tarfile.GNUTYPE_LONGNAME)
    info.size = 1 << 30
    bomb = gzip.compress(info.tobuf(tarfile.GNU_FORMAT)) + zeros_gz(1024)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="headers larger"):
            unpack(watched, bomb)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.fault("F14")
def test_a_zip_of_zeros_and_one_that_lies_about_it(watched):
    body = zlib.compressobj(9, wbits=-15)
    packed = body.compress(bytes(64 << 20)) + body.flush()

    def zip_with(size):
        name, crc = b"z.csv", zlib.crc32(bytes(64 << 20))
        local = (
            struct.pack(
                "<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(packed), size, len(name), 0
            )
            + name
            + packed
        )
        entry = (
            struct.pack(
                "<4s6H3L5H2L",
                b"PK\1\2",
                20,
                20,
                0,
                8,
                0,
                33,
                crc,
                len(packed),
                size,
                len(name),
                0,
                0,
                0,
                0,
                0,
                0,
            )
            + name
        )
        return (
            local
            + entry
            + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(local), 0)
        )

    with pytest.raises(DataError, match="may unpack to"):
        unpack(watched, zip_with(64 << 20))
    with pytest.raises(DataError, match="broken"):
        unpack(watched, zip_with(1000))
    assert [path.name for path in (watched / "work").iterdir()] == ["a.bin"]


@pytest.mark.fault("F14")
def test_too_many_members(watched):
    members = [(f"{n}", b"") for n in range(21)]
    assert len(unpack(watched, tar_of(members), members=21)) == 21
    for build in (tar_of, zip_of):
        with pytest.raises(DataError, match="more members"):
            unpack(watched, build(members), members=20)


def test_caps_count_from_the_outside(watched):
    data = tar_of([("a", os.urandom(1000)), ("b", os.urandom(1001))])
    assert unpack(watched, data, unpacked_bytes=2001) == ["a", "b"]
    with pytest.raises(DataError, match="2000 bytes"):
        unpack(watched, data, unpacked_bytes=2000)


def test_a_tar_xz_is_unpacked_as_a_tar_gz_is(tmp_path):
    members = [
        ("openwebtext/urlsf_subset00-1_data.xz", os.urandom(70_000)),
        ("openwebtext/b.txt", b"text\n"),
    ]
    for name, data in (
        ("a.tar.gz", tar_of(members)),
        ("a.tar.xz", lzma.compress(gzip.decompress(tar_of(members)))),
    ):
        (tmp_path / name).write_bytes(data)
        assert extract(tmp_path / name, tmp_path / f"{name}.out") == [
            "openwebtext/b.txt",
            "openwebtext/urlsf_subset00-1_data.xz",
        ]
        assert all(
            (tmp_path / f"{name}.out" / member).read_bytes() == body for member, body in members
        )
    with pytest.raises(DataError, match="2000 bytes"):
        extract(tmp_path / "a.tar.xz", tmp_path / "small", Caps(unpacked_bytes=2000))


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


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in broken()])
@pytest.mark.fault("F14")
def test_broken_archives_leave_nothing(watched, data):
    with pytest.raises(DataError):
        unpack(watched, data)
    assert [path.name for path in (watched / "work").iterdir()] == ["a.bin"]


def test_an_encrypted_zip_is_refused(watched):
    data = bytearray(zip_of([("a.csv", b"abc")]))
    data[6] |= 1  # the flag in the local header ...
    data[data.index(b"PK\1\2") + 8] |= 1  # ... and in the directory
    with pytest.raises(DataError, match="encrypted"):
        unpack(watched, bytes(data))


@pytest.mark.fault("F14")
def test_an_earlier_folder_stays_when_the_new_archive_is_bad(watched):
    unpack(watched, tar_of([("a.csv", b"old")]))
    with pytest.raises(DataError):
        unpack(watched, tar_of([("a.csv", b"new"), ("../evil", b"")]))
    assert (watched / "work/out/a.csv").read_bytes() == b"old"
    assert unpack(watched, tar_of([("b.csv", b"new")])) == ["b.csv"]
    assert [path.name for path in (watched / "work/out").iterdir()] == ["b.csv"], "replaced whole"


def test_two_archives_into_one_folder_may_not_meet(watched):
    folder = watched / "work" / "out"
    folder.mkdir()
    for number, name in enumerate(["a.csv", "b.csv"]):
        (watched / "work" / f"{number}.bin").write_bytes(tar_of([(name, b"%d" % number)]))
        assert plainly(watched / "work" / f"{number}.bin", folder) == [name]
    with pytest.raises(DataError, match="earlier archive"):
        plainly(watched / "work" / "0.bin", folder)
    assert (folder / "a.csv").read_bytes() == b"0"


@pytest.mark.fault("F14")
def test_random_damage_never_escapes_and_never_crashes(watched):
    """120 archives with random bytes changed, tar (before compression) and zip: unpacked or
    refused, nothing else."""
    import random

    random_ = random.Random(14)
    plain = gzip.decompress(tar_of([("a/b.csv", b"1" * 700), ("a/c.csv", b"2" * 700)]))
    package = zip_of([("a/b.csv", b"1" * 700), ("a/c.csv", b"2" * 700)])
    outcomes = hashlib.sha256()
    for n in range(120):
        data = bytearray(plain[:4096] if n % 2 else package)
        for _ in range(random_.randint(1, 4)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        try:
            unpack(watched, gzip.compress(bytes(data), 1) if n % 2 else bytes(data))
        except DataError as error:
            outcomes.update(error.what.encode())
    assert outcomes.digest() != hashlib.sha256().digest(), "some were refused"
