"""The 24-bit cyclic redundancy check of Mode-S (ICAO Annex 10 Volume IV, 3.1.2.3.3; generator
1FFF409 hexadecimal).

The remainder of a frame is 0 for DF17/18, the interrogator's code for DF11, and the aircraft's
address where address and parity are overlaid (DF0, 4, 5, 16, 20, 21). The check is linear, so the
remainder is the exclusive or of one table entry per byte. Short frames are given right-aligned with
zeros in front, which do not change a remainder.
"""

import numpy as np

GENERATOR = 0x1FFF409
LENGTH = 14  # bytes of a long frame


def _table() -> np.ndarray:
    """[14, 256] uint32: remainder of the frame that holds the byte value v in column c and zeros
    elsewhere."""
    powers = [1]  # remainder of x^k, k = 0 at the last bit of the frame
    for _ in range(8 * LENGTH - 1):
        doubled = powers[-1] << 1
        powers.append(doubled ^ GENERATOR if doubled >> 24 else doubled)
    table = np.zeros((LENGTH, 256), np.uint32)
    value = np.arange(256)
    for column in range(LENGTH):
        for bit in range(8):
            table[column] ^= np.where(
                value >> bit & 1, powers[8 * (LENGTH - 1 - column) + bit], 0
            ).astype(np.uint32)
    return table


TABLE = _table()


def remainder(columns: np.ndarray) -> np.ndarray:
    """Remainder [N] uint32 of frames given as byte columns [14, N] uint8."""
    result = TABLE[0][columns[0]]
    for column in range(1, LENGTH):
        result ^= TABLE[column][columns[column]]
    return result
