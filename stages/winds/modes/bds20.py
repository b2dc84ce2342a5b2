"""Register 2,0, aircraft identification (Doc 9871 table A-2-32), and the callsign of ADS-B type
codes 1 to 4.

Both hold eight characters of six bits from bit 9 on: letters, digits and space. Words [N] uint64.
"""

import numpy as np
import polars as pl

from stages.winds.modes.bits import fixed_strings, unsigned

_ALPHABET = "#ABCDEFGHIJKLMNOPQRSTUVWXYZ##### ###############0123456789######"
_CHARACTERS = np.frombuffer(_ALPHABET.encode(), np.uint8)
_TWO = np.stack([np.repeat(_CHARACTERS, 64), np.tile(_CHARACTERS, 64)], axis=1)  # [4096, 2]
_TWO_LEGAL = (ord("#") != _TWO).all(axis=1)  # type: ignore[attr-defined]  # NumPy's != answers


def _legal(word: np.ndarray) -> np.ndarray:
    """Mask [N] of the words whose eight characters all exist."""
    good = np.ones(len(word), bool)
    for first in (9, 21, 33, 45):
        good &= _TWO_LEGAL[unsigned(word, first, first + 11)]
    return good


def possible(mb: np.ndarray) -> np.ndarray:
    """Mask [N]: the register names itself 2,0 and holds eight legal characters."""
    match = unsigned(mb, 1, 8) == 0x20
    match[match] = _legal(mb[match])
    return match


def callsigns(word: np.ndarray) -> pl.Series:
    """Callsigns of words [N], trailing spaces removed; null where a character does not exist or
    nothing is left."""
    text = np.concatenate(
        [_TWO[unsigned(word, first, first + 11)] for first in (9, 21, 33, 45)], axis=1
    )
    trimmed = fixed_strings(text).str.strip_chars_end(" ")
    return pl.select(
        pl.when(pl.Series(_legal(word)) & (trimmed != "")).then(trimmed).alias("callsign")
    ).to_series()
