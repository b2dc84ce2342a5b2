"""Bits, CRC and the altitude code.

Oracles: long division bit by bit, published frames, the Gray property of Gillham's code, rs1090 for
all 8,192 codes.
"""

import itertools

import numpy as np
import polars as pl
import rs1090
from hypothesis import given
from hypothesis import strategies as st

from stages.winds.modes import altitude, bits, crc

PUBLISHED = [
    "8D4840D6202CC371C32CE0576098",
    "8D40621D58C382D690C8AC2863A7",
    "8D485020994409940838175B284F",
    "8DA05F219B06B6AF189400CBC33F",
]


def divide(frame: int, length: int) -> int:
    """Remainder by long division, one bit at a time: the definition."""
    for bit in range(length - 1, 23, -1):
        if frame >> bit & 1:
            frame ^= 0x1FFF409 << (bit - 24)
    return frame


def remainders(texts: list[str]) -> np.ndarray:
    frames = np.array([list(bytes.fromhex(text.rjust(28, "0"))) for text in texts], np.uint8)
    return crc.remainder(np.ascontiguousarray(frames.T))


def test_published_frames_have_remainder_zero():
    assert (remainders(PUBLISHED) == 0).all()


@given(st.lists(st.binary(min_size=14, max_size=14), min_size=1, max_size=20))
def test_remainder_is_that_of_long_division(frames):
    assert remainders([frame.hex() for frame in frames]).tolist() == [
        divide(int.from_bytes(frame), 112) for frame in frames
    ]


def test_short_frames_right_aligned():
    text = "02E197B00179C3"  # a DF0 reply
    assert remainders([text])[0] == divide(int(text, 16), 56)


def test_every_one_and_two_bit_error_and_every_burst_of_24_is_caught():
    syndrome = remainders([f"{1 << bit:028X}" for bit in range(112)]).astype(np.int64)
    pairs = syndrome[:, None] ^ syndrome[None, :]
    assert (syndrome != 0).all() and (pairs[~np.eye(112, dtype=bool)] != 0).all()
    bursts = np.random.default_rng(0).integers(1, 1 << 24, 2000)
    assert (
        remainders(
            [
                f"{int(burst) << int(shift):028X}"
                for burst, shift in zip(bursts, np.arange(2000) % 89, strict=False)
            ]
        )
        != 0
    ).all()


@given(st.binary(min_size=3, max_size=3), st.booleans())
def test_hexadecimal_both_ways(value, upper):
    text = value.hex().upper() if upper else value.hex()
    parsed, good = bits.parse_hex(np.frombuffer(text.encode(), np.uint8)[None])
    assert good.all() and bytes(parsed[0]) == value
    assert bits.hex_strings(np.array([int.from_bytes(value)]), 6).to_list() == [value.hex().upper()]


def test_every_pair_of_bytes_that_is_not_hexadecimal_is_seen():
    pairs = (
        np.stack(np.meshgrid(np.arange(256), np.arange(256), indexing="ij"), -1)
        .reshape(-1, 2)
        .astype(np.uint8)
    )
    legal = np.isin(pairs, np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)).all(axis=1)
    assert (bits.parse_hex(pairs)[1] == legal).all()


def test_characters_of_a_sliced_column():
    column = pl.Series(["xx", "ab", "cd", "yy"])
    assert bits.characters(column[1:3], 2).tobytes() == b"abcd"
    assert bits.characters(column[:0], 2).shape == (0, 2)


@given(st.integers(0, (1 << 56) - 1), st.integers(1, 56), st.integers(1, 31))
def test_fields_of_a_word(word, first, width):
    last = min(first + width - 1, 56)
    text = f"{word:056b}"[first - 1 : last]
    array = np.array([word], np.uint64)
    assert bits.unsigned(array, first, last)[0] == int(text, 2)
    assert bits.signed(array, first, last)[0] == int(text, 2) - (int(text[0]) << len(text))
    assert bits.flag(array, first)[0] == (text[0] == "1")


@given(st.integers(0, (1 << 56) - 1))
def test_status_rule(word):
    text, fields = f"{word:056b}", ((1, 11), (12, 23), (24, 34), (35, 45), (46, 56))
    broken = any(text[a - 1] == "0" and "1" in text[a:b] for a, b in fields)
    assert bits.status_rule(np.array([word], np.uint64), fields)[0] == (not broken)


def test_gillham_code_is_a_gray_code_of_100_ft_steps():
    code = np.arange(1 << 13)
    gillham = (code & 0b1010000) == 0
    height = altitude.AC13_FT[gillham]
    known = np.isfinite(height)
    order = np.argsort(height[known])
    levels, codes = height[known][order], code[gillham][known][order]
    assert levels[0] == -1200 and levels[-1] == 126_700 and (np.diff(levels) == 100).all()
    assert all(int(a ^ b).bit_count() == 1 for a, b in itertools.pairwise(codes))


def test_steps_of_25_ft_and_no_value():
    n = np.arange(2048)
    code = (n & 0x7E0) << 2 | (n & 0x10) << 1 | 0x10 | n & 0xF
    np.testing.assert_array_equal(altitude.from_ac13(code), 25.0 * n - 1000)
    twelve = (n & 0x7F0) << 1 | 0x10 | n & 0xF
    np.testing.assert_array_equal(altitude.from_ac12(twelve), 25.0 * n - 1000)
    assert np.isnan(altitude.from_ac13(np.array([0, 0x40, 0x50]))).all()  # not known; metric


def test_all_codes_as_rs1090():
    code = np.arange(1 << 13)
    head = [f"2000{value:04X}" for value in code]  # DF4
    frames = [text + f"{divide(int(text, 16) << 24, 56):06X}" for text in head]
    found = [message.get("altitude") for message in rs1090.decode(frames)]
    theirs = np.array([np.nan if height is None else height for height in found], float)
    ours = altitude.from_ac13(code)
    metric = (code & 0x40) != 0
    different = ~metric & ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    assert different.sum() == 12  # Gillham codes below sea level, which they leave out
    assert (ours[different] < 0).all() and np.isnan(theirs[different]).all()
