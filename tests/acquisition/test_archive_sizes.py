"""Archives that would fill disk or memory are refused, whatever they say of their size."""

import gzip
import os
import struct
import tarfile
import tracemalloc
import zlib

import pytest
from hostile_archives import special, tar_of, unpack, zip_of

from stages.errors import DataError


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
