"""Hostile archives, built here. Whatever they hold, nothing outside the target changes."""

import gzip
import hashlib
import io
import lzma
import os
import stat
import tarfile
import zipfile

import pytest
from hostile_archives import broken, special, tar_of, unpack, zip_of

from stages.acquisition.archive import Caps, extract
from stages.acquisition.archive import unpack as plainly
from stages.errors import DataError


def moded(name, mode):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


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
