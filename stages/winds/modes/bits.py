"""Hexadecimal text to bytes, and bit fields of 56-bit words (the ME of ADS-B, the MB of Comm-B),
for whole columns.

Bits are numbered as ICAO Doc 9871 prints them: 1 is the first bit on air, 56 the last; a field is
(first, last), both included.
Shapes: text [N], bytes [N, length], words [N] uint64. Table lookups replace arithmetic on single
characters.
"""

import numpy as np
import polars as pl
import pyarrow as pa

WORD_BITS = 56
_BAD = -1


def _pairs() -> np.ndarray:
    """[65536] int16: value of two hexadecimal characters read as one machine uint16, -1 where
    they are none."""
    table = np.full(1 << 16, _BAD, np.int16)
    value = {character: index for index, character in enumerate("0123456789abcdef")}
    value |= {character.upper(): index for character, index in value.items()}
    for high, upper in value.items():
        for low, lower in value.items():
            table[np.frombuffer((high + low).encode(), np.uint16)[0]] = 16 * upper + lower
    return table


_PAIRS = _pairs()
_DIGITS = np.frombuffer(
    "".join(f"{value:02X}" for value in range(256)).encode(), np.uint16
)  # byte -> its two characters


def characters(text: pl.Series, length: int) -> np.ndarray:
    """The bytes of strings that are all `length` bytes long: [N, length] uint8. Null is not
    allowed."""
    array = text.to_arrow(compat_level=pl.CompatLevel.oldest())
    if len(array) == 0:
        return np.empty((0, length), np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    return np.frombuffer(
        array.buffers()[2], np.uint8, len(array) * length, int(offsets[0])
    ).reshape(-1, length)


def parse_hex(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Characters [N, 2L] uint8 to bytes [N, L] uint8 and a mask [N] of the rows that are
    hexadecimal throughout."""
    value = _PAIRS[np.ascontiguousarray(text).view(np.uint16)]
    return value.astype(np.uint8), value.min(axis=1, initial=0) >= 0


def hex_strings(value: np.ndarray, digits: int) -> pl.Series:
    """Unsigned integers [N] to upper-case hexadecimal text of an even number of digits."""
    count = digits // 2
    parts = np.empty((len(value), count), np.uint16)
    for index in range(count):
        parts[:, index] = _DIGITS[(value >> (8 * (count - 1 - index))) & 0xFF]
    return fixed_strings(parts.view(np.uint8))


def fixed_strings(text: np.ndarray) -> pl.Series:
    """ASCII characters [N, L] uint8 to a column of N strings, without a Python object per row."""
    offsets = np.arange(0, text.size + 1, text.shape[1], dtype=np.int64)
    characters = pa.py_buffer(np.ascontiguousarray(text))
    return pl.Series(
        pa.LargeStringArray.from_buffers(len(text), pa.py_buffer(offsets), characters),
        dtype=pl.String,
    )


def words(frames: np.ndarray) -> np.ndarray:
    """Bytes 4 to 10 of long frames [N, 14] uint8 as 56-bit words [N] uint64: the ME or MB field."""
    return np.ascontiguousarray(frames[:, 4:12]).view(">u8")[:, 0].astype(np.uint64) >> np.uint64(8)


def unsigned(word: np.ndarray, first: int, last: int) -> np.ndarray:
    """Bits first..last of 56-bit words [N] uint64 as an unsigned integer [N] int32 (at most 31
    bits)."""
    return (
        (word >> np.uint64(WORD_BITS - last)) & np.uint64((1 << (last - first + 1)) - 1)
    ).astype(np.int32)


def signed(word: np.ndarray, first: int, last: int) -> np.ndarray:
    """Bits first..last as a two's complement integer [N] int32; the first bit is the sign."""
    half = 1 << (last - first)
    return (unsigned(word, first, last) ^ half) - half


def flag(word: np.ndarray, bit: int) -> np.ndarray:
    """One bit as a mask [N]."""
    return (word & np.uint64(mask(bit, bit))) != 0


def mask(first: int, last: int) -> int:
    """The integer whose bits first..last of a 56-bit word are set."""
    return ((1 << (last - first + 1)) - 1) << (WORD_BITS - last)


def status_rule(word: np.ndarray, fields: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Mask [N] of the words in which every field whose status bit is 0 is 0 throughout.

    fields: (status bit, last bit of the value), the value starting right after its status bit (Doc
    9871, table notes).
    """
    good = np.ones(len(word), bool)
    for status, last in fields:
        # status 0 and value not 0  <=>  the field, status bit included, lies in 1 .. 2^k - 1
        part = word & np.uint64(mask(status, last))
        good &= (part == 0) | (part >= np.uint64(mask(status, status)))
    return good


def where(value: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Float64 values [N] with NaN where not valid."""
    return np.where(valid, value, np.nan)
