"""Pressure altitude from the 13-bit altitude code (DF0, 4, 16, 20) and the 12-bit one (ADS-B type
codes 9 to 18).

ICAO Annex 10 Volume IV, 3.1.2.6.5.4 and appendix to chapter 3: bits C1 A1 C2 A2 C4 A4 M B1 Q B2 D2
B4 D4. Q = 1: 25 ft steps from -1000 ft. Q = 0: the 100 ft Gillham code, 500 ft steps in Gray code
D2 D4 A1 A2 A4 B1 B2 B4 and within them C1 C2 C4. M = 1 (metric) has no decoding that is in use; it
and impossible codes give NaN. One table of 8,192 entries holds all.
"""

import numpy as np

_M, _Q = 1 << 6, 1 << 4
_C = (12, 10, 8)  # positions of C1 C2 C4, counted from the last bit
_GRAY = (
    2,
    0,
    11,
    9,
    7,
    5,
    3,
    1,
)  # D2 D4 A1 A2 A4 B1 B2 B4, highest first; D1 is not transmitted (Q has its place)


def _binary(code: np.ndarray, positions: tuple[int, ...]) -> np.ndarray:
    """Gray-coded bits at `positions` (highest first) as a plain integer."""
    value, parity = np.zeros_like(code), np.zeros_like(code)
    for position in positions:
        parity = parity ^ (code >> position & 1)
        value = value << 1 | parity
    return value


def _table() -> np.ndarray:
    """[8192] float64: altitude in ft of every 13-bit code, NaN where it has none."""
    code = np.arange(1 << 13)
    steps = 25.0 * ((code & 0x0F) | (code & 0x20) >> 1 | (code & 0x1F80) >> 2) - 1000.0
    fives, ones = _binary(code, _GRAY), _binary(code, _C)
    legal = (ones != 0) & (ones != 5) & (ones != 6)
    ones = np.where(ones == 7, 5, ones)  # the C code counts 1 2 3 4 7
    ones = np.where(fives % 2 == 1, 6 - ones, ones)  # and runs backwards in every other 500 ft
    gillham = np.where(legal, 500.0 * fives + 100.0 * ones - 1300.0, np.nan)
    altitude = np.where(code & _Q, steps, gillham)
    return np.where((code & _M) | (code == 0), np.nan, altitude)


AC13_FT = _table()


def from_ac13(code: np.ndarray) -> np.ndarray:
    """13-bit codes [N] (integers) to pressure altitude [N] in ft, NaN where there is none."""
    return AC13_FT[code]


def from_ac12(code: np.ndarray) -> np.ndarray:
    """12-bit codes [N] of airborne positions, the same code without its M bit, to pressure
    altitude [N] in ft."""
    return AC13_FT[(code & 0xFC0) << 1 | code & 0x3F]
