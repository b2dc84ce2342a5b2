"""TensorBoard's files of scalars, written without TensorBoard: records of length, bytes and their
checksums (TFRecord), each an `Event` in the wire format of protocol buffers.

TensorBoard reads a record's checksums: CRC-32C (Castagnoli), turned and shifted as TFRecord has it.
Fields: Event 1 wall time [s], 2 step, 3 version of the file, 5 summary; Summary 1 value; Value 1
tag, 2 number.
"""

import struct
from collections.abc import Iterable, Iterator

VERSION = "brain.Event:2"
POLYNOMIAL, MASK = 0x82F63B78, 0xA282EAD8  # of CRC-32C, reflected; TFRecord's
WORD = 0xFFFFFFFF


def _table() -> Iterator[int]:
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        yield byte


TABLE = tuple(_table())


def checksum(data: bytes) -> int:
    """The CRC-32C of some bytes."""
    found = WORD
    for byte in data:
        found = found >> 8 ^ TABLE[(found ^ byte) & 0xFF]
    return found ^ WORD


def record(data: bytes) -> bytes:
    """A TFRecord of some bytes."""

    def masked(part: bytes) -> bytes:
        found = checksum(part)
        return struct.pack("<I", ((found >> 15 | found << 17) + MASK) & WORD)

    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def whole(number: int) -> bytes:
    """A whole number as protocol buffers write it: seven bits a byte, the lowest first."""
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def part(field: int, data: bytes) -> bytes:
    """A field that holds bytes."""
    return whole(field << 3 | 2) + whole(len(data)) + data


def scalars(values: Iterable[tuple[int, str, float]]) -> bytes:
    """The file of (step, tag, value), without a wall time: the same values give the same bytes."""
    clock = whole(1 << 3 | 1) + struct.pack("<d", 0.0)
    found = [record(clock + part(3, VERSION.encode()))]
    for step, tag, value in values:
        said = part(1, tag.encode()) + whole(2 << 3 | 5) + struct.pack("<f", value)
        found.append(record(clock + whole(2 << 3) + whole(step) + part(5, part(1, said))))
    return b"".join(found)
